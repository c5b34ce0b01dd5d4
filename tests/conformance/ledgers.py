"""Audits in a ledger that end within a few hundred people."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

from equipoise.ledger import LiveAudit
from equipoise.protocol import Want
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld

WORLD = CellWorld.from_shares(
    {"A": (0.45, 0.15, 0.40, 0.5), "B": (0.15, 0.15, 0.70, 0.3)}, shares={"A": 0.7, "B": 0.3}
)
QUESTION = Question(gamma=0.1, epsilon=0.2, delta=0.1)
COSTS = Costs(feature=5, label=100, groups={"B": Costs(10, 200)})


def create(ledger: str, name: str = "loans", **options: Any) -> LiveAudit:
    """Create an RS-Audit, unless told otherwise."""
    options.setdefault("audit", "rs")
    if options["audit"] in ("rs", "baseline"):
        options.setdefault("options", {"tau": 20})
    past, question = WORLD.past(None, 0), options.pop("question", QUESTION)
    return LiveAudit.create(ledger, name, past, question, COSTS, **options)


def people(size: int, seed: int = 0) -> list[tuple[str, str, int, int]]:
    """Return ``(pseudonym, group, decision, outcome)`` of people in order of arrival."""
    drawn = WORLD.draw(size, seed)
    return [(f"p{i}", p.group, p.decision, p.outcome) for i, p in enumerate(drawn)]


def run(live: LiveAudit, size: int, *, seed: int = 0, share_told: float = 1.0) -> None:
    """Let people arrive; tell some outcomes, out of order."""
    rng = random.Random(seed)
    waiting: list[tuple[str, int]] = []
    for person, group, decision, outcome in people(size, seed):
        if live.ask(person, group, decision).want is Want.LABEL:
            waiting.append((person, outcome))
        if waiting and rng.random() < share_told:
            live.tell(*waiting.pop(rng.randrange(len(waiting))))


@contextmanager
def writers_role(ledger: str) -> Iterator[str]:
    """Yield the address of a ledger in PostgreSQL for the recommended role of writers."""
    import psycopg

    with psycopg.connect(ledger, autocommit=True) as owner:
        owner.execute("DROP ROLE IF EXISTS equipoise_writer")
        owner.execute(files("equipoise.ledger").joinpath("writer_role.sql").read_bytes())
        owner.execute("ALTER ROLE equipoise_writer LOGIN PASSWORD 'secret'")
        try:
            yield ledger.replace("postgres:@", "equipoise_writer:secret@")
        finally:
            owner.execute("DROP OWNED BY equipoise_writer")
