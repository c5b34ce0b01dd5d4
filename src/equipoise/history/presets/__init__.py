"""Readings of layouts that many lenders share, as commented TOML files.

A preset has the entries of a kept reading but no source. What a caller says goes before it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from equipoise.errors import BadData, UnknownName

DESCRIPTION = "description"


def preset_names() -> dict[str, str]:
    """Return the presets of this package with their descriptions."""
    folder = resources.files(__name__)
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".toml"))
    return {
        name.removesuffix(".toml"): str(_load(name.removesuffix(".toml")).get(DESCRIPTION, ""))
        for name in names
    }


def load_preset(name: str | None) -> dict[str, Any]:
    """Return the arguments of a preset, by its name or by the path of one's own; {} for None.

    Raises
    ------
    UnknownName
        If there is no preset of this name.
    BadData
        If the file cannot be read.
    """
    entries = {} if name is None else dict(_load(str(name)))
    entries.pop(DESCRIPTION, None)
    return entries


def _load(name: str) -> Mapping[str, Any]:
    try:
        if name.endswith(".toml"):
            return tomllib.loads(Path(name).read_text("utf-8"))
        file = resources.files(__name__) / f"{name}.toml"
        if not name.isidentifier() or not file.is_file():
            raise UnknownName("preset", name, preset_names(), remedy="Or the path of a .toml file")
        return tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        if isinstance(error, UnknownName):
            raise
        raise BadData(f"cannot read the preset {name!r}: {error}") from None
