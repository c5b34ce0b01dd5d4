"""Options that say where past decisions are and how to read them, the same for every command."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from equipoise.cli.console import working
from equipoise.cli.options import Within, option
from equipoise.errors import BadData

if TYPE_CHECKING:
    from equipoise.history import History

Read = Callable[..., "History"]
"""What a command gets in place of the options; it may add ``score=``."""

DATA, VALUES, PLACES = "Past decisions", "Values in the past decisions", "Where and when"

Text = str | None
Texts = list[str] | None
Group = Annotated[
    Texts,
    option(
        "Column that names a person's group; give it again for intersections.",
        DATA,
        "COLUMN",
        flags="--group -g",
    ),
]
Decision = Annotated[
    Text, option("Column of decisions, 1 for approved.", DATA, "COLUMN", flags="--decision -d")
]
Outcome = Annotated[
    Text,
    option(
        "Column of outcomes, 1 for good, empty for the denied.",
        DATA,
        "COLUMN",
        flags="--outcome -o",
    ),
]
Positive = Annotated[
    Texts,
    option(
        "Value that means 1, as in 'yes', 'decision=approved' or 'outcome=repaid'.",
        DATA,
        "VALUE",
    ),
]
SOURCE = typer.Argument(
    metavar="FILE",
    help="CSV, Parquet or Excel files, a glob, a folder, a database or its address; or a .toml "
    "file of --save, in place of the options that say how to read it.",
    show_default=False,
)


def past_decisions(
    context: typer.Context,
    source: Annotated[list[str], SOURCE],
    group: Group = None,
    within: Within = None,
    decision: Decision = None,
    outcome: Outcome = None,
    positive: Positive = None,
    negative: Annotated[Texts, option("Value that means 0.", DATA, "VALUE")] = None,
    denied_outcomes: Annotated[
        Literal["error", "ignore"], option("What to do with outcomes of denied people.", DATA)
    ] = "error",
    missing_values: Annotated[
        Texts, option("Value that means none.", VALUES, "VALUE", flags="--missing-value")
    ] = None,
    missing_group: Annotated[
        str,
        option("What to call people without a group; 'refuse' refuses them.", VALUES, "NAME"),
    ] = "refuse",
    min_group: Annotated[int, option("Count groups of fewer people together.", VALUES)] = 0,
    max_groups: Annotated[int, option("Most values of a group column.", VALUES)] = 50,
    unknown: Annotated[
        Literal["refuse", "bounds", "like_known"],
        option("Approved whose outcome is not known yet.", VALUES),
    ] = "refuse",
    undecided: Annotated[
        Literal["refuse", "leave_out"], option("Rows without a decision.", VALUES)
    ] = "refuse",
    cohort: Annotated[
        Text,
        option("Column within which unknown outcomes are like known ones.", VALUES, "COLUMN"),
    ] = None,
    random_accepts: Annotated[
        Text,
        option(
            "Column that marks the denied whom a test programme accepted at random.",
            VALUES,
            "COLUMN",
        ),
    ] = None,
    random_accepts_against: Annotated[
        Texts,
        option(
            "Column, such as a score or a date, to test the programme's chance against.",
            VALUES,
            "COLUMN",
        ),
    ] = None,
    decider: Annotated[
        Text, option("Column that names who decided, for --deciders of check.", VALUES, "COLUMN")
    ] = None,
    min_cases: Annotated[int, option("Count deciders of fewer cases together.", VALUES)] = 0,
    id: Annotated[  # noqa: A002
        Text, option("Column that tells people apart.", VALUES, "COLUMN")
    ] = None,
    repeated: Annotated[
        Literal["refuse", "count_once"], option("People who are there more than once.", VALUES)
    ] = "refuse",
    table: Annotated[Text, option("Table of a database, sheet of an Excel file.", PLACES)] = None,
    query: Annotated[Text, option("Query to a database.", PLACES, "SQL")] = None,
    encoding: Annotated[Text, option("Of CSV files, as in utf-16.", PLACES)] = None,
    date: Annotated[Text, option("Column to cut by.", PLACES, "COLUMN")] = None,
    since: Annotated[Text, option("From this date on.", PLACES, "DATE")] = None,
    until: Annotated[Text, option("Before this date.", PLACES, "DATE")] = None,
    save: Annotated[
        Text,
        option(
            "Keep file and options in this .toml file, to be given in place of both.",
            PLACES,
            "FILE",
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
        from equipoise.history.options import save_reading

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
