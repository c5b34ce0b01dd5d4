"""``equipoise demo``: the whole story on a lender whose every outcome is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from equipoise.cli import options as shared
from equipoise.cli.console import Heading, Output, Part, Table, show, show_progress
from equipoise.question import Costs, Question

if TYPE_CHECKING:
    from equipoise.display import Progress
    from equipoise.finding import Finding
    from equipoise.free_check import Check
    from equipoise.history import History
    from equipoise.planning import Plan
    from equipoise.simulation import Summary

app = typer.Typer(add_completion=False)

COARSE = Question("equalized_odds", gamma=0.05, epsilon=0.05, delta=0.05)
SHARP = Question("equal_opportunity", gamma=0.05, epsilon=0.05, delta=0.05)
FOUR_FIFTHS = Question("demographic_parity", gamma=0.2, delta=0.05, compare="ratio")
PRICES = Costs(feature=0.0, label=1.0)
RS_RUNS = 200
ADAPTIVE_RUNS = 6


@app.command()
def demo(json: shared.Json = False) -> None:
    """Tell the story on the credit scores of 174,047 people, in seconds."""
    with show_progress("lending and auditing") as progress:
        story = _live_through(progress)
    show(Output(story.to_data(), _tell(story)), json)


@dataclass(frozen=True)
class Story:
    """Everything that happens in the demonstration, in the order in which it is told.

    ``coarse``, ``four_fifths`` and ``sharp`` are free checks of the three questions. ``rs`` and
    ``adaptive`` are many simulated audits, ``rs_here`` and ``adaptive_here`` one on this lender's
    own past. ``gap`` is the true one, since every outcome of these people is known.
    """

    history: History
    coarse: Check
    four_fifths: Check
    sharp: Check
    plan: Plan
    rs: Summary
    rs_tau: int
    rs_here: Finding
    adaptive: Summary
    adaptive_here: Finding
    least_cost: float
    gap: float

    def to_data(self) -> dict[str, object]:
        """Return the story for programs."""
        return {
            "history": self.history.cells,
            "coarse": self.coarse,
            "four_fifths": self.four_fifths,
            "sharp": self.sharp,
            "plan": self.plan,
            "rs": self.rs,
            "rs_tau": self.rs_tau,
            "rs_here": self.rs_here,
            "adaptive": self.adaptive,
            "adaptive_here": self.adaptive_here,
            "least_cost": self.least_cost,
            "truth": self.gap,
        }


def _live_through(progress: Progress) -> Story:
    """Check, plan and audit; ``progress`` is told the share that is done."""
    from equipoise.audits.adaptive import AdaptiveAudit
    from equipoise.audits.rs_audit import RSAudit
    from equipoise.bounds import lower_bound
    from equipoise.free_check import check
    from equipoise.planning import plan
    from equipoise.simulation import run, simulate
    from equipoise.worlds.data import fico_lender

    lender = fico_lender(threshold=30)
    history = lender.history()
    world = lender.world
    paper_audit = RSAudit(history, SHARP, PRICES)
    free_checks = [check(history, question) for question in (COARSE, FOUR_FIFTHS, SHARP)]
    cost_plan = plan(history, SHARP, PRICES)
    rs_runs = simulate("rs", world, SHARP, PRICES, repeats=RS_RUNS)
    progress(0.2)
    adaptive_here = run(AdaptiveAudit(history, SHARP, PRICES), world, 0)
    progress(0.7)
    n_people = int(history.cells.total)
    adaptive_runs = simulate(
        "adaptive", world, SHARP, PRICES, repeats=ADAPTIVE_RUNS, seed=1, history_size=n_people
    )
    progress(1.0)
    return Story(
        history=history,
        coarse=free_checks[0],
        four_fifths=free_checks[1],
        sharp=free_checks[2],
        plan=cost_plan,
        rs=rs_runs.summary(),
        rs_tau=paper_audit.tau,
        rs_here=paper_audit.conclude(),
        adaptive=adaptive_runs.summary(),
        adaptive_here=adaptive_here,
        least_cost=float(lower_bound(world, SHARP, PRICES)),
        gap=world.gap(SHARP.metric, SHARP.comparison),
    )


def _tell(story: Story) -> list[Part]:
    """Return the story for people."""
    from equipoise.cli.plan import cases_table
    from equipoise.cli.simulate import runs_table
    from equipoise.history.history import past_rows

    n_people = story.history.cells.total
    coarse = story.coarse
    lowest_ratio = 1.0 - story.four_fifths.upper
    highest_ratio = 1.0 - story.four_fifths.lower
    audit = story.adaptive_here
    return [
        Heading("A lender and its past"),
        f"{n_people:,g} people asked for a loan; a credit score of 30 was enough to get "
        "one. Whether the loan was repaid is known only of those who got it. Are mistakes "
        "spread evenly?",
        Table(past_rows(story.history.cells)),
        Heading("What the data seem to say"),
        "Tools that drop rows without an outcome compare people who were all approved: no "
        f"difference, the gap is {coarse.approved_only:.2f}. Counting each denial as a failure "
        f"gives {coarse.denied_as_failures:.2f}. Neither is known to be true.",
        Table(coarse.answer_rows()),
        Heading("What they do say, at no cost"),
        "Whatever the denied would have done, each rate lies between two bounds.",
        Table(coarse.rate_rows()),
        f"{coarse.question}:",
        _summarize(coarse),
        Heading("The four-fifths rule, at no cost"),
        "Approvals are known of everybody. The lowest approval rate is between "
        f"{lowest_ratio:.1%} and {highest_ratio:.1%} of the highest; the rule "
        "asks for 80%.",
        _summarize(story.four_fifths),
        Heading("A question that past data leave open"),
        "Of the people who would repay, does each group get loans equally often? That is equal "
        "opportunity, and it hangs on the denied.",
        f"{story.sharp.question}:",
        _summarize(story.sharp),
        Heading("Paying for an answer"),
        "Overriding some denials shows what these people would have done; each who fails costs "
        "1. The plan, before anything is paid:",
        cases_table(story.plan),
        Heading("The paper's audit"),
        f"RS-Audit, with the constants of its proof, waits for {story.rs_tau:,} people of each "
        "group who repay, past and present. On this lender's past:",
        _summarize(story.rs_here),
        f"With an unlimited past, {story.rs.repeats} simulated runs:",
        runs_table([story.rs]),
        Heading("The adaptive audit"),
        "It looks after every label and stops when the wrong answer is refuted. New people "
        "come to the same lender; some denials are overridden:",
        _summarize(audit),
        Table(audit.rate_rows()),
        f"The gap is between {audit.lower:.3f} and {audit.upper:.3f}. {audit.labels:,} denials "
        f"were overridden, {audit.cost:,.0f} of these people failed: cost {audit.cost:,.0f}.",
        f"The paper's audit would have spent {story.rs.mean_cost:,.0f}: "
        f"{story.rs.mean_cost / audit.cost:,.0f} times as much.",
        f"Was it luck? {story.adaptive.repeats} more runs, each with a past of its own:",
        runs_table([story.adaptive], story.least_cost),
        "No audit with an unlimited past can do with less than "
        f"{story.least_cost:,.0f} on average.",
        Heading("The truth"),
        f"Of these people every outcome is known: the gap is {story.gap:.3f}.",
    ]


def _summarize(finding: Finding) -> str:
    """Return the verdict of a finding, why, and what it cost."""
    from equipoise.messages.answer import build_answer

    return f"{build_answer(finding).summary}; cost {finding.cost:,.10g}"
