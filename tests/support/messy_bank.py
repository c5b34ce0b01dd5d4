"""A bank's export of 50,000 applications: ``python -m tests.support.messy_bank FOLDER``.

Words for decisions and outcomes, spellings, withdrawn applications, loans that still run, races
that nobody wrote down, 120 applications that were exported twice, a date. What a bank never has
stands beside it: how everybody would have turned out, so that the true gap is known.
"""

from __future__ import annotations

import csv
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

__all__ = ["COLUMNS", "TRUE_GAP", "Applicant", "applicants", "write_past"]

COLUMNS = {"group": "race", "decision": "decision", "outcome": "status"}
HEADER = ("application", "applied_on", "race", "decision", "status")
ROWS, TWICE, SEED = 50_000, 120, 27
SHARES = {"White": (0.60, 0.10, 0.30), "Black": (0.40, 0.07, 0.40)}  # p1, p0, r
SPELLED = {"White": ("White", "White", "white "), "Black": ("Black", "Black", "BLACK")}
_RATES = {race: p1 / (p1 + (1 - p1 - p0) * r) for race, (p1, p0, r) in SHARES.items()}
TRUE_GAP = max(_RATES.values()) - min(_RATES.values())
"""Of equal opportunity."""


@dataclass(frozen=True)
class Applicant:
    """Somebody, with what only an oracle knows of the declined."""

    race: str  # empty if it was not stated
    approved: bool
    good: bool


def applicants(chance: random.Random) -> Iterator[Applicant]:
    """Yield people without end."""
    while True:
        race = "White" if chance.random() < 0.7 else "Black"
        p1, p0, r = SHARES[race]
        draw = chance.random()
        approved = draw < p1 + p0
        good = draw < p1 if approved else chance.random() < r
        yield Applicant("" if chance.random() < 0.01 else race, approved, good)


def write_past(folder: Path, size: int = ROWS) -> Path:
    """Write ``applications.csv``."""
    chance = random.Random(SEED)
    rows = []
    for number, person in zip(range(size - TWICE), applicants(chance), strict=False):
        day = date(2022, 1, 1) + timedelta(days=chance.randrange(3 * 365))
        decision = "Approved" if person.approved else "Declined"
        status = ("Paid" if person.good else "Default") if person.approved else ""
        if person.approved and day.year == 2024 and chance.random() < 0.1:
            status = chance.choice(["Open", ""])
        if chance.random() < 0.02:
            decision, status = "Withdrawn", ""
        race = chance.choice(SPELLED[person.race]) if person.race else ""
        rows.append((f"A{number:06}", day.isoformat(), race, decision, status))
    rows += chance.sample(rows, TWICE)
    chance.shuffle(rows)
    path = folder / "applications.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([HEADER, *rows])
    return path


if __name__ == "__main__":
    print(write_past(Path(sys.argv[1])))
