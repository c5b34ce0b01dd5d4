"""``equipoise demo``: the whole story on a lender whose every outcome is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from equipoise.cli.console import Answer, Heading, Part, Table, bar
from equipoise.cli.options import command
from equipoise.question import Costs, Question

if TYPE_CHECKING:
    from equipoise.display import Progress
    from equipoise.finding import Finding

app = typer.Typer(add_completion=False)

COARSE = Question("equalized_odds", gamma=0.05, epsilon=0.05, delta=0.05)
SHARP = Question("equal_opportunity", gamma=0.05, epsilon=0.05, delta=0.05)
FOUR_FIFTHS = Question("demographic_parity", gamma=0.2, delta=0.05, compare="ratio")
PRICES = Costs(feature=0.0, label=1.0)
RS_RUNS, ADAPTIVE_RUNS = 200, 6


@app.command()
@command()
def demo() -> Answer:
    """Tell the story on the credit scores of 174,047 people, in seconds."""
    with bar("lending and auditing") as progress:
        return _live_through(progress)


def _live_through(progress: Progress) -> Answer:
    from equipoise.audits.adaptive import AdaptiveAudit
    from equipoise.audits.rs_audit import RSAudit
    from equipoise.bounds import lower_bound
    from equipoise.cli.plan import cases_told
    from equipoise.cli.simulate import runs_told
    from equipoise.free_check import check
    from equipoise.history.history import past_rows
    from equipoise.planning import plan
    from equipoise.simulation import run, simulate
    from equipoise.worlds.data import fico_lender

    lender = fico_lender(threshold=30)
    history, world = lender.history(), lender.world
    people = int(history.cells.total)
    coarse, four_fifths, sharp = (check(history, q) for q in (COARSE, FOUR_FIFTHS, SHARP))
    paper_audit, made = RSAudit(history, SHARP, PRICES), plan(history, SHARP, PRICES)
    rs = simulate("rs", world, SHARP, PRICES, repeats=RS_RUNS).summary()
    progress(0.2)
    here = run(AdaptiveAudit(history, SHARP, PRICES), world, 0)
    progress(0.7)
    adaptive = simulate(
        "adaptive", world, SHARP, PRICES, repeats=ADAPTIVE_RUNS, seed=1, history_size=people
    ).summary()
    progress(1.0)
    least_cost = float(lower_bound(world, SHARP, PRICES))
    story = {
        "history": history.cells,
        "coarse": coarse,
        "four_fifths": four_fifths,
        "sharp": sharp,
        "plan": made,
        "rs": rs,
        "rs_tau": paper_audit.tau,
        "rs_here": paper_audit.conclude(),
        "adaptive": adaptive,
        "adaptive_here": here,
        "least_cost": least_cost,
        "truth": world.gap(SHARP.metric, SHARP.comparison),
    }
    words: list[Part] = [
        Heading("A lender and its past"),
        f"{people:,g} people asked for a loan; a credit score of 30 was enough to get "
        "one. Whether the loan was repaid is known only of those who got it. Are mistakes "
        "spread evenly?",
        Table(past_rows(history.cells)),
        Heading("What the data seem to say"),
        "Tools that drop rows without an outcome compare people who were all approved: no "
        f"difference, the gap is {coarse.approved_only:.2f}. Counting each denial as a failure "
        f"gives {coarse.denied_as_failures:.2f}. Neither is known to be true.",
        Table(coarse.answer_rows()),
        Heading("What they do say, at no cost"),
        "Whatever the denied would have done, each rate lies between two bounds.",
        Table(coarse.rate_rows()),
        f"{coarse.question}:",
        _answer(coarse),
        Heading("The four-fifths rule, at no cost"),
        "Approvals are known of everybody. The lowest approval rate is between "
        f"{1.0 - four_fifths.upper:.1%} and {1.0 - four_fifths.lower:.1%} of the highest; the rule "
        "asks for 80%.",
        _answer(four_fifths),
        Heading("A question that past data leave open"),
        "Of the people who would repay, does each group get loans equally often? That is equal "
        "opportunity, and it hangs on the denied.",
        f"{sharp.question}:",
        _answer(sharp),
        Heading("Paying for an answer"),
        "Overriding some denials shows what these people would have done; each who fails costs "
        "1. The plan, before anything is paid:",
        cases_told(made),
        Heading("The paper's audit"),
        f"RS-Audit, with the constants of its proof, waits for {paper_audit.tau:,} people of each "
        "group who repay, past and present. On this lender's past:",
        _answer(paper_audit.conclude()),
        f"With an unlimited past, {rs.repeats} simulated runs:",
        runs_told([rs]),
        Heading("The adaptive audit"),
        "It looks after every label and stops when the wrong answer is refuted. New people "
        "come to the same lender; some denials are overridden:",
        _answer(here),
        Table(here.rate_rows()),
        f"The gap is between {here.lower:.3f} and {here.upper:.3f}. {here.labels:,} denials "
        f"were overridden, {here.cost:,.0f} of these people failed: cost {here.cost:,.0f}.",
        f"The paper's audit would have spent {rs.mean_cost:,.0f}: "
        f"{rs.mean_cost / here.cost:,.0f} times as much.",
        f"Was it luck? {adaptive.repeats} more runs, each with a past of its own:",
        runs_told([adaptive], least_cost),
        f"No audit with an unlimited past can do with less than {least_cost:,.0f} on average.",
        Heading("The truth"),
        f"Of these people every outcome is known: the gap is {story['truth']:.3f}.",
    ]
    return Answer(story, words)


def _answer(finding: Finding) -> str:
    return f"{finding.verdict}: {finding.reason}; cost {finding.cost:,.10g}"
