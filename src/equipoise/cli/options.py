"""Options that several commands share, each written down once as an annotated type.

A command lists the options that it takes as parameters, as Typer has it::

    def status(name: AuditName, ledger: Ledger = DEFAULT_LEDGER, json: Json = False) -> None:

What an option is called outside stands in its type, so that parameters may be renamed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from equipoise.comparison import Comparison
from equipoise.errors import InvalidInput
from equipoise.metrics import METRICS
from equipoise.question import Question

if TYPE_CHECKING:
    from equipoise.ledger import LiveAudit

M_TOP_PAD = -2  # the number of the setting in malloc.h of glibc
KEPT_BYTES = 32 << 20
QUESTION_PANEL = "Question"
PRICES_PANEL = "Prices"

# -- every command ---------------------------------------------------------------------------------

Json = Annotated[bool, typer.Option("--json", help="Write JSON for programs.")]
FailOn = Annotated[
    str,
    typer.Option(
        "--fail-on",
        help="End with code 3 after one of these verdicts, as in UNFAIR,INCONCLUSIVE.",
        metavar="VERDICTS",
        show_default=False,
    ),
]

# -- audits in a ledger ----------------------------------------------------------------------------

DEFAULT_LEDGER = "equipoise-ledger.db"
Ledger = Annotated[
    str,
    typer.Option(
        "--ledger",
        "-l",
        help="A file (SQLite) or postgresql://…",
        metavar="FILE|URL",
        envvar="EQUIPOISE_LEDGER",
    ),
]
Actor = Annotated[
    str | None,
    typer.Option(
        "--actor",
        help="Name that the ledger records for this action. Default: your user name.",
        metavar="WHO",
        envvar="EQUIPOISE_ACTOR",
    ),
]
AuditName = Annotated[str, typer.Argument(metavar="NAME", help="The audit.", show_default=False)]
Reason = Annotated[str, typer.Option("--why", help="Reason, kept in the ledger.")]


def open_audit(ledger: str, name: str, actor: str | None = None) -> LiveAudit:
    """Open an audit of a ledger; what is done to it is recorded under the actor's name."""
    from equipoise.ledger import LiveAudit

    _keep_freed_memory()
    return LiveAudit.open(ledger, name, actor=actor)


def _keep_freed_memory() -> None:
    """Let the C library keep some memory that arrays free, where it is glibc.

    Replaying an audit makes and frees many arrays of a few megabytes. Giving each back to the
    system takes a fifth of the time of `ask` and `status` at a million people.
    """
    import ctypes

    with suppress(AttributeError, OSError, TypeError):  # other C libraries have no such setting
        ctypes.CDLL(None).mallopt(M_TOP_PAD, KEPT_BYTES)


# -- the question ----------------------------------------------------------------------------------

DEFAULT_METRICS = ["equalized_odds"]
Metrics = Annotated[
    list[str],
    typer.Option(
        "--metric",
        help=f"One of: {', '.join(METRICS)}. Join several by + for one question about all of them. "
        "For several questions, check takes --metric repeatedly, or --metric all.",
        metavar="NAME",
        rich_help_panel=QUESTION_PANEL,
    ),
]
Gamma = Annotated[
    float,
    typer.Option(
        "--gamma",
        "--tolerance",
        help="The tolerance: FAIR up to this gap.",
        rich_help_panel=QUESTION_PANEL,
    ),
]
Epsilon = Annotated[
    float,
    typer.Option(
        "--epsilon",
        "--margin",
        help="The margin: above the tolerance by up to this, either answer is right.",
        rich_help_panel=QUESTION_PANEL,
    ),
]
Delta = Annotated[
    float,
    typer.Option(
        "--delta",
        "--error",
        help="The error probability: the largest chance of a wrong verdict.",
        rich_help_panel=QUESTION_PANEL,
    ),
]
CompareBy = Annotated[
    Literal["difference", "ratio"],
    typer.Option(
        "--compare",
        help="By the difference of rates, or by 1 - lowest/highest: with --gamma 0.2 the "
        "four-fifths rule.",
        rich_help_panel=QUESTION_PANEL,
    ),
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        help="Compare each group with this one only.",
        metavar="GROUP",
        rich_help_panel=QUESTION_PANEL,
    ),
]
Direction = Annotated[
    Literal["both", "below", "above"],
    typer.Option(
        "--direction",
        help="With --against: count only rates below, or above, that group's.",
        rich_help_panel=QUESTION_PANEL,
    ),
]
StratumColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--within",
        help="Column of strata, such as the product. Groups are compared inside each stratum only.",
        metavar="COLUMN",
        rich_help_panel=QUESTION_PANEL,
    ),
]
LeaveOut = Annotated[
    list[str] | None,
    typer.Option(
        "--leave-out",
        help="Group that is counted but not compared.",
        metavar="GROUP",
        rich_help_panel=QUESTION_PANEL,
    ),
]


FIELD_OF_ENTRY: Mapping[str, str] = {
    "metric": "metrics",
    "tolerance": "gamma",
    "margin": "epsilon",
    "error_probability": "delta",
    "compare": "compare_by",
    "against": "against",
    "direction": "direction",
    "leave_out": "leave_out",
}
"""Entry of a file of ``--save`` -> field of :class:`QuestionOptions`."""


@dataclass(frozen=True, kw_only=True)
class QuestionOptions:
    """What is asked, as the options of a command say it."""

    metrics: Sequence[str]
    gamma: float
    epsilon: float
    delta: float
    compare_by: Literal["difference", "ratio"]
    against: str | None
    direction: Literal["both", "below", "above"]
    stratum_columns: Sequence[str] | None
    leave_out: Sequence[str] | None

    def to_saved(self) -> dict[str, object]:
        """Return the question as a file of ``--save`` keeps it."""
        entries = {entry: getattr(self, name) for entry, name in FIELD_OF_ENTRY.items()}
        # A file has a single metric without brackets, and leaves out what is empty.
        entries["metric"] = self.metrics[0] if len(self.metrics) == 1 else list(self.metrics)
        entries["leave_out"] = list(self.leave_out or ())
        if self.direction == "both":
            entries["direction"] = None
        return entries

    def with_saved(self, saved: Mapping[str, Any], typed: Collection[str]) -> QuestionOptions:
        """Return the options with those of a kept file in place of options that were not typed.

        ``typed`` are entries of the file that the command line overrides.
        """
        changes: dict[str, Any] = {}
        # What is typed now goes before what was kept.
        for entry, value in saved.items():
            if entry not in typed:
                is_list = entry in ("metric", "leave_out") and isinstance(value, str)
                changes[FIELD_OF_ENTRY[entry]] = [value] if is_list else value
        return replace(self, **changes)

    @property
    def is_single(self) -> bool:
        """Whether one metric is asked about."""
        return len(self.metrics) == 1 and "all" not in self.metrics

    def questions(self) -> tuple[Question, ...]:
        """Return one question per metric; ``all`` stands for every metric."""
        metrics = METRICS if "all" in self.metrics else dict.fromkeys(self.metrics)
        return tuple(self._question_about(metric) for metric in metrics)

    def single_question(self) -> Question:
        """Return the question; raise :class:`InvalidInput` if there are several metrics."""
        if not self.is_single:
            raise InvalidInput(
                "'--metric all', or several, is for check, which is free; give the one metric to "
                f"be decided: {', '.join(METRICS)}"
            )
        return self._question_about(self.metrics[0])

    def _question_about(self, metric: str) -> Question:
        comparison = Comparison(
            self.compare_by,
            self.against,
            self.direction,
            bool(self.stratum_columns),
            tuple(self.leave_out or ()),
        )
        return Question(metric, self.gamma, self.epsilon, self.delta, compare=comparison)


# -- prices ----------------------------------------------------------------------------------------

FeatureCost = Annotated[
    float,
    typer.Option("--feature-cost", help="Price of each request.", rich_help_panel=PRICES_PANEL),
]
LabelCost = Annotated[
    float,
    typer.Option(
        "--label-cost",
        help="Price of each override that ends badly.",
        rich_help_panel=PRICES_PANEL,
    ),
]
DeniedRates = Annotated[
    list[str] | None,
    typer.Option(
        "--denied-rate",
        help="What you know: the share of this group's denied who would have succeeded.",
        metavar="GROUP=R",
    ),
]
