"""Which audit to run: the free answer first, then a forecast per audit."""

from __future__ import annotations

import math
from dataclasses import dataclass

from equipoise._json import JsonValue
from equipoise.audits.catalogue import AUDITS, resolve
from equipoise.history.past import Past
from equipoise.identify import Check, check
from equipoise.planning.forecast import Forecast, Outlook
from equipoise.progress import Progress, silent
from equipoise.question import Costs, Question, Verdict

__all__ = ["Plan", "plan"]


@dataclass(frozen=True)
class Plan(JsonValue):
    """What is known for free, and what each audit would cost.

    Attributes
    ----------
    free
        What the past data alone establish.
    rows
        A forecast per audit, cheapest guess first, those that cannot run last.
    recommended
        "check" if the past data decide, else the audit to run, None if none can.
    advice
        The recommendation in a sentence.
    notes
        What to know about the question.
    """

    question: Question
    costs: Costs
    free: Check
    rows: tuple[Forecast, ...]
    recommended: str | None
    advice: str
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [
            f"{self.question}",
            f"costs: {self.costs}",
            f"for free: {self.free.verdict}, Delta between {self.free.lower:.3f} and "
            f"{self.free.upper:.3f}",
        ]
        for row in self.rows:
            lines.append(f"{row.audit}: {row.guess} (a guess; cost between "
                         f"{row.least.cost:,.6g} and {row.most.cost:,.6g})")  # fmt: skip
            lines += _spread(row.outlook)
            lines.append(f"  promises  {row.guarantees}")
            lines += [f"  assumes   {line}" for line in row.assumes]
            lines += [f"  missing   {line}" for line in row.missing]
        lines += [f"note: {line}" for line in self.notes]
        return "\n".join([*lines, f"recommended: {self.advice}"])


def plan(history: Past, question: Question, costs: Costs, *, progress: Progress = silent) -> Plan:
    """Say what every audit would cost on this history, and which one to run.

    The adaptive audit is rehearsed on plausible unknowns, the same ones every time; ``progress`` is
    told the share of that work which is done.

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
    >>> made = plan(world.past(), Question(epsilon=0.4), Costs())
    >>> made.recommended
    'adaptive'
    >>> plan(world.past(), Question("demographic_parity"), Costs()).advice
    'nothing to pay: the past data decide (UNFAIR)'
    """
    free = check(history, question)
    unknown = history.cells.unknown
    able = [e for e in AUDITS.values() if not unknown or resolve(e.audit).takes_unknown]
    made = [
        resolve(entry.forecast)(history, question, costs, progress)
        for entry in able
        if entry.forecast is not None
    ]
    rows = sorted(
        (row for row in made if row is not None),
        key=lambda row: (not row.possible, row.guess.cost, row.guess.labels),
    )
    recommended, advice = _advise(free, rows)
    return Plan(question, costs, free, tuple(rows), recommended, advice, _notes(question, unknown))


def _advise(free: Check, rows: list[Forecast]) -> tuple[str | None, str]:
    if free.verdict is not Verdict.INCONCLUSIVE:
        return "check", f"nothing to pay: the past data decide ({free.verdict})"
    possible = [row for row in rows if row.possible]
    if possible:
        return possible[0].audit, _praise(possible[0], rows)
    if rows:
        return None, "no audit can run on this history: see what each of them misses"
    return None, "no audit here answers this metric"


def _praise(best: Forecast, rows: list[Forecast]) -> str:
    if best.outlook is None:
        return f"{best.audit}, the cheapest that can run on this history, by the guess"
    usual, dear = best.outlook.median.cost, best.outlook.quantiles["0.9"].cost
    most = f"nine in ten at most {dear:,.3g}" if math.isfinite(dear) else "some would never end"
    praise = f"{best.audit}: half of its rehearsals cost at most {usual:,.3g}, {most}"
    rival = min((row.guess.cost for row in rows if row.audit == "rs"), default=math.inf)
    if math.isfinite(rival):
        praise += f"; RS-Audit, with past data without end, would cost about {rival:,.3g}"
    return praise


def _spread(seen: Outlook | None) -> list[str]:
    if seen is None:
        return []
    costs = ", ".join(f"{level}: {price.cost:,.4g}" for level, price in seen.quantiles.items())
    labels = ", ".join(f"{group} {count:,.0f}" for group, count in seen.labels.items())
    return [
        f"  rehearsed {seen.audits} times, cost by quantile {costs}; free {seen.free:.0%}",
        f"  labels    {labels} on average",
    ]


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
