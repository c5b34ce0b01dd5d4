"""What a caller says about a table: the arguments of :meth:`equipoise.History.read`."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from equipoise.errors import InvalidInput, UnknownName, require_whole
from equipoise.history.presets import load_preset
from equipoise.history.problems import InvalidReading
from equipoise.history.values import MissingWords, key_of
from equipoise.messages import Fix, OpenChoice, Problem
from equipoise.messages.problem import OTHERS

Value = str | int | float | OpenChoice
Values = Value | Sequence[Value]
Meaning = Values | Mapping[str, Values] | None
"""Values that mean something: for both columns, or by role or column (``{"outcome": "paid"}``)."""
MissingValues = str | Sequence[str] | Mapping[str, str | Sequence[str]]
"""Values that stand for none: for both columns, or by role or column (``{"decision": "2"}``)."""
EVERY_ROLE = ""  # the role of a value that was named without a column
MergedGroups = Mapping[str, str | Sequence[str]] | Sequence[str]
"""Name of a new group -> the values that make it; or texts such as ``"other=Samoan"``."""
Moment = str | datetime.date
Role = Literal["decision", "outcome"]
MeaningArgument = Literal["positive", "negative"]

ROLES: tuple[Role, ...] = ("decision", "outcome")
MARKED_ROLES = (*ROLES, "random_accepts")
"""Roles whose values may be explained: 1 and 0 of decisions, outcomes and marks of a programme."""
MEANINGS: tuple[MeaningArgument, ...] = ("positive", "negative")
VALUE_ARGUMENTS = (*MEANINGS, "missing_values")
"""Arguments that say what values mean; presets, kept files and callers do so role by role."""
NEEDED_ARGUMENT = {
    "cohort": "unknown",
    "since": "date",
    "until": "date",
    "random_accepts_against": "random_accepts",
    "min_cases": "decider",
    "repeated": "id",
    "outcomes": "on",
    "on": "outcomes",
    "latest": "outcomes",
}
"""Arguments that say nothing without another one."""
ALLOWED_VALUES = {
    "denied_outcomes": ("error", "ignore"),
    "undecided": ("refuse", "leave_out"),
    "unknown": ("refuse", "bounds", "like_known"),
    "repeated": ("refuse", "count_once"),
}
"""Arguments that take one of a few words."""


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """The arguments of :meth:`equipoise.History.read` but the source; it explains each of them.

    Raises
    ------
    InvalidInput
        If an argument is not what it must be.
    """

    group: str | Sequence[str] = ()
    within: str | Sequence[str] = ()
    decision: str = ""
    outcome: str = ""
    positive: Meaning = None
    negative: Meaning = None
    missing_values: MissingValues = ()
    missing_group: str = "refuse"
    merge_groups: MergedGroups = ()
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
    outcomes: object = field(default=None, compare=False)  # a frame's == is no truth value
    on: str | None = None
    latest: str | None = None
    preset: str | None = None

    def __post_init__(self) -> None:
        # Roles first: what follows looks up the columns of roles.
        self._require_columns()
        arguments = self.all_arguments()
        for argument, allowed in ALLOWED_VALUES.items():
            if arguments[argument] not in allowed:
                raise UnknownName(f"value of {argument!r}", arguments[argument], allowed)
        require_whole("max_groups", self.max_groups, 2)
        require_whole("min_cases", self.min_cases, 0)
        explicit_arguments = without_defaults(arguments)
        for argument, needed in NEEDED_ARGUMENT.items():
            if argument in explicit_arguments and needed not in explicit_arguments:
                names = {"argument": argument, "needed": needed}
                raise InvalidReading(Problem("argument-needs-other", names))
        # A frozen dataclass can be filled in here only by this detour.
        object.__setattr__(self, "positive", self._values_by_role("positive", self.positive))
        object.__setattr__(self, "negative", self._values_by_role("negative", self.negative))
        object.__setattr__(self, "missing_values", self._sort_missing_values())
        object.__setattr__(self, "merge_groups", _values_by_new_group(self.merge_groups))
        self._refuse_contradictions()

    def _require_columns(self) -> None:
        """Raise unless group, decision and outcome name columns, all of them different."""
        columns_by_role: dict[str, tuple[Any, ...]] = {
            "group": as_tuple(self.group),
            "within": as_tuple(self.within),
            "decision": as_tuple(self.decision),
            "outcome": as_tuple(self.outcome),
        }
        for role, columns in columns_by_role.items():
            if not any(columns) and role != "within":
                # What the table has is added where it can be opened.
                fields = {"role": role, "table": "", "columns": [], "candidates": []}
                fields["elsewhere"] = ""
                raise InvalidReading(Problem("column-not-named", fields))
            for column in filter(_is_open_choice, map(str, columns)):
                raise InvalidInput(f"{role!r}: replace {column} by the one that is meant")
            if not all(isinstance(column, str) for column in columns):
                details = {"argument": role, "value": repr(unwrap_single(columns))}
                raise InvalidReading(Problem("argument-not-columns", details))
        # A column with two of these roles is a mistyped name.
        main_columns = (*self.groups, self.decision, self.outcome)
        for column in main_columns:
            if main_columns.count(column) > 1:
                raise InvalidInput(
                    "'group', 'within', 'decision' and 'outcome' must be different columns; "
                    f"{column!r} is named twice"
                )

    def _values_by_role(self, argument: str, meaning: Meaning) -> Mapping[str, Values]:
        """Return the values that mean 1 (or 0) by role; without a column they are for both."""
        by_column = meaning if isinstance(meaning, Mapping) else {"": meaning}
        by_role: dict[str, list[Value]] = {role: [] for role in MARKED_ROLES}
        for column, column_values in by_column.items():
            for value in as_tuple(column_values):
                roles, bare_value = self._roles_of_value(argument, column, value)
                for role in roles:
                    by_role[role].append(bare_value)
        return {role: unwrap_single(values) for role, values in by_role.items() if values}

    def _roles_of_value(
        self, argument: str, column: str, value: Any
    ) -> tuple[Sequence[str], Value]:
        """Return the roles that a value is for, and the value without its column.

        Without a column, ``"outcome=repaid"`` names the column as on the command line.
        """
        # A role's own word goes before a column of that name.
        role_of_column = {self.decision: "decision", self.outcome: "outcome"}
        role_of_column |= {"decision": "decision", "outcome": "outcome"}
        if self.random_accepts is not None:
            role_of_column |= dict.fromkeys(
                (self.random_accepts, "random_accepts"), "random_accepts"
            )
        if _is_open_choice(str(value)):
            raise InvalidInput(f"{argument!r}: replace {value} by the one that is meant")
        # A value may itself contain "=", so only a known column before it counts.
        column_before, equals, value_after = str(value).partition("=")
        if not column and equals and column_before in role_of_column:
            return (role_of_column[column_before],), value_after
        if not isinstance(value, Value):
            raise InvalidInput(
                f"{argument!r} must be a value such as 'yes', a list of values, or either "
                f"by column such as {{'outcome': 'repaid'}}; got {value!r}"
            )
        if column:
            if column not in role_of_column:
                raise UnknownName(f"key of {argument!r}", column, role_of_column)
            return (role_of_column[column],), value
        if str(value) in ("0", "1", "True", "False"):
            # Both columns may hold them, with opposite meanings.
            fix = Fix(argument, (value,), role="outcome")
            details = {"argument": argument, "value": value}
            raise InvalidReading(Problem("bit-without-column", details, (fix,)))
        return ROLES, value

    def _sort_missing_values(self) -> MissingValues:
        """Return missing values by role if one of them names its column, else as they were given.

        Values without a column have the role :data:`EVERY_ROLE`.
        """
        given = self.missing_values
        by_column = given if isinstance(given, Mapping) else {EVERY_ROLE: given}
        by_role: dict[str, list[Any]] = {}
        for column, column_values in by_column.items():
            for value in as_tuple(column_values):
                role, bare_value = self._role_of_missing_value(column, value)
                by_role.setdefault(role, []).append(bare_value)
        return by_role if any(by_role) else given

    def _role_of_missing_value(self, column: str, value: Any) -> tuple[str, Any]:
        """Return the role that a missing value is for, and the value without its column."""
        if _is_open_choice(str(value)):
            raise InvalidInput(f"'missing_values': replace {value} by the values that are meant")
        role_of_column = {self.decision: "decision", self.outcome: "outcome"}
        role_of_column |= {"decision": "decision", "outcome": "outcome"}
        if column:
            if column not in role_of_column:
                raise UnknownName("key of 'missing_values'", column, role_of_column)
            return role_of_column[column], value
        # As in _roles_of_value, only a known column before "=" counts.
        column_before, equals, value_after = str(value).partition("=")
        if equals and column_before in role_of_column:
            return role_of_column[column_before], value_after
        return EVERY_ROLE, value

    def _refuse_contradictions(self) -> None:
        """Raise if a value was said to mean something and to stand for none, in the same column."""
        in_every_role = self.missing_values_for(EVERY_ROLE)
        for role in ROLES:
            for argument in MEANINGS:
                explained_keys = self._explained_keys(role, argument)
                for value in self.missing_values_for(role):
                    if key_of(value) in explained_keys:
                        raise _contradiction(value, argument, self.column_of(role))
        for value in in_every_role:
            # Without a column it stands for none where it has no meaning. Here that is nowhere.
            if all(key_of(value) in self._explained_keys(role, *MEANINGS) for role in ROLES):
                argument = next(
                    argument
                    for argument in MEANINGS
                    if key_of(value) in self._explained_keys("decision", argument)
                )
                raise _contradiction(value, argument, self.decision)

    @property
    def groups(self) -> tuple[str, ...]:
        """The columns of strata, if there are any, and the group columns."""
        return (*as_tuple(self.within), *as_tuple(self.group))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that rows are counted by, groups first."""
        optional_columns = (self.random_accepts, self.cohort, self.decider)
        # One column may have two roles, such as the stratum and the cohort; it is counted by once.
        return _distinct(*self.groups, self.decision, self.outcome, *optional_columns)

    @property
    def against(self) -> tuple[str, ...]:
        """The columns that the chance of random accepts is tested against."""
        # A programme that ran for a season only shows in dates, so these are tested unasked.
        date_column = self.date if self.random_accepts else None
        return _distinct(*as_tuple(self.random_accepts_against), date_column)

    @property
    def used(self) -> tuple[str, ...]:
        """Every column that is read."""
        return _distinct(*self.columns, *self.against, self.id, self.date)

    @property
    def new_group_of_value(self) -> dict[str, str]:
        """Value of a group column -> the group that it was merged into."""
        assert isinstance(self.merge_groups, Mapping)  # since __post_init__
        return {
            value: name for name, values in self.merge_groups.items() for value in as_tuple(values)
        }

    def column_of(self, role: Role) -> str:
        """Return the column of decisions or of outcomes."""
        return self.decision if role == "decision" else self.outcome

    def explained_values(self, argument: MeaningArgument, role: str) -> tuple[Value, ...]:
        """Return the values of a role that were said to mean 1 (``positive``) or 0."""
        by_role = self.positive if argument == "positive" else self.negative
        assert isinstance(by_role, Mapping)  # since __post_init__
        return as_tuple(by_role.get(role))

    def missing_values_for(self, role: str) -> tuple[Value, ...]:
        """Return the values that were said to stand for none in the column of a role alone.

        Of :data:`EVERY_ROLE` these are the values that were named without a column.
        """
        if isinstance(self.missing_values, Mapping):
            return as_tuple(self.missing_values.get(role))
        return as_tuple(self.missing_values) if role == EVERY_ROLE else ()

    def missing_words(self, role: Role) -> MissingWords:
        """Return which values in the column of a role stand for none."""
        return MissingWords(
            explained=frozenset(self._explained_keys(role, *MEANINGS)),
            of_column=tuple(map(key_of, self.missing_values_for(role))),
            of_table=tuple(map(key_of, self.missing_values_for(EVERY_ROLE))),
        )

    def _explained_keys(self, role: Role, *arguments: MeaningArgument) -> set[str]:
        """Return the keys of the values that were said to mean 1, 0 or either."""
        return {
            key_of(value)
            for argument in arguments
            for value in self.explained_values(argument, role)
        }

    def with_fixes(self, fixes: Sequence[Fix]) -> ReadOptions:
        """Return the options with fixes added to what was said before."""
        changes: dict[str, Any] = {}
        # Lists of their own, because fixes of several problems are added up.
        for argument in MEANINGS:
            changes[argument] = {
                role: [*self.explained_values(argument, role)] for role in MARKED_ROLES
            }
        missing_by_role = {role: [*self.missing_values_for(role)] for role in (EVERY_ROLE, *ROLES)}
        # Meanings and missing values are added to; every other argument has one value.
        for fix in fixes:
            if fix.argument == "missing_values":
                # What is said of one column is no longer said of every column.
                missing_by_role[EVERY_ROLE] = [
                    value
                    for value in missing_by_role[EVERY_ROLE]
                    if key_of(value) not in set(map(key_of, fix.values))
                ]
                missing_by_role[fix.role] += fix.values
            elif fix.role:
                changes[fix.argument][fix.role] += fix.values
            else:
                changes[fix.argument] = fix.argument_value
        changes["missing_values"] = simplify_missing(missing_by_role)
        return replace(self, **changes)

    def all_arguments(self) -> dict[str, Any]:
        """Return every argument of :meth:`equipoise.History.read` but the source, by its name."""
        return {
            "group": self.group,
            "within": self.within,
            "decision": self.decision,
            "outcome": self.outcome,
            "positive": self.positive,
            "negative": self.negative,
            "missing_values": self.missing_values,
            "missing_group": self.missing_group,
            "merge_groups": self.merge_groups,
            "max_groups": self.max_groups,
            "denied_outcomes": self.denied_outcomes,
            "undecided": self.undecided,
            "unknown": self.unknown,
            "cohort": self.cohort,
            "random_accepts": self.random_accepts,
            "random_accepts_against": self.random_accepts_against,
            "decider": self.decider,
            "min_cases": self.min_cases,
            "id": self.id,
            "repeated": self.repeated,
            "date": self.date,
            "since": self.since,
            "until": self.until,
            "seed": self.seed,
            "table": self.table,
            "query": self.query,
            "encoding": self.encoding,
            "outcomes": self.outcomes,
            "on": self.on,
            "latest": self.latest,
            "preset": self.preset,
        }

    @property
    def given_arguments(self) -> dict[str, Any]:
        """The arguments that are not at their defaults, and that no preset says."""
        # What a preset says is left out: a person who reads the call sees what this table adds.
        preset = load_preset(self.preset)
        arguments = without_defaults(self.all_arguments())
        for name, said in preset.items():
            value = arguments.get(name)
            if name == "missing_values":  # those of a preset and of a caller are added up
                by_role = {
                    role: _without_listed(self.missing_values_for(role), said, role)
                    for role in (EVERY_ROLE, *ROLES)
                }
                arguments[name] = simplify_missing(by_role)
            elif isinstance(value, Mapping) and isinstance(said, Mapping):
                arguments[name] = _without_same(value, said)
            elif value == said:
                del arguments[name]
        return without_defaults(arguments)


def _without_listed(values: Sequence[Any], said: Any, role: str) -> list[Any]:
    """Return the missing values of a role that a preset does not list for it."""
    by_role = said if isinstance(said, Mapping) else {EVERY_ROLE: said}
    listed = as_tuple(by_role.get(role))
    return [value for value in values if value not in listed]


def _without_same(by_role: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a mapping that do not say the same as another one."""
    return {
        role: values
        for role, values in by_role.items()
        if as_tuple(values) != as_tuple(said.get(role))
    }


DEFAULTS: Mapping[str, Any] = {option.name: option.default for option in fields(ReadOptions)}
"""Argument -> its value where nothing is said."""


def places_of(source: object) -> list[str]:
    """Return paths and addresses; none if the source is something else."""
    parts = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(parts, list | tuple):
        return []
    return [os.fspath(part) for part in parts if isinstance(part, str | os.PathLike)]


def without_defaults(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are not at their defaults."""

    def is_not_default(argument: str, value: Any) -> bool:
        # One column and a list of one column are the same.
        return value is not None and as_tuple(value) != as_tuple(DEFAULTS.get(argument))

    return {name: value for name, value in arguments.items() if is_not_default(name, value)}


def simplify_missing(by_role: Mapping[str, Sequence[Any]]) -> MissingValues:
    """Return missing values by role as an argument: a list if none of them names its column."""
    present = {role: list(values) for role, values in by_role.items() if values}
    return present if set(present) - {EVERY_ROLE} else present.get(EVERY_ROLE, ())


def _contradiction(value: Any, argument: str, column: str) -> InvalidReading:
    names = {"value": str(value), "argument": argument, "column": column}
    return InvalidReading(Problem("missing-and-explained", names))


def _is_open_choice(text: str) -> bool:
    """Return whether a value is a placeholder such as ``<repaid | default>``, still to be chosen.

    No regular expression: on text that a browser sent its time would grow with the third power.
    """
    if text.endswith(f"<{OTHERS}>"):
        return True
    start = text.find("<")
    return start >= 0 and text.endswith(">") and " | " in text[start + 2 : -2]


def _distinct(*columns: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(column for column in columns if column is not None))


def as_tuple(values: Any) -> tuple[Any, ...]:
    """Return one value, several or None as a tuple."""
    if values is None:
        return ()
    is_single = isinstance(values, str) or not hasattr(values, "__iter__")
    return (values,) if is_single else (*values,)


def _values_by_new_group(merges: MergedGroups) -> dict[str, Any]:
    """Return the values that make each new group.

    Raises
    ------
    InvalidInput
        If a text has no ``=``, or a value is in two new groups.
    """
    by_group: dict[str, list[str]] = {}
    if isinstance(merges, Mapping):
        for name, values in merges.items():
            by_group.setdefault(str(name), []).extend(map(str, as_tuple(values)))
    else:
        for text in as_tuple(merges):
            name, equals, value = str(text).partition("=")
            if not (name and equals and value):
                raise InvalidInput(
                    "'merge_groups' must say which value joins which new group, as in "
                    f"'other=Samoan'; got {text!r}"
                )
            by_group.setdefault(name, []).append(value)
    # A value in two new groups would count its people twice.
    merged_values = [value for values in by_group.values() for value in values]
    for value in merged_values:
        if merged_values.count(value) > 1:
            raise InvalidInput(f"'merge_groups' names {value!r} twice")
    return {name: unwrap_single(values) for name, values in by_group.items()}


def split_key(on: str | None) -> tuple[str, str]:
    """Return the columns that identify people in both tables: ``"uli"`` or ``"uli=loan_id"``."""
    person_column, _, outcome_key = str(on).partition("=")
    return person_column, outcome_key or person_column


def unwrap_single(values: Sequence[Any]) -> Any:
    """Return a single value as it is, several as a list."""
    return values[0] if len(values) == 1 else list(values)
