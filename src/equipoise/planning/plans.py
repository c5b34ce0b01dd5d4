"""Which audit to run: the free answer first, then a forecast per audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module

from equipoise._json import JsonValue
from equipoise.bounds import Price
from equipoise.history.past import Past
from equipoise.identify import Check, check
from equipoise.question import Costs, Question, Verdict

__all__ = ["PLANNERS", "Forecast", "Plan", "plan"]

PLANNERS: Mapping[str, str] = {
    "baseline": "equipoise.planning.stopping:forecast_baseline",
    "exp": "equipoise.planning.exp:forecast_exp",
    "rs": "equipoise.planning.stopping:forecast_rs",
}
"""Each audit's planner: a function of history, question and costs that returns a Forecast, or None
if the audit cannot answer the question's metric."""


@dataclass(frozen=True)
class Forecast(JsonValue):
    """What one audit would cost on this history.

    Attributes
    ----------
    audit
        Its name.
    guess
        The expected price if the denied were like the approved of their group: a guess, since
        nobody knows.
    least, most
        Each number's range over everything the denied could be.
    bound
        What a theorem says the price stays below, at the same guess; None without a theorem.
    guarantees
        What its verdict promises.
    assumes
        What that rests on, one line each.
    missing
        Why it cannot run on this history, one line each; empty if it can.
    """

    audit: str
    guess: Price
    least: Price
    most: Price
    guarantees: str
    assumes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    bound: Price | None = None

    @property
    def possible(self) -> bool:
        """Whether the audit can run on this history."""
        return not self.missing


Planner = Callable[[Past, Question, Costs], Forecast | None]


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
            lines.append(f"  promises  {row.guarantees}")
            lines += [f"  assumes   {line}" for line in row.assumes]
            lines += [f"  missing   {line}" for line in row.missing]
        lines += [f"note: {line}" for line in self.notes]
        return "\n".join([*lines, f"recommended: {self.advice}"])


def plan(history: Past, question: Question, costs: Costs) -> Plan:
    """Say what every audit would cost on this history, and which one to run.

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
    >>> made = plan(world.past(), Question(epsilon=0.1), Costs())
    >>> made.recommended
    'rs'
    >>> plan(world.past(), Question("demographic_parity"), Costs()).advice
    'nothing to pay: the past data decide (UNFAIR)'
    """
    free = check(history, question)
    made = [_load(path)(history, question, costs) for path in PLANNERS.values()]
    rows = sorted(
        (row for row in made if row is not None),
        key=lambda row: (not row.possible, row.guess.cost, row.guess.labels),
    )
    recommended, advice = _advise(free, rows)
    return Plan(question, costs, free, tuple(rows), recommended, advice, _notes(question))


def _advise(free: Check, rows: list[Forecast]) -> tuple[str | None, str]:
    if free.verdict is not Verdict.INCONCLUSIVE:
        return "check", f"nothing to pay: the past data decide ({free.verdict})"
    possible = [row for row in rows if row.possible]
    if possible:
        best = possible[0]
        return best.audit, f"{best.audit}, the cheapest that can run on this history, by the guess"
    if rows:
        return None, "no audit can run on this history: see what each of them misses"
    return None, "no audit here answers this metric"


def _notes(question: Question) -> tuple[str, ...]:
    if question.gamma > 0.0:
        return ()
    return (
        "gamma = 0 calls fair only what is exactly equal; a small tolerance is usually meant, and "
        "cheaper to decide",
    )


def _load(path: str) -> Planner:
    module, name = path.split(":")
    planner: Planner = getattr(import_module(module), name)
    return planner
