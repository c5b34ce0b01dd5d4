"""Problems of a table, notes on it, and what would fix it, as values.

A test or a program asks for ``problem.code`` and ``problem.fields["column"]``, a form fills itself
in from ``problem.fixes``, and a person reads one of the texts that the modules ``python``,
``shell`` and ``form`` beside this one make of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True)
class OpenChoice:
    """A value that only a person can choose; the first choice is the one that is tried."""

    choices: tuple[str, ...]

    def __str__(self) -> str:
        return self.choices[0]


OTHERS = OpenChoice(("every other one",))
"""What is left of choices that were listed before, if these are several values."""
FixValue = str | int | float | OpenChoice


@dataclass(frozen=True)
class Fix:
    """An argument of :meth:`equipoise.History.read` that solves a problem, with its values.

    Parameters
    ----------
    argument
        The argument, such as ``"missing_group"``.
    values
        One value, or several for an argument that takes a list.
    role
        ``"decision"`` or ``"outcome"`` if the argument takes values by role, as ``"positive"``
        does. Empty for other arguments.
    is_list
        Whether Python writes even a single value as a list.

    Examples
    --------
    >>> Fix("positive", ("paid",), role="outcome").argument_value
    {'outcome': 'paid'}
    """

    argument: str
    values: tuple[FixValue, ...]
    role: str = ""
    is_list: bool = False

    @property
    def argument_value(self) -> Any:
        """The value as :meth:`equipoise.History.read` takes it."""
        is_single = len(self.values) == 1 and not self.is_list
        value = self.values[0] if is_single else list(self.values)
        return {self.role: value} if self.role else value

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, from which :meth:`from_dict` makes the fix again."""
        return {
            "argument": self.argument,
            "values": [plain_value(value) for value in self.values],
            "role": self.role,
            "is_list": self.is_list,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Fix:
        """Make a fix of what :meth:`to_dict` returned."""
        values = tuple(_value_from_plain(value) for value in data["values"])
        return cls(data["argument"], values, data["role"], data["is_list"])


@dataclass(frozen=True)
class Message:
    """Something to tell a person: a stable code, named fields, and fixes that work together.

    ``str(message)`` is the text for Python.
    """

    code: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    fixes: tuple[Fix, ...] = ()

    def __str__(self) -> str:
        # Imported here because the module that describes messages needs this one.
        from equipoise.messages.python import describe

        return describe(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, from which :meth:`from_dict` makes the message again."""
        fixes = [fix.to_dict() for fix in self.fixes]
        return {"code": self.code, "fields": dict(self.fields), "fixes": fixes}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Make a message of what :meth:`to_dict` returned."""
        return cls(data["code"], data["fields"], tuple(map(Fix.from_dict, data["fixes"])))


class Problem(Message):
    """Something that prevents a table from being read."""


class Note(Message):
    """Something remarkable about a table that was read."""

    @classmethod
    def plain(cls, text: str) -> Note:
        """Make a note of a finished text."""
        return cls("plain", {"text": text})


@dataclass(frozen=True)
class ReadingProposal:
    """The arguments of :meth:`equipoise.History.read` with all fixes in place.

    Parameters
    ----------
    arguments
        The arguments that are not at their defaults, by name.
    places
        The paths and addresses of the table, without passwords. Empty if it is in memory.
    source_type
        What kind of Python object the source is.
    reads_table
        Whether these arguments were tried and read the table. Otherwise the last problem is left.
    """

    arguments: Mapping[str, Any]
    places: tuple[str, ...] = ()
    source_type: str = ""
    reads_table: bool = False

    @property
    def has_open_choices(self) -> bool:
        """Whether a person still has to choose between values."""
        return _has_open_choice(self.arguments)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, from which :meth:`from_dict` makes the proposal again."""
        return {
            "arguments": plain_value(self.arguments),
            "places": list(self.places),
            "source_type": self.source_type,
            "reads_table": self.reads_table,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ReadingProposal:
        """Make a proposal of what :meth:`to_dict` returned."""
        arguments = _value_from_plain(data["arguments"])
        return cls(arguments, tuple(data["places"]), data["source_type"], data["reads_table"])


def list_choices_once(value: Any, listed: set[frozenset[str]]) -> Any:
    """Return a value in which each list of choices is written in full once.

    A later choice among the same values keeps its first one alone, and several are :data:`OTHERS`.
    ``listed`` has the choices that were written before, and grows.
    """
    if isinstance(value, OpenChoice):
        choices = frozenset(value.choices)
        if choices in listed:
            return OpenChoice(value.choices[:1])
        listed.add(choices)
        return value
    if isinstance(value, Mapping):
        return {name: list_choices_once(part, listed) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return _list_others_once(value, listed)
    return value


def _list_others_once(values: Sequence[Any], listed: set[frozenset[str]]) -> list[Any]:
    """Return a list in which several choices that were listed before are written as one."""
    known = [
        value
        for value in values
        if isinstance(value, OpenChoice) and frozenset(value.choices) in listed
    ]
    if len(known) < 2:
        return [list_choices_once(value, listed) for value in values]
    others = [list_choices_once(value, listed) for value in values if value not in known]
    return [OTHERS, *others]


def plain_value(value: Any) -> Any:
    """Return a value of an argument as JSON can hold it; an open choice as ``{"choices": []}``."""
    if isinstance(value, OpenChoice):
        return {"choices": list(value.choices)}
    if isinstance(value, Mapping):
        return {name: plain_value(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(part) for part in value]
    # Dates are left, and History.read takes them as text, too.
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def _value_from_plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        if set(value) == {"choices"}:  # no argument of History.read has a key of this name
            return OpenChoice(tuple(value["choices"]))
        return {name: _value_from_plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_value_from_plain(part) for part in value]
    return value


def _has_open_choice(value: Any) -> bool:
    if isinstance(value, OpenChoice):
        return True
    parts: Sequence[Any] = ()
    if isinstance(value, Mapping):
        parts = [*value.values()]
    elif isinstance(value, list | tuple):
        parts = value
    return any(_has_open_choice(part) for part in parts)
