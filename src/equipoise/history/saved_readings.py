"""Readings that are kept in TOML files: where a table is, and how it is read."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from equipoise._output_files import refuse_overwriting, replace_file
from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.history.options import (
    MEANINGS,
    PASSWORD,
    ReadOptions,
    as_tuple,
    places_of,
    unwrap_single,
    without_defaults,
)


def load_reading(source: object, options: Mapping[str, Any]) -> tuple[object, ReadOptions]:
    """Return a source and what is said of it; a file of :func:`save_reading` says both.

    Options that are given beside such a file, and are not at their defaults, go before its own;
    values that mean 1 or 0 do so role by role.
    """
    kept: dict[str, Any] = {}
    places = places_of(source)
    if len(places) == 1 and places[0].endswith(".toml"):
        path = Path(places[0])
        try:
            kept = tomllib.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise BadData(f"cannot read {str(path)!r}: {error}") from None
        known = ["source", *(f.name for f in fields(ReadOptions))]
        for name in kept:
            if name not in known:
                raise UnknownName(f"entry in {str(path)!r}", name, known)
        found = as_tuple(kept.pop("source", ()))
        source = [place if "://" in place else str(path.parent / place) for place in found]
    made = ReadOptions(**{**kept, **(said := without_defaults(options))})
    before = ReadOptions(**{**kept, **said, **{name: kept.get(name) for name in MEANINGS}})
    changes: dict[str, Any] = {n: {**getattr(before, n), **getattr(made, n)} for n in MEANINGS}
    return source, replace(made, **changes)


def save_reading(path: str | os.PathLike[str], source: object, options: Mapping[str, Any]) -> None:
    """Write a source and what is said of it to a file, which is read in place of both.

    Paths are kept relative to the file, so that it can move together with its table.
    """
    path = Path(path)
    if path.suffix != ".toml":
        raise InvalidInput(f"a reading is kept in a file ending in .toml; got {str(path)!r}")
    source, said = load_reading(source, options)
    places = places_of(source)
    if any(map(PASSWORD.search, places)):
        raise InvalidInput(
            "an address with a password cannot be kept in a file; leave the password out and give "
            "it as the database's client finds it, as in PGPASSWORD or ~/.pgpass"
        )
    near = [p if "://" in p else Path(os.path.relpath(p, path.parent)).as_posix() for p in places]
    entries = {"source": unwrap_single(near), **said.given}
    lines = [f"{name} = {_format_toml(value)}" for name, value in entries.items()]
    refuse_overwriting(path, places, "a source of past decisions")
    with replace_file(path) as file:
        file.write("\n".join([*lines, ""]))


def _format_toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} = {_format_toml(own)}" for name, own in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")
