"""What the API takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import reduce
from inspect import signature
from operator import or_
from typing import Annotated, Any, Literal, get_type_hints

from fastapi import Body
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    create_model,
)

from equipoise.cells import Cells, GroupCells
from equipoise.errors import InvalidInput
from equipoise.ledger import LiveAudit, Reply
from equipoise.ledger import commands as do
from equipoise.ledger.commands import Command
from equipoise.ledger.inputs import LIMIT
from equipoise.ledger.store import AuditRow
from equipoise.ledger.verify import PersonRecord
from equipoise.question import Costs, Question
from equipoise.service.tokens import Mark

Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
BATCH = 1000
SETTINGS = ("audit", "options", "budget", "max_in_flight", "max_in_flight_groups", "lottery",
            "overdue_after", "stream", "currency", "decimals", "approvals")  # fmt: skip
"""What may be said of a new audit over HTTP; the rest of ``LiveAudit.create`` is the server's."""
SECRET = ("salt", "seed", "who", "place")  # columns that nobody is shown


class Model(BaseModel):
    """What is not named here is refused, not ignored."""

    model_config = ConfigDict(extra="forbid")


class Shape(Model):
    """What is of another type is refused, not converted."""

    model_config = ConfigDict(strict=True)


def _by(make: Callable[[Any], Any]) -> BeforeValidator:
    """Return what builds a value from JSON by its own rules, and refuses what it cannot."""

    def built(given: Any) -> Any:
        try:
            return make(given)
        except (TypeError, AttributeError, ArithmeticError):
            raise InvalidInput(f"cannot be read: {given!a}"[:200]) from None

    return BeforeValidator(built)


def cells_from(given: Any) -> Cells:
    """Return the counts of 2 to 200 groups, as JSON holds them."""
    cells = Cells.from_dict(given)
    if not 2 <= len(cells) <= 200:
        raise InvalidInput(f"there must be 2 to 200 groups; got {len(cells)}")
    if cells.total > LIMIT:
        raise InvalidInput(f"counts must add up to at most 2**53; got {cells.total:g}")
    return cells


# -- commands and people --------------------------------------------------------------------------


def _command_model(tag: str, kind: type[Command]) -> type[Model]:
    """Return the shape of a command; what its values may be is the ledger's rule."""
    own: dict[str, Any] = {"command": (Literal[tag], ...)}
    hints = get_type_hints(kind)
    for field in fields(kind):
        default = field.default
        if field.default_factory is not MISSING:
            default = field.default_factory()
        if field.name != "command":
            own[field.name] = (hints[field.name], ... if default is MISSING else default)
    return create_model(f"{kind.__name__}Command", __base__=Shape, __doc__=kind.__doc__, **own)


_MODELS: list[Any] = [_command_model(tag, kind) for tag, kind in do.COMMANDS.items()]
AnyCommand: Any = Annotated[reduce(or_, _MODELS), Field(discriminator="command")]


Commands: Any = Annotated[
    list[AnyCommand], Body(embed=True, min_length=1, max_length=BATCH, description="In this order.")
]
Pseudonyms = Annotated[list[Name], Body(embed=True, min_length=1, max_length=BATCH)]


class ProblemModel(BaseModel):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str | None = None


class Refusal(Model):
    """A command that was not carried out."""

    person: str
    problem: ProblemModel


class Results(Model):
    """A result for each command, in their order; writers learn what is wanted and no more."""

    results: list[Reply | Refusal]


def shown(row: Any) -> dict[str, Any]:
    """Return a stored row without what is secret."""
    return {f.name: getattr(row, f.name) for f in fields(row) if f.name not in SECRET}


def _without_secrets(kind: type, name: str, doc: str) -> type[BaseModel]:
    hints = get_type_hints(kind)
    own = {f.name: (hints[f.name], ...) for f in fields(kind) if f.name not in SECRET}
    return create_model(name, __base__=Model, __doc__=doc, **own)  # type: ignore[call-overload, no-any-return]


PersonModel: Any = _without_secrets(PersonRecord, "PersonModel", "What is stored about a person.")
AuditModel: Any = _without_secrets(AuditRow, "AuditModel", "One audit in the list.")


class PeoplePage(Model):
    """People in order of arrival; ``next`` is what to pass as ``after``, null at the end."""

    people: list[PersonModel]
    next: int | None = None


class EventsPage(Model):
    """Events in order; ``next`` is what to pass as ``after``, ``head`` the number of the last."""

    events: list[dict[str, Any]]
    next: int
    head: int


# -- audits ---------------------------------------------------------------------------------------


def _new_audit_model() -> type[Model]:
    """Return the shape of an audit that begins: what ``LiveAudit.create`` takes, as it takes it."""
    taken, hints = signature(LiveAudit.create).parameters, get_type_hints(LiveAudit.create)
    own: dict[str, Any] = {name: (hints[name], taken[name].default) for name in SETTINGS}
    own["past"] = (Annotated[Mapping[str, GroupCells], _by(cells_from)], ...)
    own["question"] = (Annotated[Question, _by(Question.from_dict)], Question())
    own["costs"] = (Annotated[Costs, _by(Costs.from_dict)], Costs())
    words = "An audit that begins; see ``LiveAudit.create``."
    return create_model("NewAudit", __base__=Shape, __doc__=words, **own)


NewAudit: Any = _new_audit_model()


class AuditsPage(Model):
    """The audits that a token opens."""

    audits: list[AuditModel]


class MarksPage(Model):
    """The latest first."""

    marks: list[Mark]


class FindingModel(Model):
    """The verdict; null while the audit goes on. ``so_far`` is what is established by now."""

    finding: dict[str, Any] | None
    so_far: dict[str, Any]
