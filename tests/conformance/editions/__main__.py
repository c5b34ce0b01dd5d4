"""Write the small ledger of the present edition of the statistics, once, before it is released."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from equipoise.comparison import Compare
from equipoise.errors import Conflict
from equipoise.evidence import EDITION
from equipoise.ledger import LiveAudit
from equipoise.protocol import Want
from tests.conformance.ledgers import QUESTION, create, people

HERE = Path(__file__).parent


def fill(ledger: str) -> None:
    """Let everything happen that a ledger records, and let an adaptive audit begin."""
    live = create(
        ledger, "loans", budget=20_000, approvals=("corrected",), lottery=0.8, actor="anna"
    )
    wanted = ask_all(live)
    for person, outcome in wanted[:-6]:
        live.tell(person, outcome)
    with suppress(Conflict):
        live.tell(wanted[0][0], 1 - wanted[0][1])
    proposed = live.correct(wanted[0][0], 1 - wanted[0][1], "a typing error")
    assert proposed.number is not None
    live.acting_as("bert").approve(proposed.number)
    live.executed(wanted[-6][0])
    live.withdraw(wanted[-5][0])
    live.overdue(days=0)
    live.write_off(wanted[-4][0])
    live.erase(wanted[1][0])
    live.set_budget(25_000, "more money")
    live.set_limits(50, why="more hands")
    live.pause("a holiday", key="first pause")
    live.resume("back")
    live.scrub()
    adaptive = create(ledger, "adaptive", audit="adaptive", actor="anna")
    adaptive.tell_many(ask_all(adaptive)[:-3])
    below = replace(QUESTION, compare=Compare(against="A", direction="below"))
    compared = create(ledger, "compared", audit="adaptive", question=below, actor="anna")
    compared.tell_many(ask_all(compared)[:-3])
    for audit in (live, adaptive, compared):
        audit.close_ledger()


def ask_all(live: LiveAudit) -> list[tuple[str, int]]:
    """Ask about forty people; return whose outcome is wanted, with it."""
    return [
        (person, outcome)
        for person, group, decision, outcome in people(40)
        if live.ask(person, group, decision).want is Want.LABEL
    ]


def main() -> None:
    """Write the file; refuse to change what is released."""
    path = HERE / f"edition-{EDITION}.db"
    if path.exists():
        raise SystemExit(f"{path} is there already; a released ledger is never made again")
    fill(str(path))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("VACUUM")


if __name__ == "__main__":
    main()
