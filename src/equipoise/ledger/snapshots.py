"""An audit's memory as bytes, so that a program need not replay every event when it starts.

A snapshot is a shortcut, never the truth: it is ignored if it was made by another version of the
software or cannot be read, and :func:`fingerprint` proves that it equals a replay. Reading one
cannot run foreign code: only plain data and Equipoise's own classes are let in.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import zlib
from collections.abc import Mapping
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from equipoise._version import __version__
from equipoise.ledger.projection import Projection

__all__ = ["fingerprint", "made_by", "pack", "unpack"]

_DAMAGED = (ImportError, TypeError, EOFError, ValueError)

_ALLOWED = {
    ("builtins", "set"),
    ("builtins", "frozenset"),
    ("builtins", "complex"),
    ("builtins", "slice"),
    ("builtins", "range"),
    ("collections", "deque"),
    ("collections", "Counter"),
    ("collections", "OrderedDict"),
    ("collections", "defaultdict"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy._core.numeric", "_frombuffer"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy.core.numeric", "_frombuffer"),
    ("numpy.random._pickle", "__generator_ctor"),
    ("numpy.random._pickle", "__bit_generator_ctor"),
    ("numpy.random._pcg64", "PCG64"),
    ("numpy.random.bit_generator", "SeedSequence"),
    ("numpy.random.bit_generator", "__pyx_unpickle_SeedSequence"),
}


@cache
def made_by() -> str:
    """Return what tells the software that made a snapshot from any other: version and files."""
    root = Path(__file__).parents[1]
    files = sorted((str(p.relative_to(root)), p.stat().st_size) for p in root.rglob("*.py"))
    return f"{__version__}+{hashlib.sha256(repr(files).encode()).hexdigest()[:12]}"


def pack(projection: Projection) -> tuple[str, bytes]:
    """Return a snapshot's checksum and bytes."""
    state = zlib.compress(pickle.dumps(projection, protocol=5), level=1)
    return hashlib.sha256(state).hexdigest(), state


def unpack(digest: str, state: bytes) -> Projection | None:
    """Return the projection, or None if the bytes are not a snapshot that this program made."""
    if hashlib.sha256(state).hexdigest() != digest:
        return None
    try:
        loaded = _Reader(io.BytesIO(zlib.decompress(state))).load()
    except (pickle.UnpicklingError, zlib.error, LookupError, AttributeError, *_DAMAGED):
        return None
    return loaded if isinstance(loaded, Projection) else None


def fingerprint(projection: Projection) -> str:
    """Return a hash of everything that a projection knows, equal for equal states."""
    digest = hashlib.sha256()
    _feed(digest.update, projection.knowledge())
    return digest.hexdigest()


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module.split(".")[0] == "equipoise":
            found = super().find_class(module, name)
            if isinstance(found, type):
                return found
        elif (module, name) in _ALLOWED:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"a snapshot must not hold {module}.{name}")


def _feed(update: Any, value: Any) -> None:
    update(type(value).__qualname__.encode())
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        update(repr(value).encode())
    elif isinstance(value, Enum):
        update(value.name.encode())
    elif isinstance(value, np.ndarray):
        update(repr((value.dtype.str, value.shape)).encode())
        update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, np.generic):
        update(repr(value.item()).encode())
    elif isinstance(value, np.random.Generator):
        _feed(update, value.bit_generator.state)
    elif isinstance(value, Mapping) and not hasattr(value, "__dict__"):
        items = sorted(value.items(), key=lambda pair: repr(pair[0]))
        update(str(len(items)).encode())
        for key, item in items:
            _feed(update, key)
            _feed(update, item)
    elif isinstance(value, set | frozenset):
        for item in sorted(map(repr, value)):
            update(item.encode())
    elif callable(value) and hasattr(value, "__qualname__"):
        update(value.__qualname__.encode())
    else:
        _feed_object(update, value)


def _feed_object(update: Any, value: Any) -> None:
    if "__getstate__" in vars(type(value)):  # says itself what it knows; the rest follows
        _feed(update, value.__getstate__())
        return
    if is_dataclass(value) or hasattr(value, "__dict__") or hasattr(value, "__slots__"):
        names = [*getattr(value, "__dict__", ()), *getattr(type(value), "__slots__", ())]
        for name in sorted(set(names)):
            if hasattr(value, name):
                update(name.encode())
                _feed(update, getattr(value, name))
    if isinstance(value, Mapping):
        for key in value:
            _feed(update, key)
            _feed(update, value[key])
    elif hasattr(value, "__iter__"):
        items = list(value)
        update(str(len(items)).encode())
        for item in items:
            _feed(update, item)
