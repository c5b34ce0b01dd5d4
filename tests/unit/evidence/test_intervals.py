"""Intervals of r by what a log has recorded: pending labels, and files of random accepts."""

from __future__ import annotations

import numpy as np

from equipoise.evidence import anytime_interval
from equipoise.evidence.intervals import success_intervals
from equipoise.finding import Interval
from tests.unit.evidence.states import NEVER, random_setup, record, request


def test_a_pending_label_widens_an_interval_by_itself_only() -> None:
    """One early label that stays away is one unknown label; of many the first ones are counted."""
    evidence = random_setup(0, most_groups=2).start(NEVER)
    numbers = [request(evidence, 0) for _ in range(101)]
    for number in numbers[1:]:
        record(evidence, number, number % 2)
    first, other = success_intervals(evidence.log, 0.05)
    assert (first.lower, first.upper) == anytime_interval(50, 50, 1, 0.05)
    assert (first.estimate, other) == (0.5, Interval(0.0, 1.0))
    record(evidence, numbers[0], 1)
    for _ in range(900):
        request(evidence, 0)
    (first, _) = success_intervals(evidence.log, 0.05)
    assert (first.lower, first.upper) == anytime_interval(51, 50, 0, 0.05)
    assert first.estimate == 51 / 101


def test_an_interval_does_not_meet_a_later_file_with_labels_as_they_once_were() -> None:
    """Who holds a label back until the file is good would choose among many products.

    With labels told one by one after each of 30 files, 2,000 intervals at 0.05 missed 174 times.
    """
    evidence = random_setup(0, most_groups=2).start(NEVER)
    numbers = [request(evidence, 0) for _ in range(900)]
    for number in numbers[:50]:
        record(evidence, number, number % 2)
    evidence.set_random_accepts(np.array([[100.0, 100.0, 0.0], [0.0, 0.0, 0.0]]))
    (first, _) = success_intervals(evidence.log, 0.05)
    assert (first.lower, first.upper) == anytime_interval(125, 125, 850, 0.05)
    for number in numbers[50:]:
        record(evidence, number, number % 2)
    last = request(evidence, 0)
    for _ in range(900):
        request(evidence, 0)
    (first, _) = success_intervals(
        evidence.log, 0.05
    )  # the first that is pending came after the file
    assert (last, first.lower, first.upper) == (900, *anytime_interval(550, 550, 0, 0.05))
