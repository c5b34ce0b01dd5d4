"""Options that name the historical data and how to read them, the same for every command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

import typer

from equipoise._output_files import refuse_overwriting
from equipoise.cli.console import show_activity
from equipoise.comparison import WITHIN
from equipoise.errors import BadData, InvalidInput
from equipoise.messages.shell import READING_OPTIONS, describe_unread_table

if TYPE_CHECKING:
    from equipoise.cli.options import QuestionOptions
    from equipoise.history import History
    from equipoise.history.problems import InvalidReading, UnreadTable

QUESTION_PARAMETERS = {
    "metric": "metric",
    "tolerance": "gamma",
    "margin": "epsilon",
    "error_probability": "delta",
    "compare": "compare",
    "against": "against",
    "direction": "direction",
    "leave_out": "leave_out",
}
"""Entry of a kept question -> the parameter of a command that overrides it."""

DATA_PANEL = "Historical data"
VALUES_PANEL = "Values in the historical data"
PLACES_PANEL = "Where and when"


def _column(*flags: str, help: str, panel: str) -> Any:  # noqa: A002
    """Return an option that names a column, or columns."""
    return typer.Option(*flags, help=help, metavar="COLUMN", rich_help_panel=panel)


Source = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="CSV, Parquet or Excel files, a glob, a folder, a database or its address. Or a .toml "
        "file of --save, in place of the options that say how to read it.",
        show_default=False,
    ),
]
GroupColumns = Annotated[
    list[str] | None,
    _column(
        "--group",
        "-g",
        help="Column that names a person's group. Repeat it for intersections.",
        panel=DATA_PANEL,
    ),
]
DecisionColumn = Annotated[
    str | None,
    _column("--decision", "-d", help="Column of decisions, 1 for approved.", panel=DATA_PANEL),
]
OutcomeColumn = Annotated[
    str | None,
    _column(
        "--outcome",
        "-o",
        help="Column of outcomes, 1 for good, empty for the denied.",
        panel=DATA_PANEL,
    ),
]
PositiveValues = Annotated[
    list[str] | None,
    typer.Option(
        "--positive",
        help="Value that means 1, as in 'yes', 'decision=approved' or 'outcome=repaid'.",
        metavar="VALUE",
        rich_help_panel=DATA_PANEL,
    ),
]
NegativeValues = Annotated[
    list[str] | None,
    typer.Option(
        "--negative",
        help="Value that means 0.",
        metavar="VALUE",
        rich_help_panel=DATA_PANEL,
    ),
]
DeniedOutcomes = Annotated[
    Literal["error", "ignore"],
    typer.Option(
        "--denied-outcomes",
        help="What to do with outcomes of denied people.",
        rich_help_panel=DATA_PANEL,
    ),
]
MissingValues = Annotated[
    list[str] | None,
    typer.Option(
        "--missing-value",
        help="Value that means missing; in one column alone, as in 'decision=withdrawn'.",
        metavar="VALUE",
        rich_help_panel=VALUES_PANEL,
    ),
]
MissingGroup = Annotated[
    str,
    typer.Option(
        "--missing-group",
        help="What to call people without a group ('refuse' refuses them).",
        metavar="NAME",
        rich_help_panel=VALUES_PANEL,
    ),
]
MergeGroups = Annotated[
    list[str] | None,
    typer.Option(
        "--merge-groups",
        help="Count a value in a new group, as in 'other=Samoan'. Repeat it for each value.",
        metavar="NEW=VALUE",
        rich_help_panel=VALUES_PANEL,
    ),
]
MaxGroups = Annotated[
    int,
    typer.Option(
        "--max-groups",
        help="Largest number of groups that is accepted.",
        rich_help_panel=VALUES_PANEL,
    ),
]
UnknownOutcomes = Annotated[
    Literal["refuse", "bounds", "like_known"],
    typer.Option(
        "--unknown",
        help="What to do with approved people whose outcome is not known yet.",
        rich_help_panel=VALUES_PANEL,
    ),
]
Undecided = Annotated[
    Literal["refuse", "leave_out"],
    typer.Option(
        "--undecided", help="What to do with rows without a decision.", rich_help_panel=VALUES_PANEL
    ),
]
CohortColumn = Annotated[
    str | None,
    _column(
        "--cohort",
        help="Column within which unknown outcomes are like known ones.",
        panel=VALUES_PANEL,
    ),
]
RandomAcceptsColumn = Annotated[
    str | None,
    _column(
        "--random-accepts",
        help="Column that marks the denied whom a test programme accepted at random.",
        panel=VALUES_PANEL,
    ),
]
RandomAcceptsAgainst = Annotated[
    list[str] | None,
    _column(
        "--random-accepts-against",
        help="Column, such as a score or a date, to test the programme's chance against.",
        panel=VALUES_PANEL,
    ),
]
DeciderColumn = Annotated[
    str | None,
    _column(
        "--decider",
        help="Column that names who decided, for check --assume deciders-as-random.",
        panel=VALUES_PANEL,
    ),
]
MinCases = Annotated[
    int,
    typer.Option(
        "--min-cases",
        help="Deciders with fewer cases are counted together.",
        rich_help_panel=VALUES_PANEL,
    ),
]
IdColumn = Annotated[
    str | None, _column("--id", help="Column that identifies a person.", panel=VALUES_PANEL)
]
RepeatedPeople = Annotated[
    Literal["refuse", "count_once"],
    typer.Option(
        "--repeated",
        help="What to do with people who have several rows.",
        rich_help_panel=VALUES_PANEL,
    ),
]
TableName = Annotated[
    str | None,
    typer.Option(
        "--table",
        help="Table of a database, sheet of an Excel file.",
        rich_help_panel=PLACES_PANEL,
    ),
]
Query = Annotated[
    str | None,
    typer.Option(
        "--query", help="SQL query, for a database.", metavar="SQL", rich_help_panel=PLACES_PANEL
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        help="Encoding of CSV files, for example utf-16.",
        rich_help_panel=PLACES_PANEL,
    ),
]
Outcomes = Annotated[
    str | None,
    typer.Option(
        "--outcomes",
        help="File that has the outcomes (of a database: a table), joined by --on.",
        metavar="FILE",
        rich_help_panel=PLACES_PANEL,
    ),
]
JoinOn = Annotated[
    str | None,
    typer.Option(
        "--on",
        help="Column that identifies a person in both files, or in each: uli=loan_id.",
        metavar="COLUMN",
        rich_help_panel=PLACES_PANEL,
    ),
]
LatestColumn = Annotated[
    str | None,
    _column(
        "--latest",
        help="Column of --outcomes, such as a month: a person's last row counts.",
        panel=PLACES_PANEL,
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(
        "--preset",
        help="A layout that many lenders share, such as hmda, or a .toml file of your own: what "
        "its columns and values mean. 'equipoise read --presets' lists them.",
        metavar="NAME|FILE",
        rich_help_panel=DATA_PANEL,
    ),
]
DateColumn = Annotated[
    str | None,
    _column("--date", help="Column of dates, for --since and --until.", panel=PLACES_PANEL),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        help="Count rows from this date on.",
        metavar="DATE",
        rich_help_panel=PLACES_PANEL,
    ),
]
Until = Annotated[
    str | None,
    typer.Option(
        "--until", help="Count rows before this date.", metavar="DATE", rich_help_panel=PLACES_PANEL
    ),
]
Save = Annotated[
    str | None,
    typer.Option(
        "--save",
        help="Keep file and options in this .toml file, to be given in place of both.",
        metavar="FILE",
        rich_help_panel=PLACES_PANEL,
    ),
]


class ReadingOptions(TypedDict):
    """How a table is read: arguments of :meth:`equipoise.History.read`, as options give them."""

    group: list[str] | None
    within: list[str] | None
    decision: str | None
    outcome: str | None
    positive: list[str] | None
    negative: list[str] | None
    denied_outcomes: str
    missing_values: list[str] | None
    missing_group: str
    merge_groups: list[str] | None
    max_groups: int
    unknown: str
    undecided: str
    cohort: str | None
    random_accepts: str | None
    random_accepts_against: list[str] | None
    decider: str | None
    min_cases: int
    id: str | None
    repeated: str
    table: str | None
    query: str | None
    encoding: str | None
    outcomes: str | None
    on: str | None
    latest: str | None
    preset: str | None
    date: str | None
    since: str | None
    until: str | None


@dataclass(frozen=True)
class PastDecisions:
    """Past decisions that are not read yet: where they are and what the options say of them.

    ``context`` is that of the command, so that a message can show it as it was typed. ``save`` is
    where source and options are kept for another time.
    """

    context: typer.Context
    source: list[str]
    options: ReadingOptions
    save: str | None

    def complete_question(self, question: QuestionOptions) -> QuestionOptions:
        """Return the question with what a kept file says in place of options not typed."""
        from equipoise.history.saved_readings import load_question

        typed = {entry for entry, name in QUESTION_PARAMETERS.items() if self._is_typed(name)}
        saved = load_question(self.source)
        completed = question.with_saved(saved.question, typed)
        if not completed.stratum_columns:
            completed = replace(completed, stratum_columns=saved.stratum_columns)
        return completed

    def complete_costs(self, feature: float, label: float, unit: int = 1) -> tuple[float, float]:
        """Return both prices, those of a kept file in place of options that were not typed.

        A file has whole units of the currency, a command so many minor units to a ``unit``.
        """
        from equipoise.history.saved_readings import load_question

        saved = load_question(self.source).costs
        if "feature" in saved and not self._is_typed("feature_cost"):
            feature = saved["feature"] * unit
        if "label" in saved and not self._is_typed("label_cost"):
            label = saved["label"] * unit
        return feature, label

    def read(self, question: QuestionOptions, costs: tuple[float, float] | None = None) -> History:
        """Read the past decisions, and keep source, options and question where that is wanted.

        Raises
        ------
        BadData
            If the table cannot be read so; the message ends with a command that reads it.
        """
        from equipoise.history import History
        from equipoise.history.problems import InvalidReading, UnreadTable
        from equipoise.history.saved_readings import SavedQuestion, load_question, save_reading

        arguments: dict[str, Any] = {**self.options}
        try:
            with show_activity("Reading past decisions …"):
                history = History.read(self.source, **arguments)
        except (UnreadTable, InvalidReading) as error:
            command, more_options = self._typed_words()
            message = describe_unread_table(
                error.problems, error.proposal, command, more_options, self._guided_reading(error)
            )
            raise BadData(message) from None
        self._require_strata(history.cells.groups, question)
        # Only once the table was read: a saved reading is one that works.
        if self.save is not None:
            # A command without prices keeps those that a kept file had.
            prices = load_question(self.source).costs
            if costs is not None:
                prices = {"feature": costs[0], "label": costs[1]}
            saved_question = SavedQuestion(question.to_saved(), prices)
            save_reading(self.save, self.source, arguments, saved_question)
        return history

    def _guided_reading(self, error: UnreadTable | InvalidReading) -> str:
        """Return the command that asks for columns one by one, if the error is that they lack."""
        is_about_columns = any(problem.code == "column-not-named" for problem in error.problems)
        files = list(self.source)
        if self.options["outcomes"] is not None:
            files.append(self.options["outcomes"])
        is_readable = len(files) <= 2 and not any(file.endswith(".toml") for file in files)
        if not (is_about_columns and is_readable):
            return ""
        return f"Or answer questions: {shlex.join(['equipoise', 'read', *files])}"

    def refuse_overwriting(self, output: Path) -> None:
        """Raise :class:`InvalidInput` if a file to be written is one that is read."""
        from equipoise.history.options import places_of
        from equipoise.history.problems import InvalidReading
        from equipoise.history.saved_readings import load_reading

        # The source may be a saved reading, and neither that nor the table behind it may be lost.
        try:
            kept_source, _ = load_reading(self.source, {**self.options})
        except InvalidReading:
            return  # reading the table, which comes next, says more about it
        for places in (self.source, places_of(kept_source)):
            refuse_overwriting(output, places, "a source of past decisions")

    def _require_strata(self, groups: Sequence[str], question: QuestionOptions) -> None:
        """Refuse groups that a kept reading has within strata while the question has none."""
        if not question.stratum_columns and groups and all(WITHIN in group for group in groups):
            raise InvalidInput(
                f"groups such as {groups[0]!r} were read within strata: add --within COLUMN, or "
                "read all of the columns as --group to compare their intersections"
            )

    def _typed_words(self) -> tuple[list[str], list[str]]:
        """Return the typed command with its arguments, and the options that read no table."""
        from equipoise.history.options import as_tuple

        command = self.context.command_path.split()[1:]
        options: list[str] = []
        for parameter in self.context.command.params:
            name = str(parameter.name)
            # The proposal has the options that read the table, and its own values for them.
            is_of_reading = name == "source" or parameter.opts[0] in READING_OPTIONS.values()
            if is_of_reading or not self._is_typed(name):
                continue
            value = self.context.params[name]
            if parameter.param_type_name == "argument":
                command.append(str(value))
            elif isinstance(value, bool):
                options.append(parameter.opts[0] if value else parameter.secondary_opts[0])
            else:
                for part in as_tuple(value):
                    options += [parameter.opts[0], str(part)]
        return command, options

    def words_to_repeat(
        self, question: QuestionOptions, more_options: Mapping[str, Sequence[str]] | None = None
    ) -> str:
        """Return what another command needs to read the same past and ask the same question.

        ``more_options`` are further options with their values. They stand for typed ones of the
        same name.
        """
        from equipoise.history.options import as_tuple

        more_options = more_options or {}
        if self.save is not None:
            return shlex.join([self.save, *_option_words(more_options)])
        if not self.source[0].endswith(".toml"):
            new_options = {
                option: [value for value in values if value not in (question.leave_out or ())]
                for option, values in more_options.items()
            }
            addition = shlex.join(_option_words(new_options))
            same = f"with the same options and {addition}" if addition else "with the same options"
            return f"{shlex.join(self.source)} ({same})"
        words = [*self.source]
        for parameter in self.context.command.params:
            name = str(parameter.name)
            if name not in (*QUESTION_PARAMETERS.values(), "within") or not self._is_typed(name):
                continue
            if parameter.opts[0] in more_options:
                continue
            values = as_tuple(self.context.params[name])
            # Only check takes several metrics. The next command asks about one of them.
            if name == "metric" and not question.is_single:
                values = ("METRIC",)
            for value in values:
                words += [parameter.opts[0], str(value)]
        return shlex.join([*words, *_option_words(more_options)])

    def _is_typed(self, parameter: str) -> bool:
        """Whether a parameter was given on the command line, not by default or environment."""
        # By its name, because Typer does not export the class of it.
        return str(self.context.get_parameter_source(parameter)) == "ParameterSource.COMMANDLINE"


def _option_words(options: Mapping[str, Sequence[str]]) -> list[str]:
    """Return options as they are typed, each once for every value; a switch has no values."""
    words: list[str] = []
    for option, values in options.items():
        for value in values:
            words += [option, value]
        if not values:
            words.append(option)
    return words
