"""``python -m paper``: reproduce every experiment of the paper."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from equipoise.cli.console import bar, console, fail, print_json, working
from equipoise.cli.options import Json
from equipoise.display import Progress, silent
from equipoise.errors import EquipoiseError, UnknownName
from paper import figure_1
from paper.page import Edition, write_results
from paper.tables import LAW_SCHOOL, law_school
from paper.work import Settings, do_parts, join

__all__ = ["EXPERIMENTS", "main", "run_paper"]

EXPERIMENTS = {
    "blackbox": "paper.black_box",
    "synthetic": "paper.synthetic",
    "embedded": "paper.embedded",
    "theorems": "paper.theorems",
    "families": "paper.families",
    "notes": "paper.notes",
}
"""Name -> the module with its ``parts`` and ``tell``, in the order of the page."""

LONGEST_FIRST = ("embedded", "theorems", "synthetic", "blackbox", "notes", "families")

app = typer.Typer(add_completion=False)


def run_paper(
    settings: Settings,
    store: Path,
    *,
    only: Iterable[str] = (),
    n_jobs: int | None = None,
    progress: Progress = silent,
) -> Edition:
    """Run the experiments (all unless ``only`` names some) and return their chapters."""
    names = list(only)
    for name in names:
        if name not in EXPERIMENTS:
            raise UnknownName("experiment", name, EXPERIMENTS)
    modules = {n: import_module(m) for n, m in EXPERIMENTS.items() if not names or n in names}
    work = {name: modules[name].parts(settings) for name in LONGEST_FIRST if name in modules}
    parts = [part for of_one in work.values() for part in of_one]
    done = do_parts(parts, store, n_jobs=n_jobs, progress=progress)
    found = {name: join(done[part.name].tables for part in work[name]) for name in modules}
    whole = all(name in found for name in figure_1.NEEDS)
    return Edition(
        [module.tell(found[name], settings) for name, module in modules.items()],
        partial(figure_1.draw, found) if whole else None,
        {name: sum(done[part.name].seconds for part in work[name]) for name in modules},
        kept=sum(one.kept for one in done.values()),
        parts=len(done),
        settings=settings,
    )


@app.command()
def paper(
    out: Annotated[Path, typer.Option(help="Where the results go.")] = Path("results"),
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help=f"Only this experiment; may be repeated: {', '.join(EXPERIMENTS)}."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few repeats: does everything work?")
    ] = False,
    n_jobs: Annotated[int, typer.Option(help="Processes, -1 for all.")] = 2,
    seed: Annotated[int, typer.Option(help="Where randomness starts.")] = 0,
    law_path: Annotated[
        Path | None,
        typer.Option(
            "--law-school",
            metavar="FILE",
            help="law_school_clean.csv; else what EQUIPOISE_LAW_SCHOOL names.",
        ),
    ] = None,
    docs: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also write the page and pictures there.")
    ] = None,
    json: Json = False,
) -> None:
    """Reproduce the paper's experiments: CSV tables, SVG pictures and one page.

    What is there from an earlier run and still holds is not run again.

    Example: python -m paper --only blackbox --quick
    """
    named = law_path or os.environ.get(LAW_SCHOOL)
    if named:
        law_school(named)  # refuses what is not that table
    settings = Settings(quick, seed, Path(named) if named else None)
    with bar("experiments") as progress:
        store = out / "cache"
        edition = run_paper(settings, store, only=only or (), n_jobs=n_jobs, progress=progress)
    with working("Drawing …"):
        files = write_results(edition, out, docs=docs)
    left_out = [line for chapter in edition.chapters for line in chapter.left_out]
    claims = [claim for chapter in edition.chapters for claim in chapter.claims]
    if json:
        print_json(
            {
                "page": str(out / "paper.html"),
                "files": [str(path) for path in files],
                "claims": [vars(claim) for claim in claims],
                "left_out": left_out,
                "processor_seconds": edition.seconds,
                "parts": edition.parts,
                "kept_from_before": edition.kept,
            }
        )
        return
    to = console()
    for claim in claims:
        to.print(f"{claim.where}: {claim.claim}", style="bold", markup=False)
        to.print(f"  published {claim.published}; ours {claim.ours}: {claim.verdict}", markup=False)
    for line in left_out:
        to.print(line, style="yellow", markup=False)
    to.print(
        f"{edition.parts} parts, {edition.kept} kept from before; "
        f"{sum(edition.seconds.values()):,.0f} s of processor time.\nPage: {out / 'paper.html'}",
        markup=False,
    )


def main(arguments: list[str] | None = None) -> None:
    """Run the command; bad input is one line and code 2."""
    try:
        app(arguments, prog_name="python -m paper", standalone_mode=False)
    except EquipoiseError as error:
        try:
            fail(str(error))
        except typer.Exit as end:
            raise SystemExit(end.exit_code) from error


if __name__ == "__main__":
    main()
