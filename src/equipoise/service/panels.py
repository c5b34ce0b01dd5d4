"""What the pages of an audit show beside the evidence: people, costs to come, who did what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from equipoise.finding import Finding
from equipoise.ledger import LiveAudit, Status
from equipoise.ledger.settings import Settings
from equipoise.ledger.verify import PersonRecord
from equipoise.planning import Plan, plan
from equipoise.planning.cases import as_often

__all__ = ["LogEntry", "Panels", "apart", "log_of", "panels_of", "plan_of", "proposed"]

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


def plan_of(live: LiveAudit, *, trial_runs: int | None = None) -> Plan:
    """Plan an audit like this one, from its first request, with what it learnt of the denied.

    One case: they succeed as often as observed; in groups without outcomes, as in the usual case
    of a plan. It is no forecast from here: an audit may have spent more than its plan says.
    """
    settings = live.settings
    learnt = {g: one.estimate for g, one in live.good_shares().items() if one.estimate is not None}
    r = as_often(settings.past.cells) | learnt
    return plan(
        settings.past, settings.question, settings.costs, denied_rate=r, trial_runs=trial_runs
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


DEEDS = {
    "created": "began the audit",
    "asked": "reported an arrival",
    "executed": "confirmed an override",
    "withdrawn": "reported a refusal",
    "revealed": "brought an outcome",
    "corrected": "corrected an outcome",
    "noted": "brought an outcome that nobody asked for",
    "conflict": "brought an outcome that contradicts the stored one",
    "overdue": "marked an outcome as overdue",
    "written_off": "gave up an outcome",
    "erased": "erased a person",
    "budget": "changed the budget",
    "limits": "changed the limits",
    "paused": "paused the audit",
    "resumed": "resumed the audit",
    "concluded": "concluded the audit",
    "proposed": "proposed",
    "approved": "approved a proposal",
    "rejected": "rejected a proposal",
    "verdict": "reached the verdict",
}


PROPOSED = {
    "budget": "to change the budget",
    "concluded": "to conclude the audit",
    "corrected": "to correct an outcome",
    "erased": "to erase a person",
    "limits": "to change the limits",
    "resumed": "to resume the audit",
}


def proposed(command: str, arguments: Mapping[str, Any], settings: Settings) -> str:
    """Return what somebody proposed, in plain words."""
    words = PROPOSED.get(command, command)
    if command == "budget":
        cap = arguments["budget"]
        words += f" to {'no limit' if cap is None else settings.money(cap)}"
    if "person" in arguments:
        words += f", person {arguments['person']:,}"
    if "outcome" in arguments:
        words += f", to {'good' if arguments['outcome'] else 'bad'}"
    return f"{words}: {arguments['why']}" if arguments.get("why") else words


@dataclass(frozen=True)
class LogEntry:
    """Who did what: one event in plain words."""

    number: int
    time: str
    actor: str
    deed: str
    about: str


def log_of(events: Iterable[Mapping[str, Any]], live: LiveAudit) -> list[LogEntry]:
    """Return events as people read them, the latest first."""
    money = live.settings.money
    entries = []
    for event in events:
        kind, data = event["type"], event["data"]
        said = [data["why"]] if data.get("why") else []
        if "person" in data:
            said.insert(0, f"person {data['person']:,}")
        if kind == "budget":
            cap = data.get("budget")
            said.insert(0, "no cap" if cap is None else money(cap))
        if kind == "proposed":
            said = [proposed(data["command"], data["arguments"], live.settings)]
        if kind == "verdict":
            said.insert(0, str(data["finding"]["verdict"]))
        deed = DEEDS.get(kind, kind.replace("_", " "))
        entries.append(LogEntry(event["seq"], event["time"], event["actor"], deed, "; ".join(said)))
    return entries[::-1]
