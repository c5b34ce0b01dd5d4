"""Write the files of a bank that never heard of clean data: ``python messy_bank.py``.

``applications.csv`` is the past, as it was exported. ``arrivals-N.csv`` are the people of the N-th
month of the audit, with the decisions that the bank took. ``outcomes-N.csv`` says how each of them
would turn out: a bank learns only those that it asks for, one is told all to play its part.
"""

from __future__ import annotations

import csv
import random
from datetime import date, timedelta

SHARES = {"F": (0.38, 0.06, 0.45), "M": (0.55, 0.08, 0.30)}  # p1, p0, r
SPELLED = {"F": ["F", "F", "F", "female", "f "], "M": ["M", "M", "M", "male", " m"]}


def person(chance: random.Random) -> tuple[str, bool, bool]:
    """Draw somebody: sex, decision, outcome."""
    sex = chance.choice("FM")
    p1, p0, r = SHARES[sex]
    draw = chance.random()
    if draw < p1 + p0:
        return sex, True, draw < p1
    return sex, False, chance.random() < r


def past(chance: random.Random, rows: int = 30_000) -> list[list[str]]:
    """Draw the past and spoil it."""
    made = []
    for number in range(rows):
        sex, approved, good = person(chance)
        day = date(2022, 1, 1) + timedelta(days=chance.randrange(3 * 365))
        decision = chance.choice(["approved", "Approved"] if approved else ["declined", "DECLINED"])
        status = ("repaid" if good else "defaulted") if approved else ""
        if approved and day.year == 2024 and chance.random() < 0.6:
            status = "running"
        if chance.random() < 0.02:
            decision, status = "withdrawn by customer", ""
        if not approved and chance.random() < 0.003:
            status = "repaid"  # granted after all by somebody at a branch
        spelled = "" if chance.random() < 0.01 else chance.choice(SPELLED[sex])
        made.append([f"A{number:06}", day.isoformat(), spelled, decision, status])
    made += chance.sample(made, 200)  # one batch was exported twice
    chance.shuffle(made)
    return made


def write(name: str, header: list[str], rows: list[list[str]]) -> None:
    """Write a table."""
    with open(name, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def main() -> None:
    """Write everything."""
    chance = random.Random(7)
    header = ["application", "applied_on", "sex", "decision", "status"]
    write("applications.csv", header, past(chance))
    for month in range(1, 7):
        arrivals, outcomes = [], []
        for number in range(300):
            sex, approved, good = person(chance)
            name = f"2025-{month:02}-{number:04}"
            arrivals.append([name, sex, str(int(approved))])
            outcomes.append([name, str(int(good))])
        write(f"arrivals-{month}.csv", ["person", "group", "decision"], arrivals)
        write(f"outcomes-{month}.csv", ["person", "outcome"], outcomes)


if __name__ == "__main__":
    main()
