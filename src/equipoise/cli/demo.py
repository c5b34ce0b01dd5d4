"""``equipoise demo``: one question about a lender whose every outcome is known, in four beats."""

from __future__ import annotations

import json as json_module
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import typer

from equipoise.cli import options as shared
from equipoise.cli.console import Heading, Line, Output, Part, Table, show, show_progress
from equipoise.question import Costs, Question

if TYPE_CHECKING:
    from equipoise.display import Progress, Row
    from equipoise.finding import Finding
    from equipoise.free_check import Check
    from equipoise.history import History
    from equipoise.planning import Plan

app = typer.Typer(add_completion=False)

QUESTION = Question("equal_opportunity", gamma=0.05, epsilon=0.05, delta=0.05)
COSTS = Costs(feature=0.0, label=1.0)
SHOWN_RATIOS = (0.1, 0.4, 0.8)  # cases of the plan that are shown, by how often the denied repay


@app.command()
def demo(json: shared.Json = False) -> None:
    """Audit the lender behind 174,047 credit scores, in four steps and a few seconds."""
    with show_progress("lending and auditing") as progress:
        story = _live_through(progress)
    show(Output(story.to_data(), _tell(story)), json)


@dataclass(frozen=True)
class Story:
    """Everything that the demonstration shows, in order.

    Attributes
    ----------
    history
        The table that the lender owns.
    check, plan
        What it proves without any override, and what an answer would cost.
    audit
        One adaptive audit of it: the one with the median cost of ``typical["seeds"]`` seeds.
    typical
        That seed and the spread of all seeds, as ``tools/typical_run.py`` recorded them.
    least_cost
        The theoretical minimum C*.
    printed_cost, exact_cost
        The mean cost of the published RS-Audit with its printed and with its exact threshold.
    gap
        The true gap: every outcome of these people is known.
    """

    history: History
    check: Check
    plan: Plan
    audit: Finding
    typical: dict[str, Any]
    least_cost: float
    printed_cost: float
    exact_cost: float
    gap: float

    def to_data(self) -> dict[str, object]:
        """Return the story for programs."""
        return {
            "history": self.history.cells,
            "check": self.check,
            "plan": self.plan,
            "audit": self.audit,
            "typical": self.typical,
            "least_cost": self.least_cost,
            "printed_cost": self.printed_cost,
            "exact_cost": self.exact_cost,
            "truth": self.gap,
        }


def _live_through(progress: Progress) -> Story:
    """Check, plan and audit; ``progress`` is told the share that is done."""
    from equipoise.audits.adaptive import AdaptiveAudit
    from equipoise.audits.rs_audit import RSAudit
    from equipoise.bounds import expectation, lower_bound
    from equipoise.free_check import check
    from equipoise.planning import plan
    from equipoise.simulation import run
    from equipoise.worlds.data import fico_lender

    lender = fico_lender(threshold=30)
    history = lender.history()
    world = lender.world
    progress(0.1)
    finding = check(history, QUESTION)
    cost_plan = plan(history, QUESTION, COSTS)
    progress(0.4)
    # One audit may be lucky or not. This seed has the median cost of many, which took long to find.
    typical = _typical_run()
    audit = run(AdaptiveAudit(history, QUESTION, COSTS), world, typical["seed"])
    progress(0.9)
    # The formula takes a number, and the audit knows the smallest threshold that is proven.
    exact_tau = RSAudit(world.past(), QUESTION, COSTS, tau="exact").tau
    story = Story(
        history=history,
        check=finding,
        plan=cost_plan,
        audit=audit,
        typical=typical,
        least_cost=float(lower_bound(world, QUESTION, COSTS)),
        printed_cost=expectation("rs", world, QUESTION, COSTS).cost,
        exact_cost=expectation("rs", world, QUESTION, COSTS, tau=exact_tau).cost,
        gap=world.gap(QUESTION.metric, QUESTION.comparison),
    )
    progress(1.0)
    return story


def _typical_run() -> dict[str, Any]:
    """Return the seed with the median cost, and the spread over all seeds."""
    record = files("equipoise.worlds").joinpath("fico/typical_run.json")
    data: dict[str, Any] = json_module.loads(record.read_text(encoding="utf-8"))
    return data


def _tell(story: Story) -> list[Part]:
    """Return the story for people."""
    from equipoise.display import format_count, format_figures, format_hundredths
    from equipoise.messages.answer import build_answer

    audit = story.audit
    answer = build_answer(audit)
    spread = story.typical["cost"]
    n_seeds = story.typical["seeds"]
    gap_range = format_hundredths(audit.lower, audit.upper)
    checked_range = format_hundredths(story.check.lower, story.check.upper)
    return [
        Heading("1. What the data seem to say"),
        f"{format_count(story.history.cells.total)} people applied for a loan. A credit score of "
        "30 was enough. The lender knows who repaid only among the people it approved.",
        "Among applicants who would repay, is every group approved equally often? Tolerance 5 "
        "points, margin 5 points, error probability 5%.",
        Table(_naive_rows(story.check)),
        Heading("2. What the data prove"),
        Line(
            story.check.verdict,
            f"the gap could be anything from {checked_range} points. It depends on what denied "
            "applicants would have done.",
        ),
        Heading("3. What an answer costs"),
        "The audit overrides some denials and waits for the outcomes. Each override that fails "
        "costs 1.",
        Table(_cost_rows(story.plan)),
        Heading("4. The audit, and the truth"),
        Line(answer.title, answer.sentence, "."),
        f"It overrode {audit.labels:,} denials, and {audit.cost:,.0f} of these people did not "
        f"repay. Range of the gap: {gap_range} points. True gap: {100.0 * story.gap:.1f} points.",
        f"This run is typical: {n_seeds} audits (seeds 0 to {n_seeds - 1}) cost "
        f"{spread['50%']:,} in the median (80% range {spread['10%']:,} to {spread['90%']:,}).",
        f"No audit with this guarantee can cost less than {story.least_cost:,.0f} on average. The "
        f"paper's RS-Audit would cost {format_figures(story.printed_cost)} with its printed "
        f"constants, and {format_figures(story.exact_cost)} with the smallest that are proven. "
        "Both figures assume unlimited historical data.",
        "",
        "Next: equipoise check YOUR.csv --group COLUMN --decision COLUMN --outcome COLUMN",
        "Then: docs/start/five-minutes.md, or make serve for the dashboard.",
    ]


def _naive_rows(check: Check) -> list[Row]:
    """Return what other ways of counting would answer."""
    approved_only = check.approved_only or 0.0
    denied_as_failures = check.denied_as_failures or 0.0
    return [
        {
            "way of counting": "approved people only",
            "gap in points": f"{100.0 * approved_only:.1f}",
            "why it is not supported": "says nothing about the denied",
        },
        {
            "way of counting": "denials as failures",
            "gap in points": f"{100.0 * denied_as_failures:.1f}",
            "why it is not supported": "other outcomes fit as well",
        },
    ]


def _cost_rows(plan: Plan) -> list[Row]:
    """Return what the audit costs in some of the plan's cases, as `equipoise plan` shows it."""
    from equipoise.planning.case_rows import case_rows

    return [
        {
            "if denied applicants repay": f"{case.scenario.ratio:.0%} as often",
            "expected verdict": row["Expected verdict"],
            "typical cost": row["Typical cost"],
            "80% range": row["80% range"],
        }
        for case, row in zip(plan.cases, case_rows(plan), strict=True)
        if case.scenario.ratio in SHOWN_RATIOS
    ]
