"""The JSON that programs send to ``/v1`` and get from it.

Names of classes and fields are names of the API: the OpenAPI description shows them, and clients
depend on them. They come from three places:

- Models of this file. Renaming something elsewhere in the package changes nothing about them.
- Results that travel as their ``to_dict`` writes them: ``Status``, ``Finding`` and ``Plan``, with
  all that is inside of them.
- Commands (``ledger/commands.py``), because a client of this package sends what
  ``Command.to_dict`` writes.

To rename a field of the last two is to change the API. ``tests/unit/service/test_wire.py`` has
their names, so that this does not happen by accident.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, create_model

from equipoise.cells import Cells, GroupCells
from equipoise.display import format_count
from equipoise.errors import InvalidInput
from equipoise.history import History
from equipoise.history.coding import Coding
from equipoise.ledger import Reply, inputs
from equipoise.ledger import store as ledger_store
from equipoise.ledger import verify as ledger_rules
from equipoise.ledger.commands import COMMANDS, Command
from equipoise.ledger.settings import Settings, new_settings
from equipoise.ledger.verify import GENESIS
from equipoise.question import Costs, Question

SCHEMA_NAMES = {"Comparison": "Compare"}
"""Class of another room -> name of its schema in the OpenAPI description, where they differ."""
WORDED_FIELDS = ("decision", "outcome")
"""Fields of commands that may be in the words of the historical data."""
MIN_GROUPS = 2
MAX_GROUPS_SENT = 200
MAIN_ROLES = ("group", "decision", "outcome")
_CODING_ADAPTER = TypeAdapter(Coding)


class Model(BaseModel):
    """An object of which unknown fields and values of another type are refused."""

    # Ignoring a misspelt field or converting "0" would hide a client's mistake.
    model_config = ConfigDict(extra="forbid", strict=True)


# -- commands and what comes of them --------------------------------------------------------------


def _command_model(tag: str, command_class: type[Command]) -> Any:
    """Return the shape of a command's JSON; what its values may be is the ledger's rule."""
    # The commands' annotations are texts, and pydantic needs types.
    hints = get_type_hints(command_class)
    model_fields: dict[str, Any] = {"command": (Literal[tag], ...)}
    for field in fields(command_class):
        default: Any = field.default
        if field.default_factory is not MISSING:
            default = field.default_factory()
        hint = hints[field.name]
        # A text is taken here, and read once the audit, which knows the words, is found.
        if field.name in WORDED_FIELDS:
            hint = hint | str
        model_fields[field.name] = (hint, ... if default is MISSING else default)
    return create_model(
        command_class.__name__, __base__=Model, __doc__=command_class.__doc__, **model_fields
    )


_COMMAND_MODELS = [_command_model(tag, command_class) for tag, command_class in COMMANDS.items()]
AnyCommand: Any = Annotated[reduce(or_, _COMMAND_MODELS), Field(discriminator="command")]
"""One of the commands, told apart by the field ``command``."""


class ProblemModel(BaseModel):
    """RFC 9457, and where an audit refused: why, as data (``code`` and ``facts``)."""

    type: str
    title: str
    status: int
    detail: str | None = None
    leave_out: list[str] | None = None
    code: str | None = None
    facts: dict[str, Any] | None = None


class Refusal(Model):
    """A command that was not carried out."""

    person: str
    problem: ProblemModel


class Waiting(Model):
    """A group whose denied people are wanted and do not arrive; ``text`` says it in words."""

    group: str
    days: int
    has_arrived: bool
    turned_away: int
    text: str


class Results(Model):
    """A result for each command, in their order; writers learn what is wanted and no more.

    ``waiting`` names groups that the audit waits for. Writers do not get it.
    """

    results: list[Reply | Refusal]
    waiting: list[Waiting] = []


def reply_json(reply: Reply) -> dict[str, Any]:
    """Return the JSON of a reply."""
    return {
        "person": reply.person,
        "state": reply.state,
        "want": reply.want.value,
        "hold": reply.hold,
        "number": reply.number,
        "request": reply.request,
        "why": reply.why,
        "outcome": reply.outcome,
        "repeated": reply.repeated,
        "problem": reply.problem,
    }


# -- people and events ----------------------------------------------------------------------------


class PersonRecord(Model):
    """One person as of now: a row of the ledger's table, and what events change."""

    number: int
    group_name: str
    decision: int
    want: str
    state: str
    request: int | None
    hold: int
    person: str | None = None
    why: str = ""
    asked: str = ""
    drawn: int | None = None
    draw: int | None = None
    paid: int = 0
    overrun: int = 0
    outcome: int | None = None
    executed: int = 0
    conflicted: int = 0
    erased: int = 0


def person_json(record: ledger_rules.PersonRecord) -> dict[str, Any]:
    """Return the JSON of a person, without the columns that must stay in the database.

    Salt and keyed hash would let a reader recognise erased people.
    """
    return {
        "number": record.number,
        "group_name": record.group_name,
        "decision": record.decision,
        "want": record.want,
        "state": record.state,
        "request": record.request,
        "hold": record.hold,
        "person": record.person,
        "why": record.why,
        "asked": record.asked,
        "drawn": record.drawn,
        "draw": record.draw,
        "paid": record.paid,
        "overrun": record.overrun,
        "outcome": record.outcome,
        "executed": record.executed,
        "conflicted": record.conflicted,
        "erased": record.erased,
    }


class PeoplePage(Model):
    """People in order of arrival; ``next`` is what to pass as ``after``, null at the end."""

    people: list[PersonRecord]
    next: int | None = None


class EventsPage(Model):
    """Events in order; ``next`` is what to pass as ``after``, ``head`` the number of the last."""

    events: list[dict[str, Any]]
    next: int
    head: int


# -- audits ---------------------------------------------------------------------------------------


class AuditRow(Model):
    """One audit as the list of audits shows it: where its chain ends, and what it is called."""

    seq: int = 0
    hash: str = GENESIS
    time: str = ""
    cap: int | None = None
    spent: int = 0
    reserved: int = 0
    overrun: int = 0
    id: int = 0
    uid: str = ""
    name: str = ""


def audit_json(row: ledger_store.AuditRow) -> dict[str, Any]:
    """Return the JSON of an audit, without its seed, which is secret until it is concluded."""
    return {
        "seq": row.seq,
        "hash": row.hash,
        "time": row.time,
        "cap": row.cap,
        "spent": row.spent,
        "reserved": row.reserved,
        "overrun": row.overrun,
        "id": row.id,
        "uid": row.uid,
        "name": row.name,
    }


def read_cells(data: Any) -> Cells:
    """Return the counts of 2 to 200 groups from their JSON, or refuse it."""
    cells = Cells.from_dict(data)
    if not MIN_GROUPS <= len(cells) <= MAX_GROUPS_SENT:
        raise InvalidInput(
            f"there must be {MIN_GROUPS} to {MAX_GROUPS_SENT} groups; got {len(cells)}"
        )
    if cells.total > inputs.LIMIT:  # beyond it numbers in JSON are not exact
        raise InvalidInput(f"counts must add up to at most 2**53; got {format_count(cells.total)}")
    return cells


def read_coding(data: Any) -> Coding:
    """Return what the columns and values of a table mean from its JSON, or refuse it."""
    coding = _CODING_ADAPTER.validate_json(json.dumps(data), strict=True)
    columns_per_role = [len(coding.columns.get(role, ())) for role in MAIN_ROLES]
    if columns_per_role != [len(coding.grouping.labels), 1, 1]:
        raise InvalidInput("'coding' must name the column of each role")
    return coding


def check_coding(data: Any) -> Any:
    """Return the JSON of a coding, or refuse it."""
    if data is not None:
        read_coding(data)
    return data


def _built_by(build: Callable[[Any], Any]) -> BeforeValidator:
    """Return a validator that builds a value from JSON by the value's own rules."""

    def build_or_refuse(data: Any) -> Any:
        try:
            return build(data)
        except (TypeError, AttributeError, ArithmeticError):
            raise InvalidInput(f"cannot be read: {data!a}"[:200]) from None

    return BeforeValidator(build_or_refuse)


class NewAudit(Model):
    """An audit that begins; see ``LiveAudit.create``."""

    audit: str = "adaptive"
    options: Mapping[str, Any] | None = None
    budget: int | None = None
    max_in_flight: int | None = None
    max_in_flight_groups: Mapping[str, int] | None = None
    lottery: float = 1.0
    overdue_after: float | None = None
    stream: str = "everybody"
    currency: str = ""
    decimals: int = 0
    approvals: Sequence[str] = ()
    confirm: bool = False
    coding: Annotated[Mapping[str, Any] | None, _built_by(check_coding)] = None
    past: Annotated[Mapping[str, GroupCells], _built_by(read_cells)]
    question: Annotated[Question, _built_by(Question.from_dict)] = Question()
    costs: Annotated[Costs, _built_by(Costs.from_dict)] = Costs()

    @property
    def history(self) -> History:
        """The past decisions, with what the words of their table mean if that was sent."""
        history = History.from_cells(Cells(self.past))
        return history if self.coding is None else replace(history, coding=read_coding(self.coding))

    def to_settings(self, name: str, seed: str) -> Settings:
        """Return the settings of the audit that is asked for, or refuse them; it is not tried."""
        return new_settings(
            name,
            self.history,
            self.question,
            self.costs,
            seed=seed,
            audit=self.audit,
            budget=self.budget,
            max_in_flight=self.max_in_flight,
            max_in_flight_groups=self.max_in_flight_groups,
            lottery=self.lottery,
            overdue_after=self.overdue_after,
            stream=self.stream,
            currency=self.currency,
            decimals=self.decimals,
            approvals=self.approvals,
            options=self.options,
            is_possible=True,
        )


# -- the OpenAPI description ----------------------------------------------------------------------


def with_schema_names(openapi: Any) -> Any:
    """Return an OpenAPI description, or a part of it, with the API's names of all schemas."""
    if isinstance(openapi, dict):
        return {_schema_name(key): with_schema_names(value) for key, value in openapi.items()}
    if isinstance(openapi, list):
        return [with_schema_names(part) for part in openapi]
    if isinstance(openapi, str):
        return _schema_name(openapi)
    return openapi


def _schema_name(text: str) -> str:
    """Return the name of a schema, or a reference to one, as the API has it; else the text."""
    prefix, slash, name = text.rpartition("/")
    class_name, dash, suffix = name.partition("-")  # the suffix is Input or Output
    return f"{prefix}{slash}{SCHEMA_NAMES.get(class_name, class_name)}{dash}{suffix}"
