"""Audit a scikit-learn lender through the service.

Start `equipoise serve` in another window, then: python docs/start/lender_by_service.py
With tokens: python docs/start/lender_by_service.py http://127.0.0.1:8100 eqp_…
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.linear_model import LogisticRegression

import equipoise as eq
from equipoise.client import RemoteAudit
from equipoise.finding import Finding

rng = np.random.default_rng(7)


def applicants(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw groups, features and whether each would repay; B's incomes say less about it."""
    group = rng.choice(["A", "B"], number, p=[0.6, 0.4])
    good = rng.random(number) < 0.6
    noise = np.where(group == "A", 1.0, 1.8)
    income = np.where(good, 1.0, -1.0) - np.where(group == "A", 0.0, 0.5)
    features = np.column_stack([income + noise * rng.standard_normal(number), group == "B"])
    return group, features, good


def main(url: str = "http://127.0.0.1:8100", token: str | None = None) -> Finding:
    """Train a lender, let it decide, and audit what it decides."""
    _, features, good = applicants(4000)
    lender = LogisticRegression().fit(features, good)

    # The lender's own past: outcomes of the approved only.
    group, features, good = applicants(30_000)
    approved = lender.predict(features)
    past = {
        "group": group.astype(object),
        "approved": approved.astype(int),
        "repaid": np.where(approved, good.astype(float), np.nan),
    }
    history = eq.History.read(past, group="group", decision="approved", outcome="repaid")
    question = eq.Question("equal_opportunity", gamma=0.05, epsilon=0.1)
    name = f"scikit-learn lender {rng.bit_generator.random_raw():x}"
    costs = eq.Costs(feature=5, label=1000)
    with RemoteAudit.create(url, name, history, question, costs, token=token) as audit:
        for day in range(100):
            group, features, good = applicants(200)
            decisions = lender.predict(features)
            people = [f"day {day}, applicant {i}" for i in range(len(group))]
            rows = zip(people, group.tolist(), map(int, decisions), strict=True)
            replies = audit.ask_many(rows)
            # Wanted: the refusal is overridden, and how it went is told.
            wanted = [i for i, reply in enumerate(replies) if reply.want is eq.Want.LABEL]
            audit.tell_many((people[i], int(good[i])) for i in wanted)
            if (finding := audit.finding) is not None:
                return finding
        return audit.conclude() or audit.so_far()


if __name__ == "__main__":
    print(main(*sys.argv[1:3]))
