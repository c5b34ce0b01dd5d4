"""``python -m paper``: reproduce every experiment of the paper."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise.cli.console import bar, console, fail, print_json, working
from equipoise.cli.options import Json
from equipoise.errors import EquipoiseError

if TYPE_CHECKING:
    from paper import Edition

__all__ = ["app", "main"]

app = typer.Typer(add_completion=False)

NAMES = "blackbox, synthetic, embedded, theorems, families, notes"


@app.command()
def paper(
    out: Annotated[Path, typer.Option(help="Where the results go.")] = Path("results"),
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"Only this experiment; may be repeated: {NAMES}."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few repeats: does everything work?")
    ] = False,
    n_jobs: Annotated[int, typer.Option(help="Processes, -1 for all.")] = 2,
    seed: Annotated[int, typer.Option(help="Where randomness starts.")] = 0,
    law_school: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="law_school_clean.csv; else what EQUIPOISE_LAW_SCHOOL names."
        ),
    ] = None,
    docs: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also write paper.md and paper-notes.md there."),
    ] = None,
    json: Json = False,
) -> None:
    """Reproduce the paper's experiments: CSV tables, SVG pictures and one HTML page.

    What is there from an earlier run and still holds is not run again.

    Example: python -m paper --only blackbox --quick
    """
    with working("Setting out …"):
        from paper import Settings, run_paper
        from paper.page import write_docs, write_results

        settings = Settings(quick, seed, _law_school(law_school))
    with bar("experiments") as progress:
        edition = run_paper(
            settings, out / "cache", only=only or [], n_jobs=n_jobs, progress=progress
        )
    with working("Drawing …"):
        files = write_results(edition, out)
        if docs is not None:
            files += write_docs(edition, docs)
    if json:
        print_json(
            {
                "page": str(out / "paper.html"),
                "files": [str(path) for path in files],
                "chapters": {c.name: list(c.found) for c in edition.chapters},
                "left_out": [line for c in edition.chapters for line in c.left_out],
                "processor_seconds": edition.seconds,
                "parts": edition.parts,
                "kept_from_before": edition.kept,
            }
        )
    else:
        _show(edition, out)


def _law_school(path: Path | None) -> Path | None:
    """Return the Law School file if there is one to be had, checked."""
    from equipoise.worlds.data import LAW_SCHOOL, law_school

    named = path if path is not None else os.environ.get(LAW_SCHOOL)
    if not named:
        return None
    law_school(named)
    return Path(named)


def _show(edition: Edition, out: Path) -> None:
    from rich.padding import Padding
    from rich.text import Text

    to = console()
    for chapter in edition.chapters:
        to.print(chapter.title, style="bold", markup=False)
        for line in chapter.found:
            to.print(Padding(Text(line), (0, 0, 0, 2)))
    for chapter in edition.chapters:
        for line in chapter.left_out:
            to.print(line, style="yellow", markup=False)
    seconds = sum(edition.seconds.values())
    to.print(
        f"{edition.parts} parts, {edition.kept} kept from before; "
        f"{seconds:,.0f} s of processor time, "
        f"{edition.wall:,.0f} s now.\nPage: {out / 'paper.html'}",
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
