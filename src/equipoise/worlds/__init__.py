"""Worlds: populations whose every outcome is known, to try an audit in before paying for one."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from equipoise.worlds.lower_bound_pair import lower_bound_pair
from equipoise.worlds.table import TableWorld, read_world
from equipoise.worlds.world import CellWorld, People, Person, World

if TYPE_CHECKING:
    from equipoise.worlds.mixture import GroupMixture, MixtureWorld

__all__ = [
    "CellWorld",
    "GroupMixture",
    "MixtureWorld",
    "People",
    "Person",
    "TableWorld",
    "World",
    "lower_bound_pair",
    "read_world",
]


def __getattr__(name: str) -> object:
    # Mixture worlds pull in scipy's special functions: only for those who use them.
    if name in ("GroupMixture", "MixtureWorld"):
        return getattr(import_module("equipoise.worlds.mixture"), name)
    raise AttributeError(f"module 'equipoise.worlds' has no attribute {name!r}")
