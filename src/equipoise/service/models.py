"""What the API takes and gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, create_model

from equipoise.cells import Cells
from equipoise.history import History
from equipoise.ledger import Reply
from equipoise.ledger import commands as do
from equipoise.ledger.commands import Command
from equipoise.ledger.store import AuditRow
from equipoise.ledger.verify import PersonRecord
from equipoise.question import Costs, Question
from equipoise.rates import METRICS
from equipoise.service.tokens import Mark

Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Why = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
Bit = Annotated[int, Field(ge=0, le=1, strict=True)]
Amount = Annotated[int, Field(ge=0, lt=2**53, strict=True)]
Unit = Annotated[float, Field(gt=0.0, lt=1.0, allow_inf_nan=False, strict=True)]
Number = Annotated[float, Field(allow_inf_nan=False, strict=True)]
Count = Annotated[float, Field(ge=0.0, le=2.0**53, allow_inf_nan=False, strict=True)]
Limit = Annotated[int, Field(ge=1, lt=2**53, strict=True)]
BATCH = 1000
SECRET = ("salt", "seed", "who", "place")  # columns that nobody is shown


class Model(BaseModel):
    """What is not named here is refused, not ignored."""

    model_config = ConfigDict(extra="forbid")


# -- commands and people --------------------------------------------------------------------------

KINDS: Mapping[str, Any] = {
    "person": Name,
    "group": Name,
    "decision": Bit,
    "outcome": Bit,
    "score": Number | None,
    "price": Amount | None,
    "version": Annotated[str, StringConstraints(max_length=2000)],
    "why": Why,
    "budget": Amount | None,
    "max_in_flight": Limit | None,
    "max_in_flight_groups": dict[Name, Limit],
    "proposal": Amount,
    "key": Annotated[str, StringConstraints(max_length=200)],
}
"""What the fields of commands hold."""


def _command_model(tag: str, kind: type[Command]) -> type[Model]:
    own: dict[str, Any] = {"command": (Literal[tag], ...)}
    for field in fields(kind):
        default = field.default
        if field.default_factory is not MISSING:
            default = field.default_factory()
        if field.name != "command":
            own[field.name] = (KINDS[field.name], ... if default is MISSING else default)
    return create_model(f"{kind.__name__}Command", __base__=Model, __doc__=kind.__doc__, **own)


_MODELS: list[Any] = [_command_model(tag, kind) for tag, kind in do.COMMANDS.items()]
AnyCommand: Any = Annotated[reduce(or_, _MODELS), Field(discriminator="command")]


class Commands(Model):
    """What is to be done, in this order."""

    commands: Annotated[list[AnyCommand], Field(min_length=1, max_length=BATCH)]

    def to_commands(self) -> list[Command]:
        """Return them as the ledger takes them."""
        return [do.COMMANDS[one.command](**vars(one)) for one in self.commands]


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


class Pseudonyms(Model):
    """Pseudonyms."""

    people: Annotated[list[Name], Field(min_length=1, max_length=BATCH)]


class Overdue(Model):
    """Days after which an outcome is overdue; null for the audit's own number."""

    days: Annotated[float, Field(ge=0.0, le=36600.0, allow_inf_nan=False, strict=True)] | None = (
        None
    )


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


class GroupCounts(Model):
    """Past decisions of one group."""

    approved_positive: Count
    approved_negative: Count
    denied: Count
    approved_unknown: Count = 0.0


class QuestionModel(Model):
    """What is asked; see ``equipoise.Question``."""

    metric: Literal[tuple(METRICS)] = "equalized_odds"  # type: ignore[valid-type]
    gamma: Annotated[float, Field(ge=0.0, lt=1.0, allow_inf_nan=False, strict=True)] = 0.05
    epsilon: Unit = 0.05
    delta: Unit = 0.05
    compare: Literal["difference", "ratio"] = "difference"


class Prices(Model):
    """In whole minor units (cents)."""

    feature: Amount = 0
    label: Amount = 1


class CostsModel(Prices):
    """Prices, and other ones for some groups."""

    groups: dict[str, Prices] = {}


class NewAudit(Model):
    """An audit that begins; see ``LiveAudit.create``."""

    past: Annotated[dict[str, GroupCounts], Field(min_length=2, max_length=200)]
    question: QuestionModel = QuestionModel()
    costs: CostsModel = CostsModel()
    audit: Literal["adaptive", "rs", "baseline"] = "adaptive"
    options: dict[str, Any] = {}
    budget: Amount | None = None
    max_in_flight: Limit | None = None
    max_in_flight_groups: dict[str, Limit] = {}
    lottery: Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False, strict=True)] = 1.0
    overdue_after: Annotated[float, Field(gt=0.0, le=36600.0, strict=True)] | None = None
    stream: Literal["everybody", "denied"] = "everybody"
    currency: Annotated[str, StringConstraints(max_length=200)] = ""
    decimals: Annotated[int, Field(ge=0, le=9, strict=True)] = 0
    approvals: list[
        Literal["budget", "concluded", "corrected", "erased", "limits", "resumed", "upgraded"]
    ] = []

    def to_arguments(self) -> dict[str, Any]:
        """Return it as ``LiveAudit.create`` takes it."""
        data = self.model_dump()
        costs = data.pop("costs")
        groups = {group: Costs(**own) for group, own in costs.pop("groups").items()}
        return {
            "history": History.from_cells(Cells.from_dict(data.pop("past"))),
            "question": Question(**data.pop("question")),
            "costs": Costs(**costs, groups=groups),
            **data,
        }


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
