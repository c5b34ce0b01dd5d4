"""Worlds: populations whose every outcome is known, to try an audit in before paying for one."""

from equipoise.worlds.base import People, Person, World
from equipoise.worlds.cells import CellWorld
from equipoise.worlds.pair import lower_bound_pair

__all__ = ["CellWorld", "People", "Person", "World", "lower_bound_pair"]
