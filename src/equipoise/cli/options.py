"""Options that several commands share, given to commands as what they stand for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from equipoise.comparison import Compare
from equipoise.errors import InvalidInput, UnknownName
from equipoise.question import Costs, Question, Verdict
from equipoise.rates import METRICS

if TYPE_CHECKING:
    from equipoise.ledger import LiveAudit

__all__ = [
    *("LEDGER", "Actor", "Json", "Ledger", "Name", "acting_audit", "failing", "live_audit"),
    *("Within", "option", "pairs", "prices", "question_asked", "questions_asked", "with_options"),
]

Command = Callable[..., None]


def option(
    *names: str,
    what: str,
    panel: str | None = None,
    metavar: str | None = None,
    envvar: str | None = None,
    default: bool = False,
) -> Any:
    """Return an option with its help, under a heading; ``default`` says to show the default."""
    return typer.Option(
        *names,
        help=what,
        metavar=metavar,
        envvar=envvar,
        rich_help_panel=panel,
        show_default=default,
    )


QUESTION, PRICES = "Question", "Prices"
LEDGER = "equipoise-ledger.db"
Json = Annotated[bool, typer.Option("--json", help="Write JSON for programs.")]
Ledger = Annotated[
    str,
    option(
        *("--ledger", "-l"),
        what="A file (SQLite) or postgresql://…",
        metavar="FILE|URL",
        envvar="EQUIPOISE_LEDGER",
        default=True,
    ),
]
Actor = Annotated[
    str | None,
    option(
        what="Who does this, as the ledger will say; your user name if left out.",
        metavar="WHO",
        envvar="EQUIPOISE_ACTOR",
    ),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The audit.", show_default=False)]


def with_options(**groups: Callable[..., Any]) -> Callable[[Command], Command]:
    """Put the options of functions in the place of a command's arguments.

    An argument of the command that is named here is what the function returns for its options; an
    option that several of them take is given to each.
    """

    def decorate(command: Command) -> Command:
        own = _parameters(command, without=groups)
        options = {name: _parameters(group) for name, group in groups.items()}

        @wraps(command)
        def run(**values: Any) -> None:
            given = {n: {option: values[option] for option in options[n]} for n in groups}
            rest = {name: values[name] for name in own if name not in groups}
            command(**rest, **{name: groups[name](**given[name]) for name in groups})

        every = {n: p for name in own for n, p in options.get(name, {name: own[name]}).items()}
        run.__signature__ = inspect.Signature([*every.values()])  # type: ignore[attr-defined]
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
    str,
    option(
        what=", ".join(METRICS) + "; or several, joined by +.",
        panel=QUESTION,
        metavar="NAME",
        default=True,
    ),
]
Metrics = Annotated[
    list[str],
    option(
        "--metric",
        what=f"all, or one of: {', '.join(METRICS)}; give it again for several, join them by + "
        "for one question.",
        panel=QUESTION,
        metavar="NAME",
        default=True,
    ),
]
Gamma = Annotated[float, option(what="FAIR up to this gap.", panel=QUESTION, default=True)]
Epsilon = Annotated[
    float, option(what="UNFAIR above gamma by more than this.", panel=QUESTION, default=True)
]
Delta = Annotated[
    float, option(what="Allowed probability of a wrong answer.", panel=QUESTION, default=True)
]
Comparing = Annotated[
    Literal["difference", "ratio"],
    option(
        what="By the difference of rates, or by 1 - lowest/highest: with --gamma 0.2 the "
        "four-fifths rule.",
        panel=QUESTION,
        default=True,
    ),
]
Against = Annotated[
    str | None,
    option(what="Compare each group with this one only.", panel=QUESTION, metavar="GROUP"),
]
Direction = Annotated[
    Literal["both", "below", "above"],
    option(
        what="With --against: count only rates below, or above, that group's.",
        panel=QUESTION,
        default=True,
    ),
]
Within = Annotated[
    list[str] | None,
    option(
        what="Column of strata, such as the product: groups are compared inside each only.",
        panel=QUESTION,
        metavar="COLUMN",
    ),
]
LeaveOut = Annotated[
    list[str] | None,
    option(what="Group that is counted and not compared.", panel=QUESTION, metavar="GROUP"),
]


def question_asked(
    metric: Metric = "equalized_odds",
    gamma: Gamma = 0.05,
    epsilon: Epsilon = 0.05,
    delta: Delta = 0.05,
    compare: Comparing = "difference",
    against: Against = None,
    direction: Direction = "both",
    within: Within = None,
    leave_out: LeaveOut = None,
) -> Question:
    """Return the question that is asked."""
    if metric == "all":
        raise InvalidInput(
            "'--metric all' is for check, which is free; give the one metric to be decided: "
            f"{', '.join(METRICS)}"
        )
    asked = Compare(compare, against, direction, bool(within), leave_out or ())
    return Question(metric, gamma, epsilon, delta, compare=asked)


def questions_asked(
    metric: Metrics = ["equalized_odds"],  # noqa: B006 - typer copies it
    gamma: Gamma = 0.05,
    epsilon: Epsilon = 0.05,
    delta: Delta = 0.05,
    compare: Comparing = "difference",
    against: Against = None,
    direction: Direction = "both",
    within: Within = None,
    leave_out: LeaveOut = None,
) -> tuple[Question, ...]:
    """Return the questions that are asked, one per metric."""
    names = METRICS if "all" in metric else dict.fromkeys(metric)
    compared = compare, against, direction, within, leave_out
    return tuple(question_asked(name, gamma, epsilon, delta, *compared) for name in names)


def prices(
    feature_cost: Annotated[
        float, option(what="Price of each request.", panel=PRICES, default=True)
    ] = 0.0,
    label_cost: Annotated[
        float, option(what="Price of each override that ends badly.", panel=PRICES, default=True)
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
        option(
            what="End with code 3 after one of these verdicts, as in UNFAIR,INCONCLUSIVE.",
            metavar="VERDICTS",
        ),
    ] = "",
) -> frozenset[Verdict]:
    """Return the verdicts after which a pipeline shall stop."""
    names = [name.strip() for name in fail_on.split(",") if name.strip()]
    for name in names:
        if name not in list(Verdict):
            raise UnknownName("verdict in '--fail-on'", name, [*Verdict])
    return frozenset(Verdict(name) for name in names)


def pairs(flag: str, texts: Sequence[str] | None) -> list[tuple[str, str]]:
    """Split options that look like NAME=VALUE."""
    pairs: list[tuple[str, str]] = []
    for text in texts or ():
        name, mark, value = text.rpartition("=") if flag != "--option" else text.partition("=")
        if not mark or not name or not value:
            form = "WHAT=COLUMN, as in person=id" if flag == "--column" else "NAME=VALUE"
            raise InvalidInput(f"{flag!r} must look like {form}; got {text!r}")
        if any(name == known for known, _ in pairs):
            raise InvalidInput(f"{flag!r} says {name!r} twice; got {text!r} last")
        pairs.append((name, value))
    return pairs
