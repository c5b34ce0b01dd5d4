"""Which audit to run: the free answer first, then what an adaptive audit costs, case by case."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise._json import JsonValue
from equipoise.assist import Assist
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.audits.estimated_rates import can_answer, outcomes_of, paper_tau, rows_missing
from equipoise.bounds import Price, expectation
from equipoise.display import Progress, Row, Shown, silent
from equipoise.errors import (
    InvalidInput,
    require_kind,
    require_n_jobs,
    require_non_negative,
    require_whole,
)
from equipoise.free_check import Check, check
from equipoise.history.history import History, as_past
from equipoise.history.past import Past
from equipoise.planning.forecasts import (
    LEVELS,
    Forecast,
    Scenario,
    as_often,
    forecast,
    rows_wanted,
    scenarios,
    usual_case,
)
from equipoise.planning.trials import ScoreSavings, run_trials, try_scores
from equipoise.question import Costs, Question, Verdict, as_question, require_asked
from equipoise.rates import METRICS
from equipoise.worlds.world import CellWorld

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STEPS = tuple(2.0**k for k in (-2, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3))  # epsilons that are tried


@dataclass(frozen=True)
class OtherAudit(JsonValue):
    """One of the paper's audits in a line.

    Attributes
    ----------
    audit
        "rs", "baseline" or "exp".
    price
        What it costs on average in the usual case, by its formula in :mod:`equipoise.bounds`.
    missing
        Why it cannot run on this history, one line each; empty if it can.

    Examples
    --------
    >>> OtherAudit("rs", Price(labels=80.0, cost=60.0)).possible
    True
    """

    audit: str
    price: Price
    missing: tuple[str, ...] = ()

    @property
    def possible(self) -> bool:
        """Whether the audit can run on this history."""
        return not self.missing


@dataclass(frozen=True)
class Plan(JsonValue, Shown):
    """What is known for free, and what an audit would cost.

    Attributes
    ----------
    free
        What the past data alone establish.
    cases
        What the adaptive audit costs, case by case; none where the past data decide.
    others
        The paper's audits, a line each, cheapest first.
    recommended
        "check" if the past data decide, "adaptive" if that audit can, else None.
    advice
        The recommendation in a sentence.
    notes
        What to know about the question.
    arrivals_per_day, delay_days
        How many people arrive a day, approved ones included, and how long outcomes take; given by
        the reader.
    budget, affordable_epsilon
        The money, if a sum was given, and the smallest epsilon tried at which half of the audits of
        the usual case keep within it; None if even the largest is too expensive. What share of the
        audits does, case by case, is :attr:`Forecast.within_budget`.
    score_savings
        What looking at scores first would save, if ``assist`` was given.

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
    >>> made = plan(world.past(), Question("demographic_parity"), Costs())
    >>> made.recommended, made.free.verdict.value
    ('check', 'UNFAIR')
    """

    question: Question
    costs: Costs
    free: Check
    cases: tuple[Forecast, ...]
    others: tuple[OtherAudit, ...]
    recommended: str | None
    advice: str
    notes: tuple[str, ...] = ()
    arrivals_per_day: float | None = None
    delay_days: float = 0.0
    budget: float | None = None
    affordable_epsilon: float | None = None
    score_savings: ScoreSavings | None = None

    def days(self, seen: Forecast) -> float | None:
        """Return how long a case's median audit takes, None without arrivals per day."""
        if self.arrivals_per_day is None:
            return None
        return seen.people / self.arrivals_per_day + (self.delay_days if seen.people else 0.0)

    def __str__(self) -> str:
        lines = [
            f"recommended: {self.advice}",
            f"{self.question}",
            f"costs: {self.costs}",
            f"for free: {self.free.verdict}, the gap is between {self.free.lower:.3f} and "
            f"{self.free.upper:.3f}",
            *(str(seen) for seen in self.cases),
        ]
        if self.score_savings is not None:
            lines.append(f"if {self.score_savings.scenario}: {self.score_savings}")
        for other in self.others:
            why = "" if other.possible else f"; cannot run: {'; '.join(other.missing)}"
            lines.append(f"{other.audit}: {other.price}{why}")
        return "\n".join([*lines, *(f"note: {line}" for line in self.notes)])

    def _lines(self) -> Sequence[str]:
        return str(self).splitlines()[:4]

    def _rows(self) -> Sequence[Row]:
        """Return a row per case, or per audit where the past decides."""
        if not self.cases:
            return [
                {"audit": o.audit, "cost": o.price.cost, "labels": o.price.labels,
                 "can_run": o.possible}
                for o in self.others
            ]  # fmt: skip
        return [
            {
                "case": seen.scenario.name,
                "expect": seen.scenario.expect,
                **{f"cost_{float(q):.0%}": cost for q, cost in seen.cost.items()},
                "decides": seen.decides,
                "labels": sum(seen.labels.values()),
                "people": seen.people,
                "days": self.days(seen),
                "rows": seen.rows,
            }
            for seen in self.cases
        ]

    def _draw(self, ax: Axes) -> None:
        from equipoise.display import draw_ranges, wrapped

        known = [cost for seen in self.cases for cost in seen.cost.values() if cost]
        most = 3.0 * max(known, default=1.0)  # where a cost that cannot be reached is drawn
        rows = []
        for seen in self.cases:
            low, middle, high = (most if c is None else max(c, 0.5) for c in seen.cost.values())
            rows.append((f"{seen.scenario.name}\n{seen.scenario.expect}", low, middle, high))
        draw_ranges(ax, rows)
        if rows:
            ax.set_xscale("log")
        ax.set_xlabel("cost: bar, eight audits in ten; dot, half cost less")
        ax.set_title(wrapped(self.advice), loc="left")


def plan(
    history: object,
    question: Question | str,
    costs: Costs | None = None,
    *,
    denied_rate: Mapping[str, float] | None = None,
    budget: float | None = None,
    arrivals_per_day: float | None = None,
    delay_days: float = 0.0,
    trial_runs: int | None = None,
    assist: Assist | None = None,
    n_jobs: int | None = None,
    progress: Progress = silent,
    **reading: object,
) -> Plan:
    """Say what an audit would cost on this history, and which one to run.

    The cost of the adaptive audit is forecast at once (:mod:`equipoise.planning.forecasts`), in a
    few named cases of what the denied might have done, with the past data as they are.

    Parameters
    ----------
    history
        Past decisions, or any table that :meth:`equipoise.History.read` takes.
    question
        What is asked, or the name of a metric.
    costs
        What answers cost; 1 for every override that ends badly if left out.
    denied_rate
        What you know of some groups: the share of their denied who would have succeeded.
    budget
        Also say what this much money buys.
    arrivals_per_day, delay_days
        How many people arrive a day, approved ones included, and how long outcomes take.
    trial_runs
        Run the audit itself so many times in every case, for sharper figures than the forecast's;
        it takes seconds to minutes.
    assist
        Also say, by trial runs of the usual case with people who have scores, read with
        ``History.read(..., score=)``, whether looking before asking helps. What the score says of
        the denied is taken from their labels, if the history has some, else from the approved.
    n_jobs
        Processes to spread trial runs over, as joblib counts them.
    reading
        How a table is read: ``group``, ``decision``, ``outcome`` and all that
        :meth:`equipoise.History.read` takes.

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
    >>> made = plan(world.past(), Question(epsilon=0.4), Costs())
    >>> made.recommended, made.cases[0].is_decidable
    ('adaptive', True)
    >>> plan(world.past(), Question("demographic_parity"), Costs()).advice
    'nothing to pay: the past data decide (UNFAIR)'
    """
    history, question = as_past(history, reading), as_question(question)
    costs = Costs() if costs is None else costs
    require_asked(question, costs)
    require_n_jobs(n_jobs)
    require_whole("trial_runs", trial_runs)
    known = {"budget": budget, "arrivals_per_day": arrivals_per_day, "delay_days": delay_days}
    for name, value in known.items():
        if value is not None:
            require_non_negative(name, value)
    if arrivals_per_day == 0:
        raise InvalidInput("'arrivals_per_day' must be above 0: nobody would ever arrive")
    scores = history.scores if isinstance(history, History) else None
    if assist is not None:
        require_kind("assist", assist, Assist, "an Assist, such as Assist()")
        if scores is None:
            raise InvalidInput(
                "'assist' needs scores of past people: History.read(..., score=COLUMN)"
            )
    free = check(history, question)
    cases: tuple[Forecast, ...] = ()
    if free.verdict is Verdict.INCONCLUSIVE and not METRICS[question.metric].is_free:
        wanted = scenarios(history.cells, question, denied_rate)
        cases = forecast(history, question, costs, wanted)
    if cases and trial_runs:
        audit = AdaptiveAudit(Past(history.cells, history.exact), question, costs)
        if audit.finding is None:
            cases = run_trials(
                audit, cases, trial_runs=trial_runs, n_jobs=n_jobs, progress=progress
            )
    usual = usual_case(tuple(seen.scenario for seen in cases)) if cases else None
    savings = epsilon = None
    if usual is not None and assist is not None and scores is not None:
        asked = question, costs, usual, assist
        savings = try_scores(history.cells, scores, *asked, trial_runs=trial_runs, n_jobs=n_jobs)
    if usual is not None and budget is not None:
        cases = tuple(replace(seen, within_budget=_share_within(seen, budget)) for seen in cases)
        epsilon = _epsilon(history, question, costs, budget, usual)
    notes = {
        f"the outcomes of {history.cells.unknown:,g} approved people are not known: RS-Audit and "
        "Baseline need them all, and are left out": history.cells.unknown > 0.0,
        "gamma = 0 calls fair only what is exactly equal; a small tolerance is usually meant, and "
        "cheaper to decide": question.gamma == 0.0,
        "what the score says of the denied is an extrapolation from the approved; the audit learns "
        "from its own labels what it is worth, and leaves a useless score alone": (
            savings is not None and savings.extrapolated
        ),
    }
    recommended, advice = _advise(free, cases)
    return Plan(
        question=question,
        costs=costs,
        free=free,
        cases=cases,
        others=_others(history, question, costs, usual),
        recommended=recommended,
        advice=advice,
        notes=tuple(note for note, holds in notes.items() if holds),
        arrivals_per_day=arrivals_per_day,
        delay_days=delay_days,
        budget=budget,
        affordable_epsilon=epsilon,
        score_savings=savings,
    )


def _advise(free: Check, cases: Sequence[Forecast]) -> tuple[str | None, str]:
    if free.verdict is not Verdict.INCONCLUSIVE:
        return "check", f"nothing to pay: the past data decide ({free.verdict})"
    if not cases:
        return None, "more past rows: no label can say anything about this metric"
    medians = [seen.median for seen in cases if seen.median is not None]
    undecided = [seen.rows for seen in cases if not seen.is_decidable]
    if not medians:
        return None, f"no number of labels decides with this past; {rows_wanted(undecided)}"
    words = f"run the adaptive audit; it costs about {min(medians):,.4g} in the cheapest case below"
    most = max(math.inf if seen.cost["0.9"] is None else seen.cost["0.9"] for seen in cases)
    if undecided:
        words += (
            f"; {len(undecided)} of {len(cases)} cases cannot be decided with this past: "
            f"{rows_wanted(undecided)}"
        )
    elif most == math.inf:
        words += "; in the most expensive more than one audit in ten ends without a verdict"
    else:
        words += f", and at most {most:,.4g} nine times in ten in the most expensive"
    return AdaptiveAudit.name, words


def _others(
    history: Past, question: Question, costs: Costs, usual: Scenario | None
) -> tuple[OtherAudit, ...]:
    """Return what the paper's audits cost on average in the usual case."""
    left_out = question.compared(history.cells).left_out  # their theorems are about all groups
    free = METRICS[question.metric].is_free
    if history.cells.unknown or left_out or free or not can_answer(question):
        return ()
    r = as_often(history.cells) if usual is None else usual.r
    world, groups = CellWorld(history.cells, r), history.cells.groups
    goals = [(y, group) for y in outcomes_of(question) for group in groups]
    tau = paper_tau(question, len(groups))
    found = [
        OtherAudit(
            name,
            expectation(name, world, question, costs),
            rows_missing(history, goals, tau, within_group=name == "rs"),
        )
        for name in ("rs", "baseline")
    ]
    if can_answer(question, by_features=True):
        lacking = ("features of past approved people: fit equipoise.mixture.fit_model to them",)
        missing = () if history.model is not None else lacking
        found.append(OtherAudit("exp", expectation("exp", world, question, costs), missing))
    return tuple(sorted(found, key=lambda one: (not one.possible, one.price.cost)))


def _share_within(seen: Forecast, budget: float) -> float:
    """Return the share of audits that end within a budget, between the quantiles by log cost."""
    costs = [seen.cost[f"{level:g}"] for level in LEVELS]
    known = [
        (math.log(max(c, 1e-9)), q) for c, q in zip(costs, LEVELS, strict=True) if c is not None
    ]
    if not known or budget <= 0.0:
        return 0.0
    at, shares = zip(*known, strict=True)
    wide = 0.5 * (at[-1] - at[0])  # how far the tails reach beyond the quantiles
    shares = (0.0, *shares, 1.0 if seen.decides is None else seen.decides)
    return float(np.interp(math.log(budget), [at[0] - wide, *at, at[-1] + wide], shares))


def _epsilon(
    history: Past, question: Question, costs: Costs, budget: float, case: Scenario
) -> float | None:
    tried = [question.epsilon * step for step in STEPS]
    for epsilon in (one for one in tried if question.gamma + one < 1.0):
        (seen,) = forecast(history, replace(question, epsilon=epsilon), costs, [case])
        if seen.median is not None and seen.median <= budget:
            return epsilon
    return None
