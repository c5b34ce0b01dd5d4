"""Options that say where past decisions are and how to read them, the same for every command."""

from __future__ import annotations

import shlex
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from equipoise._output_files import refuse_overwriting
from equipoise.cli.console import working
from equipoise.cli.options import WITHIN, column, option
from equipoise.errors import BadData

if TYPE_CHECKING:
    from equipoise.history import History

DATA, VALUES, PLACES = "Past decisions", "Values in the past decisions", "Where and when"

Text = str | None
Texts = list[str] | None
GROUP = column(
    "Column that names a person's group; give it again for intersections.", DATA, "--group -g"
)
DECISION = column("Column of decisions, 1 for approved.", DATA, "--decision -d")
OUTCOME = column("Column of outcomes, 1 for good, empty for the denied.", DATA, "--outcome -o")
POSITIVE = option(
    None, "Value that means 1, as in 'yes', 'decision=approved' or 'outcome=repaid'.", DATA, "VALUE"
)
SOURCE = typer.Argument(
    metavar="FILE",
    help="CSV, Parquet or Excel files, a glob, a folder, a database or its address; or a .toml "
    "file of --save, in place of the options that say how to read it.",
    show_default=False,
)


def past_decisions(
    context: typer.Context,
    source: list[str] = SOURCE,
    group: Texts = GROUP,
    within: list[str] | None = WITHIN,
    decision: Text = DECISION,
    outcome: Text = OUTCOME,
    positive: Texts = POSITIVE,
    negative: Texts = option(None, "Value that means 0.", DATA, "VALUE"),
    denied_outcomes: Literal["error", "ignore"] = option(
        "error", "What to do with outcomes of denied people.", DATA
    ),
    missing_values: Texts = option(
        None, "Value that means none.", VALUES, "VALUE", flags="--missing-value"
    ),
    missing_group: str = option(
        "refuse", "What to call people without a group; 'refuse' refuses them.", VALUES, "NAME"
    ),
    max_groups: int = option(50, "Most values of a group column.", VALUES),
    unknown: Literal["refuse", "bounds", "like_known"] = option(
        "refuse", "Approved whose outcome is not known yet.", VALUES
    ),
    undecided: Literal["refuse", "leave_out"] = option(
        "refuse", "Rows without a decision.", VALUES
    ),
    cohort: Text = column("Column within which unknown outcomes are like known ones.", VALUES),
    random_accepts: Text = column(
        "Column that marks the denied whom a test programme accepted at random.", VALUES
    ),
    random_accepts_against: Texts = column(
        "Column, such as a score or a date, to test the programme's chance against.", VALUES
    ),
    decider: Text = column("Column that names who decided, for --deciders of check.", VALUES),
    min_cases: int = option(0, "Count deciders of fewer cases together.", VALUES),
    id: Text = column("Column that tells people apart.", VALUES),  # noqa: A002
    repeated: Literal["refuse", "count_once"] = option(
        "refuse", "People who are there more than once.", VALUES
    ),
    table: Text = option(None, "Table of a database, sheet of an Excel file.", PLACES),
    query: Text = option(None, "Query to a database.", PLACES, "SQL"),
    encoding: Text = option(None, "Of CSV files, as in utf-16.", PLACES),
    date: Text = column("Column to cut by.", PLACES),
    since: Text = option(None, "From this date on.", PLACES, "DATE"),
    until: Text = option(None, "Before this date.", PLACES, "DATE"),
    save: Text = option(
        None,
        "Keep file and options in this .toml file, to be given in place of both.",
        PLACES,
        "FILE",
    ),
) -> Read:
    """Return a function that reads past decisions as the options say.

    The options are called as the arguments of :meth:`equipoise.History.read`.
    """
    given: dict[str, Any] = dict(locals())
    del given["context"], given["source"], given["save"]
    return Read(context, source, given, save)


@dataclass(frozen=True)
class Read:
    """What a command gets in place of the options: called, it reads the past decisions."""

    context: typer.Context
    source: list[str]
    options: dict[str, Any]
    save: str | None

    def __call__(self) -> History:
        """Read past decisions as the options say, and keep the options where that is wanted."""
        from equipoise.history import History
        from equipoise.history.saved_readings import save_reading

        try:
            with working("Reading past decisions …"):
                history = History.read(self.source, **self.options)
        except BadData as error:
            words = _as_typed(str(error), self.context, {"source", *self.options})
            raise BadData(words) from None
        if self.save is not None:
            save_reading(self.save, self.source, self.options)
        return history

    def refuse_overwriting(self, output: Path) -> None:
        """Raise :class:`InvalidInput` if a file to be written is one that is read."""
        from equipoise.history.options import places_of
        from equipoise.history.saved_readings import load_reading

        source, _ = load_reading(self.source, self.options)
        for places in (self.source, places_of(source)):
            refuse_overwriting(output, places, "a source of past decisions")


def _as_typed(message: str, context: typer.Context, read: Container[str]) -> str:
    """Let the command that a message ends in be the one that was typed, with its other options."""
    from equipoise.history.options import as_tuple

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
            after += [f"{one.opts[0]} {shlex.quote(str(own))}" for own in as_tuple(value)]
    return f"{text}\n  equipoise {' '.join([*before, *after])}" if mark else message
