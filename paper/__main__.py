"""``python -m paper``: reproduce every experiment of the paper."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer
from joblib import Memory, Parallel, delayed

import equipoise
from equipoise.cli.console import bar, console
from equipoise.errors import EquipoiseError, UnknownName, require_n_jobs
from paper.page import Found, Settings, write_page
from paper.tables import LAW_SCHOOL, law_school

EXPERIMENTS = ("blackbox", "synthetic", "embedded", "theorems", "families", "notes")
"""The modules, each with ``run`` and ``tell``, in the order of the page."""

app = typer.Typer(add_completion=False)


def run_one(name: str, settings: Settings, version: str) -> tuple[Found, float]:
    """Run one experiment, and time it; ``version`` tells kept results of other code apart."""
    del version
    start = time.process_time()
    found: Found = import_module(f"paper.{name}").run(settings)
    return found, time.process_time() - start


def version_of(settings: Settings) -> str:
    """Return a hash of what results depend on: the package, this folder, the Law School file."""
    digest = hashlib.sha256()
    folders = (Path(equipoise.__file__).parent, Path(__file__).parent)
    paths = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    for path in [*paths, *([settings.law_school] if settings.law_school else [])]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


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
            help=f"law_school_clean.csv; else what {LAW_SCHOOL} names.",
        ),
    ] = None,
    docs: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also write the page and pictures there.")
    ] = None,
) -> None:
    """Reproduce the paper's experiments: CSV tables, SVG pictures and one page.

    What is there from an earlier run and still holds is not run again.

    Example: python -m paper --only blackbox --quick
    """
    for name in only or ():
        if name not in EXPERIMENTS:
            raise UnknownName("experiment", name, EXPERIMENTS)
    require_n_jobs(n_jobs)
    named = law_path or os.environ.get(LAW_SCHOOL)
    if named:
        law_school(named)  # refuses what is not that table
    settings = Settings(quick, seed, Path(named) if named else None)
    chosen = [name for name in EXPERIMENTS if not only or name in only]
    work, version = Memory(out / "cache", verbose=0).cache(run_one), version_of(settings)
    kept = [name for name in chosen if work.check_call_in_cache(name, settings, version)]
    runs = Parallel(n_jobs, return_as="generator")(
        delayed(work)(name, settings, version) for name in chosen
    )
    found, seconds = {}, 0.0
    with bar("experiments") as progress:
        for name, (tables, spent) in zip(chosen, runs, strict=True):
            found[name], seconds = tables, seconds + spent
            progress(len(found) / len(chosen))
    chapters = {n: import_module(f"paper.{n}").tell(found[n], settings) for n in chosen}
    figure = import_module("paper.figure_1")
    drawn = partial(figure.draw, found) if set(figure.NEEDS) <= set(chosen) else None
    command = "python -m paper" + " --quick" * quick + f" --seed {seed}" * bool(seed)
    write_page(chapters, drawn, command, out=out, docs=docs)
    claims = [claim for chapter in chapters.values() for claim in chapter.claims]
    to = console()
    for claim in claims:
        to.print(f"{claim.where}: {claim.the_paper_says}", style="bold", markup=False)
        to.print(
            f"  published {claim.its_number}; ours {claim.ours}: {claim.verdict}", markup=False
        )
    for chapter in chapters.values():
        to.print(chapter.left_out, style="yellow", markup=False, end="\n" * bool(chapter.left_out))
    to.print(
        f"{len(kept)} of {len(chosen)} experiments kept from before; {seconds:,.0f} s of processor "
        f"time in all.\nPage: {out / 'paper.html'}",
        markup=False,
    )


def main(arguments: list[str] | None = None) -> None:
    """Run the command; bad input is one line and code 2."""
    try:
        app(arguments, prog_name="python -m paper", standalone_mode=False)
    except EquipoiseError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from error


if __name__ == "__main__":
    main()
