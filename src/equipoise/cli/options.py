"""Options that several commands share, given to commands as what they stand for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal

import typer

from equipoise.cli.console import show
from equipoise.comparison import Comparison
from equipoise.errors import InvalidInput, UnknownName
from equipoise.metrics import METRICS
from equipoise.question import Costs, Question, Verdict

if TYPE_CHECKING:
    from equipoise.ledger import LiveAudit


def option(
    default: object,
    what: str,
    panel: str | None = None,
    metavar: str | None = None,
    *,
    flags: str = "",
    envvar: str | None = None,
    shown: bool = True,
    parser: Callable[[str], object] | None = None,
) -> Any:
    """Return an option with its default and help, under a heading; ``shown`` is the default's."""
    return typer.Option(
        default,
        *flags.split(),
        help=what,
        rich_help_panel=panel,
        metavar=metavar,
        envvar=envvar,
        show_default=shown,
        parser=parser,
    )


def column(what: str, panel: str, flags: str = "") -> Any:
    """Return an option that names a column, or columns."""
    return option(None, what, panel, "COLUMN", flags=flags)


QUESTION, PRICES = "Question", "Prices"
JSON = option(False, "Write JSON for programs.", flags="--json")
IN_JSON = inspect.Parameter("json", inspect.Parameter.KEYWORD_ONLY, default=JSON, annotation=bool)
LEDGER = option(
    "equipoise-ledger.db",
    "A file (SQLite) or postgresql://…",
    metavar="FILE|URL",
    flags="--ledger -l",
    envvar="EQUIPOISE_LEDGER",
)
ACTOR = option(
    None,
    "Who does this, as the ledger will say; your user name if left out.",
    metavar="WHO",
    envvar="EQUIPOISE_ACTOR",
)
NAME = typer.Argument(..., metavar="NAME", help="The audit.", show_default=False)


def command(**groups: Callable[..., Any]) -> Callable[[Callable[..., object]], Any]:
    """Make a command of a function: options in, what it returns out, in words or as JSON.

    An argument of the function that is named here is what a group of options, which is a function
    of them, returns; an option that several groups take is given to each. Every command takes
    ``--json``, and hands it on to a function that wants to know.
    """

    def decorate(function: Callable[..., object]) -> Any:
        own = _parameters(function, without=groups)
        options = {name: _parameters(group) for name, group in groups.items()}

        @wraps(function)
        def run(**values: Any) -> None:
            given = {n: groups[n](**{o: values[o] for o in options[n]}) for n in groups}
            rest = {name: values[name] for name in own if name not in groups}
            show(function(**rest, **given), values["json"])

        every = {n: p for name in own for n, p in options.get(name, {name: own[name]}).items()}
        every.setdefault("json", IN_JSON)
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


WITHIN = column(
    "Column of strata, such as the product: groups are compared inside each only.", QUESTION
)
METRIC = option(
    ["equalized_odds"],
    f"One of: {', '.join(METRICS)}; several joined by + are one question. check takes it again, or "
    "all, for several questions.",
    QUESTION,
    "NAME",
)


def questions_asked(
    metric: list[str] = METRIC,
    gamma: float = option(0.05, "FAIR up to this gap.", QUESTION),
    epsilon: float = option(0.05, "UNFAIR above gamma by more than this.", QUESTION),
    delta: float = option(0.05, "Allowed probability of a wrong answer.", QUESTION),
    compare: Literal["difference", "ratio"] = option(
        "difference",
        "By the difference of rates, or by 1 - lowest/highest: with --gamma 0.2 the "
        "four-fifths rule.",
        QUESTION,
    ),
    against: str | None = option(None, "Compare each group with this one only.", QUESTION, "GROUP"),
    direction: Literal["both", "below", "above"] = option(
        "both", "With --against: count only rates below, or above, that group's.", QUESTION
    ),
    within: list[str] | None = WITHIN,
    leave_out: list[str] | None = option(
        None, "Group that is counted and not compared.", QUESTION, "GROUP"
    ),
) -> tuple[Question, ...]:
    """Return the questions that are asked, one per metric."""
    names = METRICS if "all" in metric else dict.fromkeys(metric)
    asked = Comparison(compare, against, direction, bool(within), leave_out or ())
    return tuple(Question(name, gamma, epsilon, delta, compare=asked) for name in names)


@wraps(questions_asked)
def question_asked(**options: Any) -> Question:
    """Return the one question that is asked."""
    if len(options["metric"]) > 1 or "all" in options["metric"]:
        raise InvalidInput(
            "'--metric all', or several, is for check, which is free; give the one metric to be "
            f"decided: {', '.join(METRICS)}"
        )
    return questions_asked(**options)[0]


def prices(
    feature_cost: float = option(0.0, "Price of each request.", PRICES),
    label_cost: float = option(1.0, "Price of each override that ends badly.", PRICES),
) -> Costs:
    """Return what answers cost."""
    return Costs(feature_cost, label_cost)


def acting_audit(name: str = NAME, ledger: str = LEDGER, actor: str | None = ACTOR) -> LiveAudit:
    """Open an audit of a ledger, for somebody who changes it."""
    from equipoise.ledger import LiveAudit

    return LiveAudit.open(ledger, name, actor=actor)


def live_audit(name: str = NAME, ledger: str = LEDGER) -> LiveAudit:
    """Open an audit of a ledger, to look at it."""
    return acting_audit(name, ledger, None)


def failing(
    fail_on: str = option(
        "",
        "End with code 3 after one of these verdicts, as in UNFAIR,INCONCLUSIVE.",
        metavar="VERDICTS",
        shown=False,
    ),
) -> frozenset[Verdict]:
    """Return the verdicts after which a pipeline shall stop."""
    names = [name.strip() for name in fail_on.split(",") if name.strip()]
    for name in names:
        if name not in list(Verdict):
            raise UnknownName("verdict in '--fail-on'", name, [*Verdict])
    return frozenset(Verdict(name) for name in names)


def cents(text: object) -> int:
    """Return an amount of money as the ledger keeps it, or say how to write it."""
    if not str(text).isdecimal():
        raise typer.BadParameter(
            "it must be in whole minor units (cents; with --decimals 2 the number 50 is 0.50), at "
            f"least 0; got {str(text)!r}"
        )
    return int(str(text))


def pairs(flag: str, texts: Sequence[str] | None) -> dict[str, str]:
    """Split options that look like NAME=VALUE."""
    found: dict[str, str] = {}
    for text in texts or ():
        name, mark, value = text.rpartition("=") if flag != "--option" else text.partition("=")
        if not mark or not name or not value:
            form = "WHAT=COLUMN, as in person=id" if flag == "--column" else "NAME=VALUE"
            raise InvalidInput(f"{flag!r} must look like {form}; got {text!r}")
        if name in found:
            raise InvalidInput(f"{flag!r} says {name!r} twice; got {text!r} last")
        found[name] = value
    return found


def counts(flag: str, texts: Sequence[str] | None) -> dict[str, int]:
    """Return the counts that options like GROUP=N give."""
    return {g: numbers(flag, own, "GROUP=N")[0] for g, own in pairs(flag, texts).items()}


def numbers(flag: str, text: str, form: str) -> list[int]:
    """Return whole numbers, as many as the form has between commas."""
    found = text.split(",")
    if len(found) != len(form.split(",")) or not all(n.strip().isdecimal() for n in found):
        raise InvalidInput(f"{flag!r} must look like {form}, in whole numbers; got {text!r}")
    return [int(n) for n in found]
