"""JSON in and out for frozen dataclasses, driven by their type hints."""

from __future__ import annotations

import json
import math
import types
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, ClassVar, Self, Union, get_args, get_origin, get_type_hints

from equipoise.errors import UnknownName


class JsonValue:
    """Mixin: ``to_dict``, ``to_json``, ``from_dict``, ``from_json`` for a dataclass.

    The names of the fields are the names in JSON. Ledgers store them and programs read them, so a
    field is renamed only if the stored name shall change as well.
    """

    _optional: ClassVar[Collection[str]] = ()
    """Fields that are left out of the data where their value is empty or 0."""

    def to_dict(self) -> dict[str, Any]:
        """Return the value as plain dictionaries, lists, strings and numbers."""
        data = {}
        for name in _constructor_fields(type(self)):
            value = to_plain_data(getattr(self, name))
            if value or name not in self._optional:
                data[name] = value
        return data

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the value as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Build the value from what ``to_dict`` gave."""
        # An unknown field is refused, not dropped: it may be a misspelt option.
        names = _constructor_fields(cls)
        for name in sorted(set(data).difference(names)):
            raise UnknownName(f"field of {cls.__name__}", name, sorted(names))
        hints = _field_types(cls)  # type: ignore[arg-type]  # every class is hashable
        return cls(**{name: _build(hints[name], value) for name, value in data.items()})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Build the value from JSON text."""
        return cls.from_dict(json.loads(text))


@cache
def _field_types(cls: type) -> Mapping[str, Any]:
    """Return the types of a class's fields by name.

    They are kept, because working them out takes longer than all the rest of reading a command.
    """
    return get_type_hints(cls)


def _constructor_fields(cls: type) -> list[str]:
    """Return the names of a dataclass's fields that its constructor takes."""
    return [field.name for field in fields(cls) if field.init]


def to_plain_data(value: Any) -> Any:
    """Turn a value into what :mod:`json` can write; infinity and "not a number" become null."""
    if isinstance(value, JsonValue):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain_data(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):  # JSON's keys are texts
        return {str(key): to_plain_data(element) for key, element in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain_data(element) for element in value]
    if hasattr(value, "tolist"):  # a numpy array or scalar
        return to_plain_data(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):  # JSON has no such numbers
        return None
    return value


def _build(hint: Any, value: Any) -> Any:
    """Turn plain data into a value of the type that a hint names."""
    if value is None:
        return None
    origin = get_origin(hint)
    if origin is None:
        return _build_plain_type(hint, value)
    arguments = get_args(hint)
    if origin in (Union, types.UnionType):
        # Of "X | None" this is X. Of several types it is the first; where data of another type
        # are possible, as in Question, the constructor reads them.
        first_type = next(argument for argument in arguments if argument is not type(None))
        return _build(first_type, value)
    if origin is tuple:
        return tuple(_build(arguments[0], element) for element in value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: _build(arguments[1], element) for key, element in value.items()}
    return value


def _build_plain_type(hint: Any, value: Any) -> Any:
    """Turn plain data into an enumeration or a dataclass; leave other types as they are."""
    if not isinstance(hint, type):
        return value
    if issubclass(hint, Enum):
        return hint(value)
    if issubclass(hint, JsonValue):
        return hint.from_dict(value)
    return hint(**value) if is_dataclass(hint) else value
