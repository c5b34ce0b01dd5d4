"""Wrong verdicts at the boundaries where the past is finite, and how near the truth comes to fall.

The first table runs whole audits. The second one follows the evidence against the boxes that hold
the truth: how often it ever reaches the bar, before the first label or at one of 2,000. That
is all that validity is about, and it is cheap.
"""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from tests.support.boundaries import Boundary, Row, boundaries
from tests.support.tables import table

import equipoise as eq
from equipoise.audits.design import AuditDesign
from equipoise.evidence.null_cells import CornerCells, NullCells
from equipoise.evidence.row_answers import RowAnswers
from equipoise.evidence.wrong_answers import WrongAnswers
from equipoise.metrics import rates_given_r
from equipoise.rates import clopper_pearson
from study._pages import write_section
from study.boundary import add_options as add_common_options
from study.boundary import fill

QUESTION = eq.Question("equal_opportunity", gamma=0.08, epsilon=0.12, delta=0.1)
LINES = {"half approved": 1.0, "four groups": 0.3, "eight groups": 0.1}
LABELS = 2_000  # of a path


def add_options(parser: argparse.ArgumentParser) -> None:
    add_common_options(parser, 1000)
    parser.add_argument(
        "--past",
        type=int,
        nargs="+",
        default=[3_000],
        help="rows of all groups together; 0 is an unlimited past (with --paths)",
    )
    parser.add_argument("--lines", default=",".join(LINES), help="which lines of worlds")
    parser.add_argument("--paths", action="store_true", help="only follow the truth")


def run(options: argparse.Namespace) -> Table:
    lines = options.lines.split(",")
    if options.paths:
        return follow(lines, options)
    (past,) = options.past
    rows = []
    for line in lines:
        for boundary in boundaries(line, QUESTION):
            per_group = past // len(boundary.world.groups)
            rows.append(Row(boundary, max(int(options.runs * LINES[line]), 10), per_group))
    setting = f"Outcomes come at once, the past has {past:,} rows."
    return fill(rows, options, "boundary_past", "At the boundaries, finite past", setting)


def follow(lines: list[str], options: argparse.Namespace) -> Table:
    """Return how often evidence against the truth ever reaches the bar; write it after each row."""
    columns = ("line", "truth", "past rows", "paths", "reached", "share", "allowed")
    out = table("Evidence against the truth", *columns)
    rows = [
        (boundary, past or None)
        for line in lines
        for boundary in boundaries(line, QUESTION)
        for past in options.past
    ]
    pasts = " ".join(map(str, options.past))
    command = (
        f"python -m study boundary_past --paths --runs {options.runs} --past {pasts} "
        f"--lines '{options.lines}'"
    )
    with Progress(console=Console(stderr=True), transient=True) as bar:
        for boundary, past in bar.track(rows, description="paths"):
            seeds = np.random.SeedSequence([options.seed, past or 0]).spawn(options.runs)
            paths = [follow_path(boundary, past, np.random.default_rng(seed)) for seed in seeds]
            reached = sum(has_reached for has_reached, _ in paths)
            level = max(level for _, level in paths)
            high = clopper_pearson(reached, options.runs, 0.025)[1]
            out.add_row(
                boundary.line,
                boundary.truth,
                "unlimited" if past is None else f"{past:,}",
                f"{options.runs:,}",
                str(reached),
                f"{reached / options.runs:.3f} (up to {high:.3f})",
                f"{level:.3f}",
            )
            write_section(
                options.output,
                "boundary_past_paths",
                "Evidence against the truth",
                f"Made by `{command}` (0: unlimited). A path is one past and {LABELS:,} labels at "
                f"a boundary, delta = {QUESTION.delta:g}. *Reached* counts the paths on which the "
                "evidence against the box that holds the truth was ever at its bar, before the "
                "first label or later. The guarantee rests on this alone. *Allowed* is the share "
                "of the error probability that evidence may use.",
                [out],
            )
    return out


def follow_path(
    boundary: Boundary, n_past: int | None, rng: np.random.Generator
) -> tuple[bool, float]:
    """Draw a past and labels; say whether evidence against the truth ever reaches the bar.

    The second value is the probability with which it may.
    """
    world = boundary.world
    design = AuditDesign(world.past(n_past, int(rng.integers(2**31))), boundary.question)
    answers = design.wrong_answers()
    r = np.array([world.r[group] for group in design.groups])
    groups = rng.integers(len(r), size=LABELS)
    outcomes = (rng.random(LABELS) < r[groups]).astype(int)
    counts = np.zeros((LABELS + 1, len(r), 3))
    counts[1 + np.arange(LABELS), groups, outcomes] = 1.0
    path = counts.cumsum(axis=0)[::5]
    if boundary.truth == "UNFAIR":
        evidence = against_unfair_truth(answers, boundary, design, r, path)
        bar = 1.0 / answers.level_fair
        return bool((evidence >= bar).any()), answers.level_fair
    covers = answers.fair_covers()
    total = sum(against_truth(cover, r, path) for cover in covers)
    return bool((total >= len(covers) / answers.level_unfair).any()), answers.level_unfair


def against_unfair_truth(
    answers: RowAnswers | WrongAnswers,
    boundary: Boundary,
    design: AuditDesign,
    r: np.ndarray,
    path: np.ndarray,
) -> np.ndarray:
    """Return the least evidence against the boxes of a pair that really is unfair."""
    (cover,) = answers.unfair_covers()
    found = [against_pair(cover, r, path, pair) for pair in true_pairs(boundary, design)]
    return np.asarray(np.minimum.reduce(found))


def true_pairs(boundary: Boundary, design: AuditDesign) -> list[tuple[int, int]]:
    """Return the groups a and b whose gap is beyond gamma + epsilon: their boxes hold the truth."""
    world, names = boundary.world, design.groups
    (rates,) = rates_given_r(world.cells, world.r, boundary.question.metric).values()
    pairs = [(a, b) for a in range(len(names)) for b in range(len(names))]
    threshold = boundary.question.threshold
    return [(a, b) for a, b in pairs if rates[names[a]] - rates[names[b]] >= threshold]


def against_pair(
    cover: NullCells, r: np.ndarray, path: np.ndarray, pair: tuple[int, int]
) -> np.ndarray:
    own = (cover.groups[0][:, 0] == pair[0]) & (cover.groups[1][:, 0] == pair[1])
    return against_boxes(cover, r, path, own)


def against_truth(cover: NullCells, r: np.ndarray, path: np.ndarray) -> np.ndarray:
    return against_boxes(cover, r, path, np.ones(len(cover), dtype=bool))


def against_boxes(
    cover: NullCells, r: np.ndarray, path: np.ndarray, which: np.ndarray
) -> np.ndarray:
    """Return the least evidence against parts of boxes that hold r; infinite if none does."""
    inside = ((cover.low <= r) & (r <= cover.high)).all(axis=1) & which
    around = np.flatnonzero(inside)
    if not isinstance(cover, CornerCells):  # an unlimited past: boxes are not cut
        evidence = cover.evidence(cover.log_wealth(path, around))
        return np.asarray(evidence.min(axis=1, initial=np.inf))
    can_be_cut = cover.can_be_cut(around)
    uncut = cover.select(around[~can_be_cut])
    least = np.full(len(path), np.inf)
    for boxes in [uncut, *(parts for parts, _ in cover.parts(around[can_be_cut]))]:
        holding = np.flatnonzero(((boxes.low <= r) & (r <= boxes.high)).all(axis=1))
        if len(holding):
            evidence = boxes.evidence(boxes.log_wealth(path, holding))
            least = np.minimum(least, evidence.min(axis=1))
    return least
