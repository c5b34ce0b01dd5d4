"""What the page of an audit shows beside the evidence: people, and who differs from whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from equipoise.finding import Finding
from equipoise.ledger import LiveAudit, Status
from equipoise.ledger.verify import PersonRecord

__all__ = ["Panels", "apart", "panels_of"]

AGES = ((1, "since yesterday"), (7, "a week"), (30, "a month"), (90, "three months"),
        (365, "a year"))  # fmt: skip
LISTED = 10


@dataclass(frozen=True)
class Panels:
    """Counts and short lists, each from one small question to the database.

    Attributes
    ----------
    funnel
        What became of everybody: words, number of people, and the states they stand for.
    ages
        Open requests by age: words, how many are not yet carried out, carried out, overdue.
    late
        The oldest that should have an outcome by now.
    unconfirmed
        The oldest whose override nobody has confirmed.
    conflicts
        People whose outcome was contradicted.
    """

    funnel: tuple[tuple[str, int, str], ...]
    ages: tuple[tuple[str, int, int, int], ...]
    late: Sequence[PersonRecord]
    unconfirmed: Sequence[PersonRecord]
    conflicts: Sequence[PersonRecord]


def panels_of(live: LiveAudit, status: Status, now: datetime | None = None) -> Panels:
    """Gather the panels of an audit."""
    states = status.states

    def oldest(state: str) -> Sequence[PersonRecord]:
        return live.people(states=(state,), limit=LISTED) if states.get(state) else ()

    settled = ("REVEALED", "CORRECTED")
    wanted = status.people - states.get("SKIPPED", 0)
    looked = () if live.settings.assist is None else (("looked at", wanted, ""),)
    return Panels(
        funnel=(
            ("arrived", status.people, ""),
            *looked,
            ("asked for", wanted - states.get("SCORE_ONLY", 0), ""),
            ("carried out or answered", sum(states.get(s, 0) for s in (*settled, "EXECUTED")), ""),
            ("outcome known", sum(states.get(s, 0) for s in settled), "REVEALED"),
            ("refused", states.get("WITHDRAWN", 0), "WITHDRAWN"),
            ("given up", states.get("WRITTEN_OFF", 0), "WRITTEN_OFF"),
        ),
        ages=_ages(live.pending_by_day(), (now or datetime.now(UTC)).date()),
        late=oldest("OVERDUE"),
        unconfirmed=oldest("RESERVED"),
        conflicts=live.people(conflicted=True, limit=LISTED) if status.conflicts else (),
    )


def apart(finding: Finding) -> list[tuple[str, str, str]]:
    """Return ``(rate, higher group, lower group)`` for every pair whose intervals do not meet.

    Examples
    --------
    >>> from equipoise.finding import Interval
    >>> from equipoise.question import Question, Verdict
    >>> rates = {"selection_rate": {"A": Interval(0.6, 0.7), "B": Interval(0.2, 0.3)}}
    >>> apart(Finding(Question(), Verdict.UNFAIR, 0.3, 0.5, "", rates=rates))
    [('selection rate', 'A', 'B')]
    """
    return [
        (rate.replace("_", " "), high, low)
        for rate, groups in finding.rates.items()
        for high, of_high in groups.items()
        for low, of_low in groups.items()
        if of_high.lower > of_low.upper
    ]


def _ages(
    counts: Sequence[tuple[str, str, int]], today: date
) -> tuple[tuple[str, int, int, int], ...]:
    columns = {"RESERVED": 0, "EXECUTED": 1, "OVERDUE": 2}
    names = [words for _, words in AGES] + ["longer"]
    found = {words: [0, 0, 0] for words in names}
    for state, day, number in counts:
        age = (today - date.fromisoformat(day)).days
        words = next((w for limit, w in AGES if age <= limit), "longer")
        found[words][columns[state]] += number
    return tuple((words, *found[words]) for words in names)  # type: ignore[misc]
