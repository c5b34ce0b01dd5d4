"""Options that say where past decisions are and how to read them, the same for every command."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from equipoise.cli.console import working
from equipoise.cli.options import Within, option
from equipoise.errors import BadData, InvalidInput

if TYPE_CHECKING:
    from equipoise.history import History

__all__ = ["DATA", "Positive", "Read", "past_decisions", "read_meaning"]

Read = Callable[..., "History"]
"""What a command gets in place of the options; it may add ``score=``."""

DATA, VALUES, PLACES = "Past decisions", "Values in the past decisions", "Where and when"

Texts = list[str] | None
Positive = Annotated[
    Texts,
    option(
        "--positive",
        what="Value that means 1, as in 'yes', 'decision=approved' or 'outcome=repaid'.",
        panel=DATA,
        metavar="VALUE",
    ),
]


def past_decisions(
    context: typer.Context,
    source: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="CSV, Parquet or Excel files, a glob, a folder, a database or its address; or a "
            ".toml file of --save, in place of the options that say how to read it.",
            show_default=False,
        ),
    ],
    group: Annotated[
        Texts,
        option(
            *("--group", "-g"),
            what="Column that names a person's group; give it again for intersections.",
            panel=DATA,
            metavar="COLUMN",
        ),
    ] = None,
    within: Within = None,
    decision: Annotated[
        str | None,
        option(
            *("--decision", "-d"),
            what="Column of decisions, 1 for approved.",
            panel=DATA,
            metavar="COLUMN",
        ),
    ] = None,
    outcome: Annotated[
        str | None,
        option(
            *("--outcome", "-o"),
            what="Column of outcomes, 1 for good, empty for the denied.",
            panel=DATA,
            metavar="COLUMN",
        ),
    ] = None,
    positive: Positive = None,
    negative: Annotated[
        Texts, option("--negative", what="Value that means 0.", panel=DATA, metavar="VALUE")
    ] = None,
    denied_outcomes: Annotated[
        Literal["error", "ignore"],
        option(what="What to do with outcomes of denied people.", panel=DATA, default=True),
    ] = "error",
    missing_values: Annotated[
        Texts,
        option("--missing-value", what="Value that means none.", panel=VALUES, metavar="VALUE"),
    ] = None,
    missing_group: Annotated[
        str,
        option(
            what="What to call people without a group; 'refuse' refuses them.",
            panel=VALUES,
            metavar="NAME",
        ),
    ] = "refuse",
    min_group: Annotated[
        int, option(what="Count groups of fewer people together.", panel=VALUES)
    ] = 0,
    max_groups: Annotated[
        int, option(what="Most values of a group column (50).", panel=VALUES)
    ] = 50,
    unknown: Annotated[
        Literal["refuse", "bounds", "like_known"],
        option(what="Approved whose outcome is not known yet.", panel=VALUES),
    ] = "refuse",
    undecided: Annotated[
        Literal["refuse", "leave_out"], option(what="Rows without a decision.", panel=VALUES)
    ] = "refuse",
    cohort: Annotated[
        str | None,
        option(
            what="Column within which unknown outcomes are like known ones.",
            panel=VALUES,
            metavar="COLUMN",
        ),
    ] = None,
    random_accepts: Annotated[
        str | None,
        option(
            what="Column that marks the denied whom a test programme accepted at random.",
            panel=VALUES,
            metavar="COLUMN",
        ),
    ] = None,
    random_accepts_against: Annotated[
        Texts,
        option(
            what="Column, such as a score or a date, to test the programme's chance against.",
            panel=VALUES,
            metavar="COLUMN",
        ),
    ] = None,
    decider: Annotated[
        str | None,
        option(
            what="Column that names who decided, for --deciders of check.",
            panel=VALUES,
            metavar="COLUMN",
        ),
    ] = None,
    min_cases: Annotated[
        int, option(what="Count deciders of fewer cases together.", panel=VALUES)
    ] = 0,
    id: Annotated[  # noqa: A002
        str | None,
        option(what="Column that tells people apart.", panel=VALUES, metavar="COLUMN"),
    ] = None,
    repeated: Annotated[
        Literal["refuse", "count_once"],
        option(what="People who are there more than once.", panel=VALUES),
    ] = "refuse",
    table: Annotated[
        str | None, option(what="Table of a database, sheet of an Excel file.", panel=PLACES)
    ] = None,
    query: Annotated[
        str | None, option(what="Query to a database.", panel=PLACES, metavar="SQL")
    ] = None,
    encoding: Annotated[
        str | None, option(what="Of CSV files, as in utf-16.", panel=PLACES)
    ] = None,
    date: Annotated[
        str | None, option(what="Column to cut by.", panel=PLACES, metavar="COLUMN")
    ] = None,
    since: Annotated[
        str | None, option(what="From this date on.", panel=PLACES, metavar="DATE")
    ] = None,
    until: Annotated[
        str | None, option(what="Before this date.", panel=PLACES, metavar="DATE")
    ] = None,
    save: Annotated[
        str | None,
        option(
            what="Keep file and options in this .toml file, to be given in place of both.",
            panel=PLACES,
            metavar="FILE",
        ),
    ] = None,
) -> Read:
    """Return a function that reads past decisions as the options say.

    The options are called as the arguments of :meth:`equipoise.History.read`.
    """
    given: dict[str, Any] = dict(locals())
    del given["context"], given["source"], given["save"]

    def read(*, score: str | None = None) -> History:
        from equipoise.history import History
        from equipoise.history.options import kept_reading, save_reading

        _, kept = kept_reading(source)
        columns = (
            decision or kept.get("decision", "decision"),
            outcome or kept.get("outcome", "outcome"),
        )
        given["positive"] = read_meaning("--positive", positive, *columns)
        given["negative"] = read_meaning("--negative", negative, *columns)
        try:
            with working("Reading past decisions …"):
                history = History.read(source, **given, score=score)
        except BadData as error:
            raise BadData(_as_typed(str(error), context, {"source", *given})) from None
        if save is not None:
            save_reading(save, source, given)
        return history

    return read


def _as_typed(message: str, context: typer.Context, read: Container[str]) -> str:
    """Let the command that a message ends in be the one that was typed, with its other options."""
    from equipoise.history.options import listed

    text, mark, finished = message.rpartition("\n  equipoise check ")
    before, after = [context.command_path.partition(" ")[2]], [finished]
    for one in context.command.params:
        name = str(one.name)
        if name in read or str(context.get_parameter_source(name)) != "ParameterSource.COMMANDLINE":
            continue
        value = context.params[name]
        if one.param_type_name == "argument":
            before.append(shlex.quote(str(value)))
        elif isinstance(value, bool):
            after.append(one.opts[0] if value else one.secondary_opts[0])
        else:
            after += [f"{one.opts[0]} {shlex.quote(str(own))}" for own in listed(value)]
    return f"{text}\n  equipoise {' '.join([*before, *after])}" if mark else message


def read_meaning(
    option: Literal["--positive", "--negative"],
    values: Sequence[str] | None,
    decision: str = "decision",
    outcome: str = "outcome",
) -> str | list[str] | dict[str, list[str]] | None:
    """Return what ``--positive`` says, as :meth:`equipoise.History.read` takes it.

    ``COLUMN=VALUE`` names a column or its role.
    """
    values = values or []
    by_role: dict[str, list[str]] = {}
    for text in values:
        role, mark, value = text.partition("=")
        if mark and role in ("decision", "outcome", decision, outcome):
            by_role.setdefault(role, []).append(value)
    said = sum(len(of_role) for of_role in by_role.values())
    if said and said == len(values):
        return by_role
    if said:
        raise InvalidInput(
            f"{option!r} must be values, or decision=VALUE and outcome=VALUE, not both; "
            f"got {', '.join(values)}"
        )
    return list(values) or None
