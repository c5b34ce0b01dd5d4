"""Write the files of a bank that never heard of clean data: ``python messy_bank.py``.

``applications.csv`` is the past, as it was exported. ``arrivals-N.csv`` are the people of the N-th
month of the audit, with the decisions that the bank took.

``python messy_bank.py outcomes-N.csv`` plays the months after: it writes how the approved of the
N-th month turned out, and those of its denied whose denial was overridden because ``wanted-N.csv``
says so. Of everybody else a bank learns nothing.
"""

from __future__ import annotations

import csv
import random
import sys
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


def arrivals(month: int) -> dict[str, tuple[str, bool, bool]]:
    """Return a month's people: name -> sex, decision, outcome."""
    chance = random.Random(month)
    return {f"2025-{month:02}-{number:04}": person(chance) for number in range(300)}


def outcomes(month: int, overridden: set[str]) -> list[tuple[str, int]]:
    """Return what the bank learns of a month's people."""
    return [
        (name, int(good))
        for name, (_, approved, good) in arrivals(month).items()
        if approved or name in overridden
    ]


def main() -> None:
    """Write the bank's files, or the outcomes of a month."""
    if len(sys.argv) > 1:
        month = int(sys.argv[1].removeprefix("outcomes-").removesuffix(".csv"))
        with open(f"wanted-{month}.csv", encoding="utf-8") as file:
            wanted = {row["person"] for row in csv.DictReader(file) if row["want"] == "LABEL"}
        told = [[name, str(good)] for name, good in outcomes(month, wanted)]
        write(sys.argv[1], ["person", "outcome"], told)
        return
    header = ["application", "applied_on", "sex", "decision", "status"]
    write("applications.csv", header, past(random.Random(7)))
    for month in range(1, 7):
        rows = [[name, sex, str(int(yes))] for name, (sex, yes, _) in arrivals(month).items()]
        write(f"arrivals-{month}.csv", ["person", "group", "decision"], rows)


if __name__ == "__main__":
    main()
