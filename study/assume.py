"""What it is worth to grant that the denied do no better than the approved, and what it risks.

The bank's instances with and without the assumption, all of which keep to it; worlds on its very
edge, where a false alarm or a wrong verdict is most likely; and a world that breaks it.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from bench.measure import table
from rich.table import Table

import equipoise as eq
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.rates import clopper_pearson
from equipoise.simulation.loop import InBlocks, let_come
from equipoise.worlds import CellWorld
from study.bank import GAP, Instance, bank

PAGE = Path(__file__).parents[1] / "docs" / "assume.md"
NO_BETTER = eq.Assume(denied_no_better=True)
EDGE = eq.Question("equal_opportunity", gamma=0.1, epsilon=0.2, delta=0.1, assume=NO_BETTER)
ASIDE = 1e-5
ALARM = "false alarm"
MOST_LABELS = 20_000


def at_the_edge(difference: float) -> CellWorld:
    """Return a world whose denied are just like the approved: a TPR is a selection rate."""
    high, low = 0.5 + difference / 2.0, 0.5 - difference / 2.0
    return CellWorld.from_shares(
        {g: (0.6 * x, 0.4 * x, 1.0 - x, 0.6) for g, x in (("A", high), ("B", low))}
    )


def edges() -> dict[str, CellWorld]:
    """Return the only right verdict of worlds on the edge, and the worlds."""
    return {
        "FAIR": at_the_edge(EDGE.gamma - ASIDE),
        "UNFAIR": at_the_edge(EDGE.threshold + ASIDE),
    }


def breaking() -> CellWorld:
    """Return a world in which the denied of B would do far better than its approved."""
    return CellWorld.from_shares({"A": (0.2, 0.2, 0.6, 0.4), "B": (0.2, 0.2, 0.6, 0.8)})


def endings(
    world: CellWorld, question: eq.Question, runs: int, past: int | None, seed: int
) -> Counter[str]:
    """Return how often audits ended with each verdict, or with an alarm."""
    ended: Counter[str] = Counter()
    for each in np.random.SeedSequence(seed).spawn(runs):
        rng = np.random.default_rng(each)
        audit = AdaptiveAudit(world.past(past, rng), question, eq.Costs())
        if audit.finding is None:
            let_come(InBlocks.of(audit, world, rng), MOST_LABELS)
        found = audit.conclude()
        ended[ALARM if found.warnings else found.verdict.value] += 1
    return ended


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=1000, help="on the edge")
    parser.add_argument("--bank-runs", type=int, default=40, help="of every instance")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=PAGE, help="the page to write")


def run(options: argparse.Namespace) -> Table:
    lines = [
        "# What an assumption is worth, and what it risks",
        "",
        "<!-- generated: do not edit -->",
        "",
        f"Made by `python -m study assume --runs {options.runs} --bank-runs {options.bank_runs}`. "
        "Assumed is that the denied of every group would do no better than its approved.",
        "",
        "## On the edge",
        "",
        f"{EDGE}. Every r is at its limit, Delta {ASIDE:g} inside gamma or beyond gamma + epsilon. "
        "A wrong verdict or a false alarm may have probability delta. The last rows break the "
        "assumption: nothing is promised there; alarms are right.",
        "",
        "| truth | past | runs | FAIR | UNFAIR | alarms | no answer | wrong or false, 95% |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for row in _edge_rows(options):
        lines.append(row)
        options.output.write_text("\n".join([*lines, ""]))
    lines += [
        "",
        "## The bank, two groups",
        "",
        "| instance | metric | truth | C* | C* assuming | cost | cost assuming | ratio |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    ratios = []
    for instance in bank():
        if instance.groups == 2 and not instance.is_free and instance.kind != GAP:
            row, ratio = _with_and_without(instance, options)
            ratios.append(ratio)
            lines.append(row)
            options.output.write_text("\n".join([*lines, ""]))
    mean = float(np.exp(np.mean(np.log(np.maximum(ratios, 1e-3)))))
    lines += ["", f"Geometric mean of the ratios: {mean:.3f}; least {min(ratios):.3f}."]
    options.output.write_text("\n".join([*lines, ""]))
    out = table("cost with the assumption over cost without", "instances", "mean", "least")
    out.add_row(str(len(ratios)), f"{mean:.3f}", f"{min(ratios):.3f}")
    return out


def _edge_rows(options: argparse.Namespace) -> Iterable[str]:
    for past in (None, 10_000):
        for truth, world in [*edges().items(), ("breaks it", breaking())]:
            ended = endings(world, EDGE, options.runs, past, options.seed)
            bad = ended[ALARM] + ended["FAIR" if truth == "UNFAIR" else "UNFAIR"]
            low, high = clopper_pearson(bad, options.runs, 0.025)
            shown = [
                truth,
                "unlimited" if past is None else f"{past:,}",
                f"{options.runs:,}",
                *(str(ended[name]) for name in ("FAIR", "UNFAIR", ALARM, "INCONCLUSIVE")),
                "–"
                if truth == "breaks it"
                else f"{bad / options.runs:.3f}, {low:.3f} to {high:.3f}",
            ]
            yield "| " + " | ".join(shown) + " |"


def _with_and_without(instance: Instance, options: argparse.Namespace) -> tuple[str, float]:
    costs, assuming = eq.Costs(), replace(instance.question, assume=NO_BETTER)
    (plain, bound), (granted, least) = (
        (
            eq.simulate(
                "adaptive", instance.world, question, costs,
                repeats=options.bank_runs, seed=options.seed,
            ),
            float(eq.lower_bound(instance.world, question, costs)),
        )
        for question in (instance.question, assuming)
    )  # fmt: skip
    ratio = float(granted.cost.mean() / plain.cost.mean())
    cells = [
        instance.name,
        instance.question.metric.replace("_", " "),
        instance.kind,
        f"{bound:,.0f}",
        f"{least:,.0f}",
        f"{plain.cost.mean():,.0f}",
        f"{granted.cost.mean():,.0f}",
        f"{ratio:.3f}",
    ]
    return "| " + " | ".join(cells) + " |", ratio
