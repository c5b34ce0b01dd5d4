"""Everything that a report says, as plain values, and audits of people who do not exist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from equipoise._json import JsonValue
from equipoise._version import __version__
from equipoise.assist import Assist
from equipoise.audits.estimated_rates import can_answer
from equipoise.bounds import expectation
from equipoise.errors import EquipoiseError, require_kind
from equipoise.evidence import EDITION
from equipoise.finding import Finding, Interval
from equipoise.free_check import bands_from_past, check, gap_bounds
from equipoise.ledger import LiveAudit, Status
from equipoise.ledger.settings import Settings
from equipoise.ledger.state import EvidencePoint
from equipoise.planning import Forecast, Plan, plan
from equipoise.planning.cases import as_often
from equipoise.question import Costs, Question, Want
from equipoise.rates import METRICS
from equipoise.report.selection import SelectionRow, selection_table
from equipoise.worlds import CellWorld, World

__all__ = [
    "Comparison",
    "GroupReport",
    "Replay",
    "Report",
    "Sensitivity",
    "forecast_of",
    "plan_of",
    "simulate_live",
    "widened",
]

AT_ONCE = 50  # simulated people who arrive together


@dataclass(frozen=True)
class GroupReport(JsonValue):
    """One group, past and present.

    Attributes
    ----------
    looked
        Denied people who were looked at, asked or not; 0 if the audit does not look first.
    labelled, good
        Denied people whose outcome was bought, and those of them with outcome 1. They are a fair
        sample of the denied only if the audit does not look first.
    pending, overdue, withdrawn, written_off
        Requests without an outcome.
    before, after
        Rate -> what past data alone establish, and what the audit adds.
    """

    group: str
    seen: int
    approved: int
    looked: int
    labelled: int
    good: int
    pending: int
    overdue: int
    withdrawn: int
    written_off: int
    spent: int
    reserved: int
    before: Mapping[str, Interval]
    after: Mapping[str, Interval]


@dataclass(frozen=True)
class Comparison(JsonValue):
    """What another audit is expected to cost on the same people (minor units)."""

    audit: str
    cost: float
    labels: float
    note: str


@dataclass(frozen=True)
class Sensitivity(JsonValue):
    """The plug-in gap if everybody whose outcome is unknown turned out one way or the other.

    ``unknown`` counts requests without an outcome, and approved people of the past of whose
    outcome nothing is assumed.
    """

    unknown: int
    lower: float
    upper: float
    sentence: str


@dataclass(frozen=True)
class Replay(JsonValue):
    """What is needed to check the report from the beginning."""

    audit_id: str
    events: int
    head: str
    seed_hash: str
    seed: str | None
    software: str


@dataclass(frozen=True)
class Report(JsonValue):
    """The whole report; ``finding`` is what is established by now, a verdict or not.

    ``forecast`` is what an audit like this one costs in all, None where nothing is to be paid any
    more and for the published audits, whose cost stands under ``comparisons``.

    Examples
    --------
    >>> from equipoise import worlds
    >>> from equipoise.report import simulate_live
    >>> world = worlds.CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> live = simulate_live(world, Question(), Costs(label=100), audit="rs", options={"tau": 5})
    >>> report = Report.of(live)
    >>> report.simulated, [group.group for group in report.groups]
    (True, ['A', 'B'])
    """

    name: str
    made: str
    simulated: bool
    audit: str
    assist: Assist | None
    question: Question
    costs: Costs
    currency: str
    decimals: int
    decided: bool
    finding: Finding
    free: Interval
    four_fifths: Interval
    status: Status
    selection: tuple[SelectionRow, ...]
    groups: tuple[GroupReport, ...]
    evidence: tuple[EvidencePoint, ...]
    comparisons: tuple[Comparison, ...]
    forecast: Forecast | None
    sensitivity: Sensitivity
    replay: Replay

    @classmethod
    def of(
        cls,
        live: LiveAudit,
        *,
        now: datetime | None = None,
        evidence: tuple[EvidencePoint, ...] | None = None,
    ) -> Report:
        """Gather the report of a live (or simulated) audit by replaying its events.

        ``evidence`` is how it grew, for those who have followed it; replayed if left out.
        """
        require_kind("live", live, LiveAudit, "a LiveAudit, as LiveAudit.open returns it")
        status, settings = live.status(), live.settings
        evidence = live.trace() if evidence is None else evidence
        finding = status.finding or live.so_far()
        free = check(settings.past, settings.question)
        selection, approvals = selection_table(settings.past, settings.question)
        final, shares = status.finding is not None, live.good_shares()
        return cls(
            name=settings.name,
            made=(now or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC"),
            simulated=settings.simulated,
            audit=settings.audit,
            assist=settings.assist,
            question=settings.question,
            costs=settings.costs,
            currency=settings.currency,
            decimals=settings.decimals,
            decided=final,
            finding=finding,
            free=widened(Interval(free.lower, free.upper), Interval(finding.lower, finding.upper)),
            four_fifths=Interval(1.0 - approvals.upper, 1.0 - approvals.lower),
            status=status,
            selection=selection,
            groups=tuple(_groups(settings, status, free, finding)),
            evidence=evidence,
            comparisons=tuple(_comparisons(settings, shares)),
            forecast=forecast_of(live, status),
            sensitivity=_sensitivity(settings, status, shares),
            replay=Replay(
                audit_id=live.row.uid,
                events=status.events,
                head=status.head,
                seed_hash=settings.seed_hash,
                seed=live.seed if final else None,
                software=__version__,
            ),
        )

    def money(self, amount: float) -> str:
        """Write minor units as people read money."""
        return self.status.money(amount)


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


def forecast_of(live: LiveAudit, status: Status) -> Forecast | None:
    """Return what an adaptive audit like this one costs in all, None once it has ended."""
    if status.finding is not None or status.audit != "adaptive" or status.edition != EDITION:
        return None
    return next(iter(plan_of(live).cases), None)


def _groups(
    settings: Settings, status: Status, free: Finding, finding: Finding
) -> list[GroupReport]:
    rates = [rate.name for rate in METRICS[settings.question.metric].rates]
    rows = []
    for group in settings.past.cells:
        own = status.groups[group]
        states = own.states
        rows.append(
            GroupReport(
                group=group,
                seen=own.approved + own.denied,
                approved=own.approved,
                looked=own.scored if settings.assist else 0,
                labelled=own.positive + own.negative,
                good=own.positive,
                pending=states.get("RESERVED", 0) + states.get("EXECUTED", 0),
                overdue=states.get("OVERDUE", 0),
                withdrawn=states.get("WITHDRAWN", 0),
                written_off=states.get("WRITTEN_OFF", 0),
                spent=own.spent,
                reserved=own.reserved,
                before={
                    r: widened(free.rates[r][group], finding.rates.get(r, {}).get(group))
                    for r in rates
                    if r in free.rates
                },
                after={r: finding.rates[r][group] for r in rates if r in finding.rates},
            )
        )
    return rows


def widened(before: Interval, now: Interval | None) -> Interval:
    """Return what was known before, at least as wide as what is known now.

    An audit shares the error probability between its first look and its last, so its intervals
    begin a little wider than those of a free check, which may spend all of it.
    """
    if now is None:
        return before
    lower, upper = min(before.lower, now.lower), max(before.upper, now.upper)
    return replace(before, lower=lower, upper=upper)


def _comparisons(settings: Settings, shares: Mapping[str, Interval]) -> list[Comparison]:
    metric = METRICS[settings.question.metric]
    left_out = settings.question.compared(settings.past.cells).left_out
    if metric.is_free or left_out or not can_answer(settings.question):
        return []
    r = {g: 0.5 if one.estimate is None else one.estimate for g, one in shares.items()}
    cells = settings.past.cells
    world = CellWorld(cells.like_known, r)
    note = "the published algorithm at its published threshold, expected"
    if cells.unknown:
        note += ", if approved people of unknown outcome are like the known"
    if settings.assist is not None and settings.assist.max_price is not None:
        note += ", had nobody a price of their own"
    rows = []
    for name, audit in (("RS-Audit", "rs"), ("Baseline", "baseline")):
        try:
            price = expectation(audit, world, settings.question, settings.costs)
        except EquipoiseError:
            continue
        rows.append(Comparison(name, price.cost, price.labels, note))
    return rows


def _sensitivity(settings: Settings, status: Status, shares: Mapping[str, Interval]) -> Sensitivity:
    past = sum(c.approved_unknown for c in settings.past.cells.values() if not c.cohorts)
    unknown = sum(own.unknown for own in status.groups.values()) + round(past)
    boxes = {group: (one.lower, one.upper) for group, one in shares.items()}
    metric, question = settings.question.metric, settings.question
    bands = bands_from_past(settings.past, metric, None)
    lower, upper = gap_bounds(bands, boxes, compare=question.comparison)
    if not unknown:
        sentence = "Nobody's outcome is outstanding."
    elif upper <= question.threshold:
        sentence = "Even in the worst case the estimated gap stays below where UNFAIR begins."
    elif lower > question.gamma:
        sentence = "Even in the best case the estimated gap stays above the tolerated one."
    else:
        sentence = "The outcomes that are outstanding could move the estimated gap either way."
    return Sensitivity(unknown, lower, upper, sentence)


def simulate_live(
    world: World,
    question: Question,
    costs: Costs,
    *,
    people: int = 20_000,
    history_size: int | None = 20_000,
    seed: int = 0,
    name: str = "simulation",
    ledger: str = "sqlite://",
    **settings: Any,
) -> LiveAudit:
    """Run an audit on a world until it ends or ``people`` have arrived; return it closed.

    Parameters
    ----------
    settings
        Further arguments of :meth:`LiveAudit.create`, such as ``audit`` and ``budget``.
    """
    past = world.past(history_size, seed)
    live = LiveAudit.create(
        ledger, name, past, question, costs, simulated=True, seed=f"{seed:064x}", **settings
    )
    rng, came = np.random.default_rng(seed + 1), 0
    while live.finding is None and came < people:
        drawn = list(world.draw(min(AT_ONCE, people - came), rng))
        names = [str(came + i) for i in range(len(drawn))]
        replies = live.ask_many(
            (name, person.group, person.decision) for name, person in zip(names, drawn, strict=True)
        )
        live.tell_many(
            (reply.person, person.outcome)
            for reply, person in zip(replies, drawn, strict=True)
            if reply.want is Want.LABEL or person.decision == 1
        )
        came += len(drawn)
    if live.finding is None:
        live.conclude("the simulated people are used up")
    return live
