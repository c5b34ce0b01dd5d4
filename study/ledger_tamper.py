"""Tampering: every flipped, dropped, swapped or cut byte of an export is found."""

from __future__ import annotations

import argparse
import io
from collections.abc import Iterator
from itertools import combinations

from equipoise.ledger import LiveAudit
from equipoise.ledger.verify import Broken, verify
from equipoise.question import Costs, Question, Want
from equipoise.worlds import CellWorld

WORLD = CellWorld.from_shares({"A": (0.45, 0.15, 0.40, 0.5), "B": (0.15, 0.15, 0.70, 0.3)})


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--bits", type=int, default=8, help="bits of each byte to flip, up to 8")


def run(options: argparse.Namespace) -> str:
    export, head = small_export(options.people)
    tried, missed = 0, 0
    for changed in changes(export, options.bits):
        tried += 1
        missed += not is_found(changed, head)
    return f"{len(export):,} bytes, {tried:,} changes, {missed} not found"


def small_export(people: int) -> tuple[bytes, str]:
    """Return the export of a small audit and its head."""
    live = LiveAudit.create(
        "sqlite://",
        "tampered",
        WORLD.past(None, 0),
        Question(gamma=0.1, epsilon=0.2),
        Costs(feature=5, label=100),
        audit="rs",
        options={"tau": 5},
    )
    for i, person in enumerate(WORLD.draw(people, 0)):
        if live.ask(f"p{i}", person.group, person.decision).want is Want.LABEL:
            live.tell(f"p{i}", person.outcome)
    return b"".join(live.lines()), live.checkpoint().hash


def changes(export: bytes, bits: int) -> Iterator[bytes]:
    """Yield the export with every bit flip, byte and line drop, swap, and truncation."""
    for at in range(len(export)):
        for bit in range(bits):
            yield export[:at] + bytes([export[at] ^ (1 << bit)]) + export[at + 1 :]
        yield export[:at] + export[at + 1 :]
        yield export[:at]
        if at and export[at] != export[at - 1]:
            swapped = bytes([export[at], export[at - 1]])
            yield export[: at - 1] + swapped + export[at + 1 :]
    lines = export.splitlines(keepends=True)
    for i in range(len(lines)):
        yield b"".join(lines[:i] + lines[i + 1 :])
        yield b"".join([*lines[: i + 1], *lines[i:]])
    for i, j in combinations(range(len(lines)), 2):
        moved = list(lines)
        moved[i], moved[j] = moved[j], moved[i]
        yield b"".join(moved)


def is_found(export: bytes, head: str) -> bool:
    """Whether the change is found."""
    try:
        verify(io.BytesIO(export), head=head)
    except Broken:
        return True
    return False
