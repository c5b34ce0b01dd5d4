"""Which audit to run: the free answer first, one recommendation, then a forecast per audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from equipoise._json import JsonValue
from equipoise.assist import Assist
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.audits.catalogue import AUDITS, resolve
from equipoise.display import Progress, Row, Shown, silent
from equipoise.errors import (
    InvalidInput,
    require_n_jobs,
    require_non_negative,
    require_whole,
)
from equipoise.free_check import Check, check
from equipoise.history.past import Past, require_past
from equipoise.planning.adaptive_forecast import usual_case
from equipoise.planning.budget import Affordable, what_a_budget_buys
from equipoise.planning.forecast import Forecast
from equipoise.planning.rehearsal import CAP, Quantile, Rehearsal
from equipoise.planning.score_savings import ScoreSavings, rehearse_scores, require_scores
from equipoise.question import Costs, Question, Verdict, require_asked

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Plan", "plan"]


@dataclass(frozen=True)
class Plan(JsonValue, Shown):
    """What is known for free, and what each audit would cost.

    Attributes
    ----------
    free
        What the past data alone establish.
    rows
        A forecast per audit, cheapest first, those that cannot run last.
    recommended
        "check" if the past data decide, else the audit to run, None if none can.
    advice
        The recommendation in a sentence.
    notes
        What to know about the question.
    arrivals_per_day, delay_days
        How many people arrive a day, approved ones included, and how long outcomes take; given by
        the reader.
    affordable
        What the budget buys, if one was given.
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
    rows: tuple[Forecast, ...]
    recommended: str | None
    advice: str
    notes: tuple[str, ...] = ()
    arrivals_per_day: float | None = None
    delay_days: float = 0.0
    affordable: Affordable | None = None
    score_savings: ScoreSavings | None = None

    @property
    def cases(self) -> tuple[Rehearsal, ...]:
        """What the adaptive audit costs, case by case."""
        return next((row.cases for row in self.rows if row.cases), ())

    def days(self, seen: Rehearsal) -> float | None:
        """Return how long a case's median audit takes, None without arrivals per day."""
        if self.arrivals_per_day is None:
            return None
        return seen.people / self.arrivals_per_day + (self.delay_days if seen.people else 0.0)

    def __str__(self) -> str:
        lines = [
            f"recommended: {self.advice}",
            f"{self.question}",
            f"costs: {self.costs}",
            f"for free: {self.free.verdict}, a gap between {self.free.lower:.3f} and "
            f"{self.free.upper:.3f}",
        ]
        for seen in self.cases:
            spread = ", ".join(f"{q} {_shown(seen.cost[q])}" for q in seen.cost)
            lines.append(
                f"if {seen.scenario.name}: {seen.scenario.expect}; cost {spread}; "
                f"about {seen.people:,.0f} people must arrive"
            )
        if self.score_savings is not None:
            lines.append(f"if {self.score_savings.scenario}: {self.score_savings}")
        for row in self.rows:
            lines += [f"{row.audit}: {row.guess}; {row.guarantees}"]
            lines += [f"  missing   {line}" for line in row.missing]
        return "\n".join([*lines, *(f"note: {line}" for line in self.notes)])

    def _lines(self) -> Sequence[str]:
        return str(self).splitlines()[:4]

    def _rows(self) -> Sequence[Row]:
        """Return a row per case, or per audit where none was rehearsed."""
        if not self.cases:
            return [
                {"audit": row.audit, "cost": row.guess.cost, "labels": row.guess.labels,
                 "can_run": row.possible}
                for row in self.rows
            ]  # fmt: skip
        return [
            {
                "case": seen.scenario.name,
                "expect": seen.scenario.expect,
                **{f"cost_{float(q):.0%}": cost.value for q, cost in seen.cost.items()},
                "labels": sum(seen.labels.values()),
                "people": seen.people,
                "days": self.days(seen),
            }
            for seen in self.cases
        ]

    def _draw(self, ax: Axes) -> None:
        from equipoise.display import draw_ranges, wrapped

        known = [q.value for seen in self.cases for q in seen.cost.values() if q.value]
        most = 3.0 * max(known, default=1.0)  # where a cost that no rehearsal reached is drawn
        rows = []
        for seen in self.cases:
            low, middle, high = (
                most if q.value is None else max(q.value, 0.5) for q in seen.cost.values()
            )
            rows.append((f"{seen.scenario.name}\n{seen.scenario.expect}", low, middle, high))
        draw_ranges(ax, rows)
        if rows:
            ax.set_xscale("log")
        ax.set_xlabel("cost: bar, eight audits in ten; dot, half cost less")
        ax.set_title(wrapped(self.advice), loc="left")


def plan(
    history: Past,
    question: Question,
    costs: Costs,
    *,
    denied_rate: Mapping[str, float] | None = None,
    budget: float | None = None,
    arrivals_per_day: float | None = None,
    delay_days: float = 0.0,
    audits: int | None = None,
    assist: Assist | None = None,
    n_jobs: int | None = None,
    progress: Progress = silent,
) -> Plan:
    """Say what every audit would cost on this history, and which one to run.

    The adaptive audit is rehearsed in a few named cases of what the denied might have done
    (:mod:`equipoise.planning.scenarios`), with the past data as they are.

    Parameters
    ----------
    denied_rate
        What you know of some groups: the share of their denied who would have succeeded.
    budget
        Also say what this much money buys.
    arrivals_per_day, delay_days
        How many people arrive a day, approved ones included, and how long outcomes take.
    audits
        Rehearsals per case. If left out 40 for up to three groups, fewer for more; with more than
        eight groups costs are estimated from C* and rehearsals of the few groups that matter most.
    assist
        Also rehearse the usual case with people who have scores, read with
        ``History.read(..., score=)``: does looking before asking help? What the score says of the
        denied is taken from their labels, if the history has some, and else from the approved.
    n_jobs
        Processes to spread the rehearsals over, as joblib counts them.

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
    >>> made = plan(world.past(), Question(epsilon=0.4), Costs(), audits=4)
    >>> made.recommended
    'adaptive'
    >>> plan(world.past(), Question("demographic_parity"), Costs()).advice
    'nothing to pay: the past data decide (UNFAIR)'
    """
    require_past(history)
    require_asked(question, costs)
    require_n_jobs(n_jobs)
    require_whole("audits", audits)
    known = {"budget": budget, "arrivals_per_day": arrivals_per_day, "delay_days": delay_days}
    for name, value in known.items():
        if value is not None:
            require_non_negative(name, value)
    if arrivals_per_day == 0:
        raise InvalidInput("'arrivals_per_day' must be above 0: nobody would ever arrive")
    if assist is not None:
        require_scores(history, assist)
    free = check(history, question)
    unknown = history.cells.unknown
    share = 1.0 if budget is None else 0.6
    options = {"denied_rate": denied_rate, "audits": audits, "n_jobs": n_jobs}
    made = [
        resolve(entry.forecast)(
            history,
            question,
            costs,
            lambda done: progress(share * done),
            **(options if name == AdaptiveAudit.name else {}),
        )
        for name, entry in AUDITS.items()
        if not unknown or resolve(entry.audit).takes_unknown
        if entry.forecast is not None
    ]
    rows = sorted(
        (row for row in made if row is not None),
        key=lambda row: (not row.possible, row.guess.cost, row.guess.labels),
    )
    recommended, advice = _advise(free, rows)
    planned = Plan(
        question=question,
        costs=costs,
        free=free,
        rows=tuple(rows),
        recommended=recommended,
        advice=advice,
        notes=(*_notes(question, unknown), *_rests_on(rows)),
        arrivals_per_day=arrivals_per_day,
        delay_days=delay_days,
    )
    if assist is not None and planned.cases and planned.cases[0].audits:
        score_savings = rehearse_scores(
            history,
            question,
            costs,
            usual_case(tuple(seen.scenario for seen in planned.cases)),
            assist,
            audits=audits,
            n_jobs=n_jobs,
        )
        planned = replace(
            planned,
            score_savings=score_savings,
            notes=(*planned.notes, *_score_note(score_savings)),
        )
    if budget is None or not planned.cases or not planned.cases[0].audits:
        return planned
    cases = tuple(seen.scenario for seen in planned.cases)
    bought = what_a_budget_buys(
        history,
        question,
        costs,
        budget,
        cases,
        progress=lambda done: progress(share + (1.0 - share) * done),
    )
    return replace(planned, affordable=bought)


def _advise(free: Check, rows: list[Forecast]) -> tuple[str | None, str]:
    if free.verdict is not Verdict.INCONCLUSIVE:
        return "check", f"nothing to pay: the past data decide ({free.verdict})"
    possible = [row for row in rows if row.possible]
    if possible:
        return possible[0].audit, _praise(possible[0])
    if rows:
        return None, f"no audit can run on this history: {'; '.join(rows[0].missing)}"
    return None, "no audit here answers this metric"


def _praise(best: Forecast) -> str:
    if not best.cases:
        return f"{best.audit}, the cheapest that can run on this history"
    cheap = min((seen.cost["0.5"] for seen in best.cases), key=_order)
    dear = max(best.cases, key=lambda seen: _order(seen.cost["0.9"]))
    words = f"run the {best.audit} audit; it costs about {_shown(cheap)} in the cheapest case below"
    if dear.cost["0.9"].value is None:
        return (
            f"{words}, but in the dearest ({dear.scenario.short}) more than one audit in ten had "
            f"not ended after {CAP:,} labels"
        )
    return f"{words}, and at most {_shown(dear.cost['0.9'])} nine times in ten in the dearest"


def _order(cost: Quantile) -> float:
    return float("inf") if cost.value is None else cost.value


def _shown(cost: Quantile) -> str:
    return f"more than {CAP:,} labels cost" if cost.value is None else f"{cost.value:,.4g}"


def _rests_on(rows: list[Forecast]) -> tuple[str, ...]:
    words = [seen.rests_on for row in rows for seen in row.cases if seen.rests_on]
    if not words:
        return ()
    return (
        f"so many groups take long to rehearse, so costs are estimates: {words[0]} in the first "
        "case, and so on; what a budget buys is not estimated. audits=8 (--audits 8) "
        "rehearses it all",
    )


def _score_note(score_savings: ScoreSavings) -> tuple[str, ...]:
    if not score_savings.extrapolated:
        return ()
    return (
        "what the score says of the denied is an extrapolation from the approved; the audit learns "
        "from its own labels what it is worth, and leaves a useless score alone",
    )


def _notes(question: Question, unknown: float) -> tuple[str, ...]:
    if unknown:
        return (
            f"the outcomes of {unknown:,g} approved people are not known: audits that count people "
            "by outcome cannot run, and are left out",
        )
    if question.gamma > 0.0:
        return ()
    return (
        "gamma = 0 calls fair only what is exactly equal; a small tolerance is usually meant, and "
        "cheaper to decide",
    )
