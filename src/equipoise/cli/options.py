"""Options that several commands share, and what they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from equipoise.cli.console import working
from equipoise.errors import InvalidInput
from equipoise.metrics import METRICS

if TYPE_CHECKING:
    from equipoise.history import History

__all__ = [
    "Decision",
    "Delta",
    "DeniedOutcomes",
    "Epsilon",
    "FeatureCost",
    "Gamma",
    "Group",
    "Json",
    "LabelCost",
    "Metric",
    "Outcome",
    "Positive",
    "Source",
    "read_history",
    "read_positive",
]

DATA, QUESTION, PRICES = "Past decisions", "Question", "Prices"

Source = Annotated[
    list[str],
    typer.Argument(metavar="FILE", help="CSV or Parquet files, or a glob.", show_default=False),
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
Metric = Annotated[
    str,
    typer.Option(
        "--metric", metavar="NAME", help=", ".join(METRICS) + ".", rich_help_panel=QUESTION
    ),
]
Gamma = Annotated[
    float,
    typer.Option("--gamma", help="FAIR up to this difference.", rich_help_panel=QUESTION),
]
Epsilon = Annotated[
    float,
    typer.Option(
        "--epsilon", help="UNFAIR above gamma by more than this.", rich_help_panel=QUESTION
    ),
]
Delta = Annotated[
    float,
    typer.Option(
        "--delta", help="Allowed probability of a wrong answer.", rich_help_panel=QUESTION
    ),
]
FeatureCost = Annotated[
    float,
    typer.Option("--feature-cost", help="Price of each request.", rich_help_panel=PRICES),
]
LabelCost = Annotated[
    float,
    typer.Option(
        "--label-cost", help="Price of each override that ends badly.", rich_help_panel=PRICES
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON for programs.")]


def read_history(
    source: Sequence[str],
    group: Sequence[str],
    decision: str,
    outcome: str,
    positive: Sequence[str] | None,
    denied_outcomes: Literal["error", "ignore"],
) -> History:
    """Read past decisions as the options say."""
    from equipoise.history import History

    with working("Reading past decisions …"):
        return History.read(
            list(source),
            group=list(group),
            decision=decision,
            outcome=outcome,
            positive=read_positive(positive or []),
            denied_outcomes=denied_outcomes,
        )


def read_positive(values: Sequence[str]) -> str | dict[str, str] | None:
    """Return what ``--positive`` says, as :meth:`equipoise.History.read` takes it."""
    by_role = {
        role: value
        for role, mark, value in (text.partition("=") for text in values)
        if mark and role in ("decision", "outcome")
    }
    if by_role and len(by_role) == len(values):
        return by_role
    if len(values) > 1:
        raise InvalidInput(
            "'--positive' must be one value, or decision=VALUE and outcome=VALUE; "
            f"got {', '.join(values)}"
        )
    return values[0] if values else None
