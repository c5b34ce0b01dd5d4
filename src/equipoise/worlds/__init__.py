"""Worlds: populations whose every outcome is known, to try an audit in before paying for one."""

from equipoise.worlds.base import People, Person, World
from equipoise.worlds.cells import CellWorld
from equipoise.worlds.pair import lower_bound_pair
from equipoise.worlds.read import read_world
from equipoise.worlds.table import TableWorld

__all__ = [
    "CellWorld",
    "People",
    "Person",
    "TableWorld",
    "World",
    "lower_bound_pair",
    "read_world",
]
