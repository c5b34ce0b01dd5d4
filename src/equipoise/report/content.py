"""Everything that a report says, as plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from equipoise._json import JsonValue
from equipoise._version import __version__
from equipoise.audits.scores import Assist
from equipoise.bounds import Price
from equipoise.cells import Cells, GroupCells
from equipoise.errors import require_kind
from equipoise.evidence import EDITION
from equipoise.finding import Finding, Interval
from equipoise.free_check import Check, bands_from_past, check, gap_bounds
from equipoise.ledger import LiveAudit, Status
from equipoise.ledger.settings import Settings
from equipoise.ledger.state import EvidencePoint, SpendingPoint
from equipoise.ledger.verify import GroupTally
from equipoise.messages.answer import Answer, build_answer
from equipoise.metrics import METRICS
from equipoise.planning import Forecast, forecast
from equipoise.planning.make_plan import price_paper_audits
from equipoise.planning.scenarios import denied_rates_by_outcomes, scenarios
from equipoise.question import Costs, Verdict
from equipoise.report.selection import SelectionRow, selection_table

EVIDENCE_POINTS = 120  # moments at which the evidence is drawn


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
class Report(JsonValue):
    """The whole report.

    Attributes
    ----------
    finding, free
        What is established by now, a verdict or not, and what past data alone establish.
    status
        People and money by group, drift, who did what, and the head of the chain.
    selection, four_fifths
        The regulator's table, and the ratio of the lowest approval rate to the highest.
    evidence, spending
        How the evidence for both answers grew, and what was spent over time.
    published
        What the published audits are expected to cost on the same people (minor units).
    forecast
        What an audit like this one costs in all; None where nothing is to be paid any more and for
        the published audits.
    audit_id, seed_hash, seed, software
        What is needed, with the head, to check the report from the beginning. The seed is secret
        until the audit is concluded: as long as an outcome may be corrected, or the cap raised,
        people may still be drawn by it.

    Examples
    --------
    >>> from equipoise import History, Question
    >>> counts = {"approved_positive": 6000, "approved_negative": 2000, "denied": 2000}
    >>> past = History.from_cells({"A": counts, "B": counts})
    >>> live = LiveAudit.create("sqlite://", "loans", past, Question(), Costs(label=100))
    >>> report = Report.of(live)
    >>> report.name, report.seed is None, list(report.status.groups)
    ('loans', True, ['A', 'B'])
    """

    name: str
    made: str
    simulated: bool
    assist: Assist | None
    costs: Costs
    finding: Finding
    free: Check
    status: Status
    selection: tuple[SelectionRow, ...]
    four_fifths: Interval
    evidence: tuple[EvidencePoint, ...]
    published: Mapping[str, Price]
    forecast: Forecast | None
    sensitivity: Sensitivity
    audit_id: str
    seed_hash: str
    seed: str | None
    software: str
    spending: tuple[SpendingPoint, ...] = ()

    @classmethod
    def of(cls, live: LiveAudit, *, evidence: tuple[EvidencePoint, ...] | None = None) -> Report:
        """Gather the report of a live (or simulated) audit by replaying its events.

        Parameters
        ----------
        live
            The audit.
        evidence
            How the evidence grew, where the caller knows; replayed if left out.
        """
        require_kind("live", live, LiveAudit, "a LiveAudit, as LiveAudit.open returns it")
        live.confirm()  # no number of a report rests on the cache
        settings = live.settings
        status = live.status()
        # While there is no verdict the report has what the evidence supports so far.
        finding = status.finding or live.so_far()
        selection, four_fifths = selection_table(settings.past, settings.question)
        good_shares = live.good_shares()
        r = _estimate_denied_rates(settings.past.cells, status, good_shares)
        return cls(
            name=settings.name,
            made=f"{datetime.now(UTC):%Y-%m-%d %H:%M UTC}",
            simulated=settings.simulated,
            assist=settings.assist,
            costs=settings.costs,
            finding=finding,
            free=widen_free_check(check(settings.past, settings.question), finding),
            status=status,
            selection=selection,
            four_fifths=four_fifths,
            evidence=live.evidence_history(EVIDENCE_POINTS) if evidence is None else evidence,
            published=_price_published_audits(settings, r),
            forecast=forecast_similar_audit(live, status),
            sensitivity=_sensitivity(settings, status, good_shares),
            audit_id=live.row.uid,
            seed_hash=settings.seed_hash,
            seed=live.seed if status.concluded is not None else None,
            software=__version__,
            spending=live.spending_history(),
        )

    @property
    def answer(self) -> Answer:
        """What the finding says; it has no verdict while the audit is in progress."""
        return build_answer(self.finding, is_final=self.status.finding is not None)


def _price_published_audits(settings: Settings, r: Mapping[str, float]) -> dict[str, Price]:
    """Return, by title, what those published audits cost that can answer the question."""
    cells = settings.past.cells
    prices = price_paper_audits(cells, settings.question, settings.costs, r)
    published = {}
    for name, title in (("rs", "RS-Audit"), ("baseline", "Baseline")):
        # Infinite where a group has no people of an outcome that the audit waits for.
        if name in prices and math.isfinite(prices[name].cost):
            published[title] = prices[name]
    return published


def widen_free_check(free: Check, finding: Finding) -> Check:
    """Return what was known for free, nowhere narrower than what is known now.

    An audit shares the error probability between its first look and its last, so its intervals
    begin a little wider than those of a free check, which may spend all of it.
    """
    rates: dict[str, dict[str, Interval]] = {}
    for rate, intervals in free.rates.items():
        # A finding may lack a rate that the check has. Then the check's own range stays.
        current = finding.rates.get(rate, {})
        rates[rate] = {}
        for group, interval in intervals.items():
            rates[rate][group] = _hull(interval, current.get(group, interval))
    lower = min(free.lower, finding.lower)
    upper = max(free.upper, finding.upper)
    return replace(free, lower=lower, upper=upper, rates=rates)


def _hull(first: Interval, second: Interval) -> Interval:
    """Return the first interval, widened to hold the second."""
    lower = min(first.lower, second.lower)
    upper = max(first.upper, second.upper)
    return replace(first, lower=lower, upper=upper)


def estimate_denied_rates(live: LiveAudit) -> dict[str, float]:
    """Return each group's r by what an audit has learnt of it so far.

    A plan with it has one case: the denied succeed as often as observed, where the usual case of a
    plan counts like ten labels. It is a plan of an audit like this one from its first request, and
    no forecast from here: an audit may have spent more than its plan says.
    """
    return _estimate_denied_rates(live.settings.past.cells, live.status(), live.good_shares())


def _estimate_denied_rates(
    cells: Cells, status: Status, good_shares: Mapping[str, Interval]
) -> dict[str, float]:
    """Return each group's r by what was told of it, and by the past's random accepts."""
    outcomes_by_group = {}
    for group, group_status in status.groups.items():
        # People whom a test programme accepted at random are denied people with known outcomes.
        good, bad, _ = cells[group].random_accepts or (0.0, 0.0, 0.0)
        outcomes_told = group_status.positive + group_status.negative
        # With scores the good share among those asked is not the group's, so its estimate counts.
        good_share = good_shares[group].estimate or 0.0
        good += outcomes_told * good_share
        bad += outcomes_told * (1.0 - good_share)
        outcomes_by_group[group] = good, bad
    return denied_rates_by_outcomes(cells, outcomes_by_group)


def forecast_similar_audit(live: LiveAudit, status: Status) -> Forecast | None:
    """Return what an adaptive audit like this one costs in all, None once it has ended."""
    # Another edition of the statistics would ask other people, so this forecast is not about it.
    if status.finding is not None or status.audit != "adaptive" or status.edition != EDITION:
        return None
    settings = live.settings
    question = settings.question
    # Those parts of a plan that `status` shows: the rest of it prices the paper's audits too.
    free = check(settings.past, question)
    if free.verdict is not Verdict.INCONCLUSIVE or METRICS[question.metric].is_free:
        return None
    r = _estimate_denied_rates(settings.past.cells, status, live.good_shares())
    # With a rate for every group nothing is left to guess, so there is one case.
    case = scenarios(settings.past.cells, question, r)[0]
    return forecast(settings.past, question, settings.costs, [case])[0]


def expected_total_range(forecast: Forecast, status: Status) -> tuple[float, ...]:
    """Return what an audit will have cost in all: low, middle, high; empty if it is not known.

    It is not known while more overrides are open than the audit was expected to need. All three
    would then be one number, which rests on assumed outcomes alone.
    """
    amounts = forecast.range_in_all(status.spent, status.held)
    is_one_number = bool(amounts) and amounts[0] == amounts[-1]
    return () if is_one_number and status.reserved else amounts


def _possible_shares(
    counts: GroupCells, tally: GroupTally, good_share: Interval
) -> tuple[float, float]:
    """Return a group's least and largest share of good outcomes over all that are unknown.

    The denied people whom the audit asked about count, and those whom a test programme accepted.
    """
    n_asked = tally.positive + tally.negative + tally.unknown
    good, bad, unknown = counts.random_accepts or (0.0, 0.0, 0.0)
    n_people = n_asked + good + bad + unknown
    if not n_people:
        return 0.0, 1.0
    least = (n_asked * good_share.lower + good) / n_people
    largest = (n_asked * good_share.upper + good + unknown) / n_people
    return least, largest


def _sensitivity(
    settings: Settings, status: Status, good_shares: Mapping[str, Interval]
) -> Sensitivity:
    """Return the range of the estimated gap over all outcomes that are unknown.

    ``good_shares`` has, for each group, the share of good outcomes among the denied if all unknown
    ones are bad (``lower``) and if all are good (``upper``). Groups that are not compared do not
    count.
    """
    question = settings.question
    cells = settings.past.cells
    left_out = question.resolve(cells).left_out
    n_unknown = 0.0
    r_ranges = dict.fromkeys(cells, (0.0, 1.0))
    for group, counts in cells.items():
        if group in left_out:
            continue
        group_status = status.groups[group]
        n_unknown += group_status.unknown
        # Missing outcomes in cohorts are assumed to be like the known ones, so they are not open.
        if not counts.cohorts:
            n_unknown += counts.approved_unknown
        if counts.random_accepts:
            n_unknown += counts.random_accepts[2]
        r_ranges[group] = _possible_shares(counts, group_status, good_shares[group])
    unknown = round(n_unknown)
    # This is about the estimate, not about what is proven. So the counts of the past are taken as
    # they are, without an error level.
    bands = bands_from_past(settings.past, question.metric, None)
    lower, upper = gap_bounds(bands, r_ranges, compare=question.comparison)
    if not unknown:
        sentence = "Nobody's outcome is outstanding."
    elif upper <= question.threshold:
        sentence = "Even in the worst case the estimated gap stays below where UNFAIR begins."
    elif lower > question.gamma:
        sentence = "Even in the best case the estimated gap stays above the tolerated one."
    else:
        sentence = "The outcomes that are outstanding could move the estimated gap either way."
    return Sensitivity(unknown, lower, upper, sentence)
