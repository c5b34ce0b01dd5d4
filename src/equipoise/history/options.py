"""What a caller says about a table: the arguments of :meth:`equipoise.History.read`."""

from __future__ import annotations

import datetime
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

from equipoise._json import JsonValue
from equipoise.errors import InvalidInput, UnknownName, require_whole


@dataclass(frozen=True, repr=False)
class OpenChoice(JsonValue):
    """A value that only a person can choose; the first choice is the one that is tried."""

    choices: Sequence[str]

    def __str__(self) -> str:
        return self.choices[0]

    def __repr__(self) -> str:
        return f"<{' | '.join(map(repr, self.choices))}>"


Value = str | int | float | OpenChoice
Values = Value | Sequence[Value]
Meaning = Values | Mapping[str, Values] | None
"""Values that mean something: for both columns, or by role or column (``{"outcome": "paid"}``)."""
Moment = str | datetime.date

ROLES, MEANINGS = ("decision", "outcome"), ("positive", "negative")
NEEDED_ARGUMENT = {
    "cohort": "unknown",
    "since": "date",
    "until": "date",
    "random_accepts_against": "random_accepts",
    "min_cases": "decider",
    "repeated": "id",
}
"""Arguments that say nothing without another one."""
PASSWORD = re.compile(r"(?<=://)([^/@]*):[^/@]*@")


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """The arguments of :meth:`equipoise.History.read` but the source; it explains each of them."""

    group: str | Sequence[str] = ()
    within: str | Sequence[str] = ()
    decision: str = ""
    outcome: str = ""
    positive: Meaning = None
    negative: Meaning = None
    missing_values: str | Sequence[str] = ()
    missing_group: str = "refuse"
    max_groups: int = 50
    denied_outcomes: Literal["error", "ignore"] = "error"
    undecided: Literal["refuse", "leave_out"] = "refuse"
    unknown: Literal["refuse", "bounds", "like_known"] = "refuse"
    cohort: str | None = None
    random_accepts: str | None = None
    random_accepts_against: str | Sequence[str] = ()
    decider: str | None = None
    min_cases: int = 0
    id: str | None = None
    repeated: Literal["refuse", "count_once"] = "refuse"
    date: str | None = None
    since: Moment | None = None
    until: Moment | None = None
    seed: int | None = None
    table: str | None = None
    query: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        main = (*self.groups, self.decision, self.outcome)
        for role in ("group", "within", *ROLES):
            columns = as_tuple(said := getattr(self, role))
            named = any(columns) or role == "within"
            if not named or not all(isinstance(column, str) for column in columns):
                raise InvalidInput(
                    f"{role!r} (--{role}) must name a column; got {said or None!r}. Or give, "
                    "as 'source', a file ending in .toml that says so: equipoise check --save "
                    "writes it"
                )
        for column in main:
            if main.count(column) > 1:
                raise InvalidInput(
                    "'group', 'within', 'decision' and 'outcome' must be different columns; "
                    f"{column!r} is named twice"
                )
        for name, hint in get_type_hints(ReadOptions).items():
            if get_origin(hint) is Literal and getattr(self, name) not in get_args(hint):
                raise UnknownName(f"value of {name!r}", getattr(self, name), get_args(hint))
        for name, least in (("max_groups", 2), ("min_cases", 0)):
            require_whole(name, getattr(self, name), least)
        given = self.given
        for name, other in NEEDED_ARGUMENT.items():
            if name in given and other not in given:
                raise InvalidInput(
                    f"{name!r} ({_flag(name)}) belongs to {other!r} ({_flag(other)})"
                )
        for name in MEANINGS:
            object.__setattr__(self, name, self._by_role(name, getattr(self, name)))

    def _by_role(self, argument: str, meaning: Meaning) -> Mapping[str, Values]:
        """Return the values that mean 1 (or 0) by role; without a column they are for both."""
        roles = {self.decision: "decision", self.outcome: "outcome"} | {r: r for r in ROLES}
        by_column = meaning if isinstance(meaning, Mapping) else {"": meaning}
        found: dict[str, list[Value]] = {role: [] for role in ROLES}
        for column, value in (
            (c, value) for c, own in by_column.items() for value in as_tuple(own)
        ):
            if _is_open_choice(str(value)):
                raise InvalidInput(f"{argument!r}: replace {value} by the one that is meant")
            name, mark, rest = str(value).partition("=")
            if not column and mark and name in roles:  # as on the command line: outcome=repaid
                column, value = name, rest
            elif not isinstance(value, Value):
                raise InvalidInput(
                    f"{argument!r} must be a value such as 'yes', a list of values, or either "
                    f"by column such as {{'outcome': 'repaid'}}; got {value!r}"
                )
            elif column and column not in roles:
                raise UnknownName(f"key of {argument!r}", column, roles)
            elif not column and str(value) in ("0", "1", "True", "False"):
                raise InvalidInput(
                    f"{argument!r} of {value} must say of which column, for example "
                    f"{argument}={{'outcome': {value!r}}} ({_flag(argument)} outcome={value})"
                )
            for role in (roles[column],) if column else ROLES:
                found[role].append(value)
        return {role: unwrap_single(values) for role, values in found.items() if values}

    @property
    def groups(self) -> tuple[str, ...]:
        """The columns of strata, if there are any, and the group columns."""
        return (*as_tuple(self.within), *as_tuple(self.group))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that rows are counted by, groups first."""
        more = self.random_accepts, self.cohort, self.decider
        return _distinct(*self.groups, self.decision, self.outcome, *more)

    @property
    def against(self) -> tuple[str, ...]:
        """The columns that the chance of random accepts is tested against."""
        return _distinct(*as_tuple(self.random_accepts_against), self.random_accepts and self.date)

    @property
    def used(self) -> tuple[str, ...]:
        """Every column that is read."""
        return _distinct(*self.columns, *self.against, self.id, self.date)

    def said(self, argument: str, role: str) -> tuple[Value, ...]:
        """Return the values of a role that mean 1 (``positive``) or 0 (``negative``)."""
        return as_tuple(getattr(self, argument).get(role))

    def corrected(self, fix: Mapping[str, Any]) -> ReadOptions:
        """Return the options with a remedy added to what was said before."""
        changes = dict(fix)
        for name in MEANINGS:
            more = changes.get(name, {})
            changes[name] = {r: (*self.said(name, r), *as_tuple(more.get(r))) for r in ROLES}
        if "missing_values" in fix:
            changes["missing_values"] = [*as_tuple(self.missing_values), *fix["missing_values"]]
        return replace(self, **changes)

    @property
    def given(self) -> dict[str, Any]:
        """The arguments that are not at their defaults."""
        return without_defaults(vars(self))

    def call(self, source: object) -> str:
        """Return the call and, for files and databases, the command, that read a source."""
        arguments, flags = spelled(self.given)
        paths = [PASSWORD.sub(r"\1:***@", place) for place in places_of(source)]
        if not paths:
            return f"  History.read({type(source).__name__.lower()}, {arguments})"
        command = " ".join([*map(shlex.quote, paths), flags])
        return f"  History.read({unwrap_single(paths)!r}, {arguments})\n  equipoise check {command}"


def places_of(source: object) -> list[str]:
    """Return paths and addresses; none if the source is something else."""
    parts = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(parts, list | tuple):
        return []
    return [os.fspath(part) for part in parts if isinstance(part, str | os.PathLike)]


def without_defaults(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are not at their defaults."""
    usual = {f.name: as_tuple(f.default) for f in fields(ReadOptions)}
    return {n: v for n, v in options.items() if v is not None and as_tuple(v) != usual.get(n)}


def _is_open_choice(text: str) -> bool:
    """Return whether a value is a placeholder such as ``<repaid | default>``, still to be chosen.

    No regular expression: on text that a browser sent its time would grow with the third power.
    """
    start = text.find("<")
    return start >= 0 and text.endswith(">") and " | " in text[start + 2 : -2]


def _distinct(*columns: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(column for column in columns if column is not None))


def as_tuple(values: Any) -> tuple[Any, ...]:
    """Return one value, several or None as a tuple."""
    if values is None:
        return ()
    return (values,) if isinstance(values, str) or not hasattr(values, "__iter__") else (*values,)


def unwrap_single(values: Sequence[Any]) -> Any:
    """Return a single value as it is, several as a list."""
    return values[0] if len(values) == 1 else list(values)


def spelled(options: Mapping[str, Any]) -> tuple[str, str]:
    """Return options as arguments of a call and as options of the command line."""
    arguments, flags = [], []
    for name, value in options.items():
        arguments.append(f"{name}={(str(value) if isinstance(value, datetime.date) else value)!r}")
        by_role = value.items() if isinstance(value, Mapping) else [("", value)]
        for role, one in ((role, one) for role, values in by_role for one in as_tuple(values)):
            word = f"<{' | '.join(one.choices)}>" if isinstance(one, OpenChoice) else str(one)
            if name != "seed":  # is for Python alone
                flags.append(f"{_flag(name)} {shlex.quote(f'{role}={word}' if role else word)}")
    return ", ".join(arguments), " ".join(flags)


def _flag(name: str) -> str:
    return "--" + ("missing-value" if name == "missing_values" else name.replace("_", "-"))
