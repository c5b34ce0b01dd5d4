"""Adult decided by a logistic regression: the counts that the package ships.

``python tools/adult_cells.py`` writes ``src/equipoise/worlds/adult/decided.csv``, the population
behind :func:`equipoise.data.adult_world`. Needs scikit-learn.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

import equipoise as eq
from equipoise.worlds import TableWorld
from equipoise.worlds.world import COUNT_NAMES

__all__ = ["FEATURES", "decided", "main"]

TABLE = Path(eq.worlds.__file__).parent / "adult" / "decided.csv"
COLUMNS = ("sex", "race")
FEATURES = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
)


def decided() -> dict[str, TableWorld]:
    """Return, by column of groups, what a classifier trained on the training part decides."""
    from sklearn.linear_model import LogisticRegression

    table = eq.data.adult()
    features = eq.data.encode(table, FEATURES)
    columns = table.project("income, part, sex, race").fetchnumpy()
    outcome, training = columns["income"] == ">50K", columns["part"] == "train"
    model = LogisticRegression(max_iter=1000).fit(features[training], outcome[training])
    approved = model.predict(features).astype(np.int8)
    return {
        group: TableWorld.from_frame(
            {group: columns[group], "income": outcome.astype(np.int8), "approved": approved},
            group=group,
            outcome="income",
            decision="approved",
        )
        for group in COLUMNS
    }


def main() -> None:
    """Write the table."""
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("column", "group", *COUNT_NAMES))
        for column, world in decided().items():
            for group, counts in zip(world.groups, world.cell_counts.tolist(), strict=True):
                writer.writerow((column, group, *counts))


if __name__ == "__main__":
    main()
