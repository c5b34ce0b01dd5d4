"""JSON in and out for frozen dataclasses, driven by their type hints."""

from __future__ import annotations

import json
import math
import types
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, ClassVar, Self, Union, get_args, get_origin, get_type_hints

from equipoise.errors import UnknownName


class JsonValue:
    """Mixin: ``to_dict``, ``to_json``, ``from_dict``, ``from_json`` for a dataclass."""

    _optional: ClassVar[Collection[str]] = ()  # fields that are left out where there is nothing

    def to_dict(self) -> dict[str, Any]:
        """Return the value as plain dictionaries, lists, strings and numbers."""
        own = {f.name: to_plain_data(getattr(self, f.name)) for f in fields(self) if f.init}  # type: ignore[arg-type]
        return {name: value for name, value in own.items() if value or name not in self._optional}

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the value as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Build the value from what ``to_dict`` gave."""
        hints = get_type_hints(cls)
        names = {f.name for f in fields(cls) if f.init}  # type: ignore[arg-type]
        for name in sorted(set(data) - names):
            raise UnknownName(f"field of {cls.__name__}", name, sorted(names))
        return cls(**{name: _build(hints[name], value) for name, value in data.items()})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Build the value from JSON text."""
        return cls.from_dict(json.loads(text))


def to_plain_data(value: Any) -> Any:
    """Turn a value into what :mod:`json` can write; a number without limit, or none, is null."""
    if isinstance(value, JsonValue):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain_data(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(k): to_plain_data(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain_data(v) for v in value]
    if hasattr(value, "tolist"):  # a numpy array or scalar
        return to_plain_data(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _build(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _build(next(a for a in arguments if a is not type(None)), value)
    if origin is tuple:
        return tuple(_build(arguments[0], v) for v in value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {k: _build(arguments[1], v) for k, v in value.items()}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(value)
    if is_dataclass(hint) and isinstance(hint, type):
        return hint.from_dict(value) if issubclass(hint, JsonValue) else hint(**value)
    return value
