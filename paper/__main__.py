"""``python -m paper``: reproduce every experiment of the paper."""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from joblib import Memory, Parallel, delayed
from rich.console import Console

import equipoise
from equipoise.cli.console import show_progress
from equipoise.errors import EquipoiseError, InvalidInput, UnknownName, require_n_jobs
from paper import blackbox, embedded, families, notes, parameters, synthetic, theorems
from paper.page import Chapter, Settings, write_page
from paper.pictures import legend_below, new_figure, to_svg
from paper.tables import (
    CLASSIFIERS,
    LAW_SCHOOL,
    PAPER_CLASSIFIERS,
    law_school,
    load_classifier,
    register_csv,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# In the order of the page.
EXPERIMENTS: dict[str, Callable[[Settings], Chapter]] = {
    "blackbox": blackbox.run,
    "synthetic": synthetic.run,
    "embedded": embedded.run,
    "parameters": parameters.run,
    "theorems": theorems.run,
    "families": families.run,
    "notes": notes.run,
}


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m paper",
        description="Reproduce the paper's experiments: CSV tables, SVG pictures and one page. "
        "What is there from an earlier run and still holds is not run again.",
        epilog="Example: python -m paper --only blackbox --quick",
    )
    add, names = parser.add_argument, ", ".join(EXPERIMENTS)
    add("--out", type=Path, default=Path("results"), help="where the results go")
    add("--only", action="append", metavar="NAME", help=f"only this one; may be repeated: {names}")
    add("--quick", action="store_true", help="few repeats: does everything work?")
    add("--n-jobs", type=int, default=2, help="processes, -1 for all")
    add("--seed", type=int, default=0, help="where randomness starts")
    add("--paper-seeds", action="store_true", help="five runs, with the paper's five seeds")
    law = os.environ.get(LAW_SCHOOL) or None
    add("--law-school", type=Path, default=law, metavar="FILE", help=f"else {LAW_SCHOOL}")
    add(
        "--dataset",
        metavar="FILE.csv",
        help="audit classifiers on a table of your own: the black-box figure",
    )
    add("--group", default="group", metavar="COLUMN", help="of --dataset: the group, two values")
    add("--outcome", default="outcome", metavar="COLUMN", help="of --dataset: the outcome, 0 or 1")
    add(
        "--classifier",
        action="append",
        metavar="MODULE:FUNCTION",
        help="audit this one; FUNCTION returns a classifier with fit and predict",
    )
    add("--docs", type=Path, metavar="FOLDER", help="also write the page and pictures there")
    return parser.parse_args(arguments)


def run_one(name: str, settings: Settings, version: str) -> Chapter:
    """Run one experiment; ``version`` tells kept results of other code apart."""
    del version
    return EXPERIMENTS[name](settings)


def version_of(settings: Settings) -> str:
    """Return a hash of what results depend on: the package, this folder, the Law School file."""
    digest = hashlib.sha256()
    folders = (Path(equipoise.__file__).parent, Path(__file__).parent)
    paths = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    for path in [*paths, *([settings.law_school] if settings.law_school else [])]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def reproduce(to_do: argparse.Namespace) -> None:
    """Run what was chosen, write the page, and print the claims."""
    for name in to_do.only or ():
        if name not in EXPERIMENTS:
            raise UnknownName("experiment", name, EXPERIMENTS)
    require_n_jobs(to_do.n_jobs)
    if to_do.law_school:
        law_school(to_do.law_school)  # refuses what is not that table
    settings = Settings(to_do.quick, to_do.seed, to_do.law_school, to_do.paper_seeds)
    chosen = [name for name in EXPERIMENTS if not to_do.only or name in to_do.only]
    work, version = Memory(to_do.out / "cache", verbose=0).cache(run_one), version_of(settings)
    kept = [name for name in chosen if work.check_call_in_cache(name, settings, version)]
    runs = Parallel(to_do.n_jobs, return_as="generator")(
        delayed(work)(name, settings, version) for name in chosen
    )
    chapters: dict[str, Chapter] = {}
    with show_progress("experiments") as progress:
        for name, chapter in zip(chosen, runs, strict=True):
            chapters[name] = chapter
            progress(len(chapters) / len(chosen))
    shown = {"blackbox", "embedded", "synthetic"} <= set(chosen)
    figure_1 = to_svg(partial(draw_figure_1, chapters)) if shown else None
    command = "python -m paper" + " --quick" * to_do.quick
    command += f" --seed {to_do.seed}" * bool(to_do.seed)
    command += " --paper-seeds" * to_do.paper_seeds
    write_page(chapters, figure_1, command, out=to_do.out, docs=to_do.docs)
    say = partial(Console(highlight=False).print, markup=False)
    for chapter in chapters.values():
        for claim in chapter.claims:
            say(f"{claim.where}: {claim.the_paper_says}", style="bold")
            say(f"  published {claim.its_number}; ours {claim.ours}: {claim.verdict}")
    for chapter in chapters.values():
        if chapter.left_out:
            say(chapter.left_out, style="yellow")
    if to_do.quick:
        say("Caution: --quick has few runs; its verdicts on claims are not reliable.", style="bold")
    say(f"{len(kept)} of {len(chosen)} experiments kept from before.")
    say(f"Page: {to_do.out / 'paper.html'}")


def audit_own(to_do: argparse.Namespace) -> None:
    """Draw the black-box figure for the user's own table or classifiers."""
    for name in to_do.only or ():
        if name != "blackbox":
            raise InvalidInput(
                f"--dataset and --classifier draw the black-box figure alone; got --only {name}. "
                "Leave out --only, or leave out --dataset and --classifier"
            )
    dataset = "adult"
    if to_do.dataset:
        dataset = Path(to_do.dataset).stem
        register_csv(dataset, to_do.dataset, group=to_do.group, outcome=to_do.outcome)
    classifiers = [
        name if name in CLASSIFIERS else load_classifier(name)
        for name in to_do.classifier or PAPER_CLASSIFIERS
    ]
    settings = Settings(to_do.quick, to_do.seed, to_do.law_school, to_do.paper_seeds)
    summary, picture = blackbox.run_own(dataset, classifiers, settings)
    to_do.out.mkdir(parents=True, exist_ok=True)
    figure_path = to_do.out / f"{dataset}.svg"
    figure_path.write_text(picture, encoding="utf-8")
    summary.to_csv(to_do.out / f"{dataset}.csv", index=False, lineterminator="\n")
    say = partial(Console(highlight=False).print, markup=False)
    for row in summary.to_dict("records"):
        say(
            f"{row['classifier']}: true EOD {row['true_EOD']:.3f}; at tau = 1000 Baseline "
            f"{row['Baseline']:,.0f}, RS-Audit {row['RS-Audit']:,.0f}"
        )
    if to_do.quick:
        say("Caution: --quick has few runs; its figure is not reliable.", style="bold")
    say(f"Figure: {figure_path}")


def draw_figure_1(chapters: Mapping[str, Chapter]) -> Figure:
    """Draw the paper's Figure 1, estimated EOD (left) and cost (right)."""
    figure, panels = new_figure(3, 2, height=3.0)
    estimate, cost = panels[0]
    blackbox.draw_classifier(cost, estimate, **chapters["blackbox"].found)
    for row, name in zip(panels[1:], ("embedded", "synthetic"), strict=True):
        found = chapters[name].found
        synthetic.draw_estimate(row[0], found["runs"], "as run", found["EOD"])
        synthetic.draw_cost(row[1], found["prices"], "as run", (0.0, 1.0))
    for row, title in zip(panels, ("Adult, all_LR", "Adult, embedded", "synthetic"), strict=True):
        row[1].set_title("")
        row[0].set_title(title, loc="left")
    legend_below(figure)
    return figure


def main(arguments: list[str] | None = None) -> None:
    """Run the command; bad input is one line and code 2."""
    try:
        to_do = parse(arguments)
        if to_do.dataset or to_do.classifier:
            audit_own(to_do)
        else:
            reproduce(to_do)
    except EquipoiseError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from error


if __name__ == "__main__":
    main()
