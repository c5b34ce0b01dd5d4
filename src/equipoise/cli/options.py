"""Options that several commands share, and what they stand for."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

__all__ = [
    "DATA",
    "Decision",
    "DeniedOutcomes",
    "Group",
    "Json",
    "Outcome",
    "Positive",
    "Source",
]

DATA = "Past decisions"

Source = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="CSV, Parquet or Excel files, a glob, a folder, a database or its address.",
        show_default=False,
    ),
]
Group = Annotated[
    list[str],
    typer.Option(
        "--group",
        "-g",
        metavar="COLUMN",
        help="Column that names a person's group; give it again for intersections.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
Decision = Annotated[
    str,
    typer.Option(
        "--decision",
        "-d",
        metavar="COLUMN",
        help="Column of decisions, 1 for approved.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
Outcome = Annotated[
    str,
    typer.Option(
        "--outcome",
        "-o",
        metavar="COLUMN",
        help="Column of outcomes, 1 for good, empty for the denied.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
Positive = Annotated[
    list[str] | None,
    typer.Option(
        "--positive",
        metavar="VALUE",
        help="Value that means 1, as in 'yes', 'decision=approved' or 'outcome=repaid'.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
DeniedOutcomes = Annotated[
    Literal["error", "ignore"],
    typer.Option(
        "--denied-outcomes",
        help="What to do with outcomes of denied people.",
        rich_help_panel=DATA,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON for programs.")]
