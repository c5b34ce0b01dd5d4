"""Worlds: populations whose every outcome is known, to try an audit in before paying for one."""

from equipoise.worlds.base import People, World
from equipoise.worlds.cells import CellWorld

__all__ = ["CellWorld", "People", "World"]
