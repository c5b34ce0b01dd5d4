"""A lender's files in the layout of US HMDA data: ``python -m tests.support.hmda FOLDER``.

``lar.csv`` has 60,000 applications as a lender reports them, with action codes, derived race and
sex, and a pilot flag. ``performance.csv`` is another system's file: how loans went, by the same
identifier. What a lender never has stands beside them: how denied applicants would have repaid.
"""

from __future__ import annotations

import csv
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["GROUPS", "TRUE_GAP", "Applicant", "applicants", "write_files"]

ROWS, SEED = 60_000, 41
GROUPS = {
    # share of applicants, approved and repaid, approved and defaulted, denied who would repay
    "White": (0.70, 0.66, 0.06, 0.50),
    "Black or African American": (0.16, 0.46, 0.06, 0.55),
    "Asian": (0.139, 0.64, 0.06, 0.50),
    "": (0.001, 0.60, 0.06, 0.50),  # blank in the export: --missing-group "not stated"
}
COMPARED = [group for group in GROUPS if group]
_RATES = {
    group: good / (good + (1.0 - good - bad) * r)
    for group, (_, good, bad, r) in GROUPS.items()
    if group
}
TRUE_GAP = max(_RATES.values()) - min(_RATES.values())
"""Of equal opportunity, between the groups that are stated."""
UNDECIDED_ACTIONS = ("2", "4", "5", "6", "8")
LAR_HEADER = ("activity_year", "uli", "derived_race", "derived_sex", "action_taken",
              "loan_amount", "income", "pilot_flag")  # fmt: skip


@dataclass(frozen=True)
class Applicant:
    """Somebody, with what only an oracle knows of the denied."""

    race: str  # empty if it was not stated
    approved: bool
    good: bool


def applicants(chance: random.Random) -> Iterator[Applicant]:
    """Yield people without end."""
    races = list(GROUPS)
    shares = [GROUPS[race][0] for race in races]
    while True:
        (race,) = chance.choices(races, shares)
        _, good_share, bad_share, r = GROUPS[race]
        draw = chance.random()
        approved = draw < good_share + bad_share
        good = draw < good_share if approved else chance.random() < r
        yield Applicant(race, approved, good)


def write_files(folder: Path, rows: int = ROWS, *, months: int = 1) -> tuple[Path, Path]:
    """Write ``lar.csv`` and ``performance.csv``; with more months, a loan has a row for each."""
    chance = random.Random(SEED)
    lar = folder / "lar.csv"
    performance = folder / "performance.csv"
    with (
        lar.open("w", newline="", encoding="utf-8") as lar_file,
        performance.open("w", newline="", encoding="utf-8") as performance_file,
    ):
        applications = csv.writer(lar_file)
        loans = csv.writer(performance_file)
        applications.writerow(LAR_HEADER)
        loans.writerow(("uli", "month", "loan_status"))
        for number, person in zip(range(rows), applicants(chance), strict=False):
            uli = f"5493ULI{number:08d}"
            action = "1" if person.approved else "3"
            if chance.random() < 0.05:
                action = chance.choice(UNDECIDED_ACTIONS)
            sex = chance.choice(["Male", "Female", "Joint"])
            amount = 5_000 * chance.randrange(10, 120)
            is_pilot = action == "3" and chance.random() < 0.01
            flag = "Y" if is_pilot else "N"
            applications.writerow(
                (2023, uli, person.race, sex, action, amount, chance.randrange(20, 300), flag)
            )
            if action == "1":
                for month in range(1, months + 1):
                    is_last = month == months
                    status = ("Repaid" if person.good else "Defaulted") if is_last else "Current"
                    loans.writerow((uli, f"2024-{month:02d}-01", status))
        for number in range(25):  # loans of another branch, which are in no application
            loans.writerow((f"OTHER{number:04d}", "2024-01-01", "Repaid"))
    return lar, performance


if __name__ == "__main__":
    write_files(Path(sys.argv[1]))
