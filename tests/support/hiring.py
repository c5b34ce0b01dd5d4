"""An employer's files, as two systems export them: ``python -m tests.support.hiring FOLDER``.

``applications.csv`` comes from the system for applicants: semicolons, ISO 8859-1, stages of the
process in words, groups that some applicants did not state, and a batch that was exported twice.
``reviews.csv`` comes from the personnel system: ratings by the number of the employee, several per
person. What an employer never has stands beside them: how rejected applicants would have done.
"""

from __future__ import annotations

import csv
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

__all__ = ["GROUPS", "Applicant", "applicants", "write_files"]

ROWS, SEED = 24_000, 5
GROUPS = {
    # share of applicants, hired and good, hired and not good, rejected who would do well
    "Women": (0.44, 0.17, 0.04, 0.30),
    "Men": (0.53, 0.26, 0.06, 0.20),
    "Non-binary": (0.004, 0.20, 0.05, 0.25),
    "": (0.026, 0.22, 0.05, 0.25),
}
SPELLED = {
    "Women": ("Women", "Women", "Women", "women", "Women "),
    "Men": ("Men", "Men", "Men", "MEN"),
    "Non-binary": ("Non-binary",),
    "": ("", "", "n/a", "Prefer not to say"),
}
NO_DECISION = ("Withdrawn", "Position cancelled", "On hold", "Duplicate profile")
GOOD_RATINGS = ("Exceeds", "Meets", "Meets", "Meets")
BAD_RATINGS = ("Below", "Left in probation")
CITIES = ("Zürich", "Genève", "Basel", "Bern")


@dataclass(frozen=True)
class Applicant:
    """Somebody, with what only an oracle knows of the rejected."""

    group: str  # empty if it was not stated
    hired: bool
    good: bool


def applicants(chance: random.Random) -> Iterator[Applicant]:
    """Yield people without end."""
    groups = list(GROUPS)
    shares = [GROUPS[group][0] for group in groups]
    while True:
        (group,) = chance.choices(groups, shares)
        _, good_share, bad_share, r = GROUPS[group]
        draw = chance.random()
        hired = draw < good_share + bad_share
        good = draw < good_share if hired else chance.random() < r
        yield Applicant(group, hired, good)


def write_files(folder: Path, rows: int = ROWS) -> tuple[Path, Path]:
    """Write ``applications.csv`` and ``reviews.csv``."""
    chance = random.Random(SEED)
    lines = []
    reviews = []
    for number, person in zip(range(rows), applicants(chance), strict=False):
        name = f"{number:06d}"
        day = date(2022, 1, 3) + timedelta(days=chance.randrange(730))
        stage = chance.choice(("Hired", "hired")) if person.hired else "Rejected"
        if not person.hired and chance.random() < 0.2:
            stage = "Not selected"
        if chance.random() < 0.04:
            stage = chance.choice(NO_DECISION)
        # Every fiftieth rejected applicant was drawn by lot for a trial year.
        is_trial = stage in ("Rejected", "Not selected") and chance.random() < 0.02
        group = chance.choice(SPELLED[person.group])
        # Swiss dates in the export, as the system's users see them
        shown_day = day.strftime("%d.%m.%Y")
        line = [name, shown_day, group, chance.choice(CITIES), stage, "yes" if is_trial else "no"]
        lines.append(line)
        if stage.casefold() == "hired" or is_trial:
            first = chance.choice(("Meets", "Below", "Not rated yet"))
            final = chance.choice(GOOD_RATINGS if person.good else BAD_RATINGS)
            if chance.random() < 0.03:
                final = "Not rated yet"
            reviews.append([name, f"{day.year + 1}-01-31", first])
            reviews.append([name, f"{day.year + 2}-01-31", final])
    lines += chance.sample(lines, 150)  # one batch was exported twice
    chance.shuffle(lines)
    # Staff who came before the system for applicants
    reviews += [[f"9{number:05d}", "2024-01-31", "Meets"] for number in range(40)]
    header = ["Application No", "Applied on", "Gender", "Ort", "Stage", "Trial year"]
    applications = folder / "applications.csv"
    with applications.open("w", newline="", encoding="iso-8859-1") as file:
        csv.writer(file, delimiter=";").writerows([header, *lines])
    ratings = folder / "reviews.csv"
    with ratings.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["personnel_no", "review_date", "rating"], *reviews])
    return applications, ratings


if __name__ == "__main__":
    write_files(Path(sys.argv[1]))
