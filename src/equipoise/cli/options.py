"""Options that several commands share, given to commands as what they stand for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from equipoise.errors import InvalidInput, UnknownName
from equipoise.question import Costs, Question, Verdict
from equipoise.rates import METRICS

if TYPE_CHECKING:
    from equipoise.ledger import LiveAudit

__all__ = [
    *("DATA", "LEDGER", "LIMITS", "MONEY", "Actor", "Decision", "DeniedOutcomes", "Group", "Json"),
    *("Ledger", "Name", "Outcome", "Positive", "Source", "acting_audit", "failing", "live_audit"),
    *("pairs", "prices", "question_asked", "questions_asked", "with_options"),
]

MONEY, LIMITS = "Money, in whole minor units", "Limits"
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
Command = Callable[..., None]

QUESTION, PRICES = "Question", "Prices"

LEDGER = "equipoise-ledger.db"
Ledger = Annotated[
    str,
    typer.Option(
        "--ledger",
        "-l",
        envvar="EQUIPOISE_LEDGER",
        metavar="FILE|URL",
        help="A file (SQLite) or postgresql://…",
    ),
]
Actor = Annotated[
    str | None,
    typer.Option(
        envvar="EQUIPOISE_ACTOR",
        metavar="WHO",
        help="Who does this, as the ledger will say; your user name if left out.",
        show_default=False,
    ),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The audit.", show_default=False)]


def with_options(**groups: Callable[..., Any]) -> Callable[[Command], Command]:
    """Put the options of functions in the place of a command's arguments.

    An argument of the command that is named here is what the function returns for its options.
    """

    def decorate(command: Command) -> Command:
        own = _parameters(command, without=groups)
        options = {name: _parameters(group) for name, group in groups.items()}

        @wraps(command)
        def run(**values: Any) -> None:
            given = {n: {option: values.pop(option) for option in options[n]} for n in groups}
            command(**values, **{name: groups[name](**given[name]) for name in groups})

        every = [p for name in own for p in options.get(name, {name: own[name]}).values()]
        run.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
        run.__annotations__ = {}
        return run

    return decorate


def _parameters(
    function: Callable[..., Any], without: Container[str] = ()
) -> dict[str, inspect.Parameter]:
    """Return the parameters by keyword, their types evaluated (but those of whole groups)."""
    return {
        name: one.replace(
            kind=inspect.Parameter.KEYWORD_ONLY,
            annotation=None if name in without else eval(one.annotation, function.__globals__),
        )
        for name, one in inspect.signature(function).parameters.items()
    }


Metric = Annotated[
    str, typer.Option(metavar="NAME", help=", ".join(METRICS) + ".", rich_help_panel=QUESTION)
]
Metrics = Annotated[
    list[str],
    typer.Option(
        "--metric",
        metavar="NAME",
        help=f"all, or one of: {', '.join(METRICS)}; give it again for several.",
        rich_help_panel=QUESTION,
    ),
]
Gamma = Annotated[float, typer.Option(help="FAIR up to this gap.", rich_help_panel=QUESTION)]
Epsilon = Annotated[
    float, typer.Option(help="UNFAIR above gamma by more than this.", rich_help_panel=QUESTION)
]
Delta = Annotated[
    float, typer.Option(help="Allowed probability of a wrong answer.", rich_help_panel=QUESTION)
]
Comparing = Annotated[
    Literal["difference", "ratio"],
    typer.Option(
        help="By the difference of rates, or by 1 - lowest/highest: with --gamma 0.2 the "
        "four-fifths rule.",
        rich_help_panel=QUESTION,
    ),
]


def question_asked(
    metric: Metric = "equalized_odds",
    gamma: Gamma = 0.05,
    epsilon: Epsilon = 0.05,
    delta: Delta = 0.05,
    compare: Comparing = "difference",
) -> Question:
    """Return the question that is asked."""
    if metric == "all":
        raise InvalidInput(
            "'--metric all' is for check, which is free; give the one metric to be decided: "
            f"{', '.join(METRICS)}"
        )
    return Question(metric, gamma, epsilon, delta, compare=compare)


def questions_asked(
    metric: Metrics = ["equalized_odds"],  # noqa: B006 - typer copies it
    gamma: Gamma = 0.05,
    epsilon: Epsilon = 0.05,
    delta: Delta = 0.05,
    compare: Comparing = "difference",
) -> tuple[Question, ...]:
    """Return the questions that are asked, one per metric."""
    names = METRICS if "all" in metric else dict.fromkeys(metric)
    return tuple(question_asked(name, gamma, epsilon, delta, compare) for name in names)


def prices(
    feature_cost: Annotated[
        float, typer.Option(help="Price of each request.", rich_help_panel=PRICES)
    ] = 0.0,
    label_cost: Annotated[
        float, typer.Option(help="Price of each override that ends badly.", rich_help_panel=PRICES)
    ] = 1.0,
) -> Costs:
    """Return what answers cost."""
    return Costs(feature_cost, label_cost)


def acting_audit(name: Name, ledger: Ledger = LEDGER, actor: Actor = None) -> LiveAudit:
    """Open an audit of a ledger, for somebody who changes it."""
    from equipoise.ledger import LiveAudit

    return LiveAudit.open(ledger, name, actor=actor)


def live_audit(name: Name, ledger: Ledger = LEDGER) -> LiveAudit:
    """Open an audit of a ledger, to look at it."""
    return acting_audit(name, ledger)


def failing(
    fail_on: Annotated[
        str,
        typer.Option(
            metavar="VERDICTS",
            help="End with code 3 after one of these verdicts, as in UNFAIR,INCONCLUSIVE.",
            show_default=False,
        ),
    ] = "",
) -> frozenset[Verdict]:
    """Return the verdicts after which a pipeline shall stop."""
    names = [name.strip() for name in fail_on.split(",") if name.strip()]
    for name in names:
        if name not in list(Verdict):
            raise UnknownName("verdict in '--fail-on'", name, [*Verdict])
    return frozenset(Verdict(name) for name in names)


def pairs(option: str, texts: Sequence[str] | None) -> list[tuple[str, str]]:
    """Split options that look like NAME=VALUE."""
    pairs = []
    for text in texts or ():
        name, mark, value = text.rpartition("=") if option != "--option" else text.partition("=")
        if not mark or not name or not value:
            form = "WHAT=COLUMN, as in person=id" if option == "--column" else "NAME=VALUE"
            raise InvalidInput(f"{option!r} must look like {form}; got {text!r}")
        pairs.append((name, value))
    return pairs
