"""``equipoise read``: say what the columns and values of files mean, question by question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.cli import past_options as reading
from equipoise.cli.console import Output, can_ask, show
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.history.guided_reading import ColumnProfile, ReadingQuestion

app = typer.Typer(add_completion=False)

Files = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FILE",
        help="The table of historical data, and the file of outcomes if there is a second one.",
        show_default=False,
    ),
]
Presets = Annotated[bool, typer.Option("--presets", help="List the layouts that --preset takes.")]
SaveTo = Annotated[
    str, typer.Option("--save", help="Where the answers are kept.", metavar="FILE.toml")
]
QUESTIONS = {
    "group": "Which column holds the group?",
    "decision": "Which column holds the decision?",
    "outcome": "Which column holds the outcome?",
    "on": "Which column of the first file identifies a person?",
    "on_outcomes": "Which column of the second file identifies a person?",
    "latest": "People have several rows of outcomes. Which column says which row is the latest?",
}


@app.command()
def read(
    files: Files = None,
    presets: Presets = False,
    save: SaveTo = "loans.toml",
    table: reading.TableName = None,
    encoding: reading.Encoding = None,
) -> None:
    """Ask you what columns and values mean, show the counts and keep your answers.

    Without a terminal the questions are printed as JSON, and the command ends with code 2.

    Example: equipoise read lar.csv performance.csv --save loans.toml
    """
    if presets:
        from equipoise.history.presets import preset_names

        names = preset_names()
        show(Output(names, "\n".join(f"{name}: {text}" for name, text in names.items())), False)
        return
    if not files or len(files) > 2:
        raise InvalidInput(
            "name the table of past decisions, and the file of outcomes if there is a second one"
        )
    from equipoise.history.guided_reading import profile_columns

    interview = Interview(files, encoding, profile_columns(files, table, encoding))
    if not can_ask():
        show(Output(interview.as_data(), failure=typer.Exit(2)), True)
        return
    arguments = interview.ask()
    if table is not None:
        arguments["table"] = table
    _read_and_keep(files[0], arguments, save)


@dataclass(frozen=True)
class Interview:
    """The questions about one file or two, asked of a person or written as data."""

    files: Sequence[str]
    encoding: str | None
    profiles: Sequence[ColumnProfile]

    def as_data(self) -> dict[str, Any]:
        """Return columns and questions; those about values suppose the proposed columns."""
        from equipoise.history.guided_reading import ask_for_columns

        questions = [*ask_for_columns(self.profiles)]
        # Nobody answers here, so later questions suppose that every proposal is right.
        proposed = {question.role: question.proposal for question in questions}
        if len(self.files) > 1 and proposed["outcome"] and self._key_of(proposed):
            questions += self._ask_for_latest(proposed)
        questions += self._ask_for_values(proposed)
        return {
            "columns": [profile.to_dict() for profile in self.profiles],
            "questions": [question.to_dict() for question in questions],
        }

    def ask(self) -> dict[str, Any]:
        """Ask a person all questions; return the arguments of :meth:`History.read`."""
        from equipoise.history.guided_reading import arguments_of, ask_for_columns

        columns = {question.role: _ask(question) for question in ask_for_columns(self.profiles)}
        arguments: dict[str, Any] = {
            role: columns[role] for role in ("group", "decision", "outcome")
        }
        if self.encoding is not None:
            arguments["encoding"] = self.encoding
        if len(self.files) > 1:
            arguments["outcomes"] = self.files[1]
            arguments["on"] = columns["on"]
            if "on_outcomes" in columns:  # the two files have different names for it
                arguments["on"] += f"={columns['on_outcomes']}"
            for question in self._ask_for_latest(columns):
                arguments["latest"] = _ask(question)
        questions = self._ask_for_values(columns)
        meanings = {(question.role, question.value): _ask(question) for question in questions}
        return {**arguments, **arguments_of(meanings)}

    def _ask_for_latest(self, columns: Mapping[str, str]) -> tuple[ReadingQuestion, ...]:
        from equipoise.history.guided_reading import ask_for_latest

        key = self._key_of(columns)
        return ask_for_latest(self.files[1], key, columns["outcome"], self.encoding)

    def _ask_for_values(self, columns: Mapping[str, str]) -> list[ReadingQuestion]:
        """Return the questions about values of the decision and the outcome, if both are known."""
        from equipoise.history.guided_reading import ask_for_values

        questions: list[ReadingQuestion] = []
        for role in ("decision", "outcome"):
            if columns[role]:
                questions += ask_for_values(role, columns[role], self.profiles)
        return questions

    def _key_of(self, columns: Mapping[str, str]) -> str:
        """Return the column that identifies people in the file of outcomes."""
        return columns.get("on_outcomes", columns["on"])


def _ask(question: ReadingQuestion) -> str:
    """Ask one question, by number; return the choice."""
    if question.value:
        typer.echo(
            f"\n{question.column}: what does {question.value!r} ({question.rows:,} rows) mean?"
        )
    else:
        typer.echo(f"\n{QUESTIONS[question.role]}")
    return _choose(question.choices, question.proposal)


def _choose(choices: Sequence[str], proposal: str) -> str:
    for number, choice in enumerate(choices, start=1):
        typer.echo(f"  {number}  {choice}")
    default = choices.index(proposal) + 1 if proposal in choices else None
    while True:
        answer: int = typer.prompt("Number", default=default, type=int)
        if 1 <= answer <= len(choices):
            return choices[answer - 1]
        typer.echo(f"A number from 1 to {len(choices)}, please.")


def _read_and_keep(place: str, arguments: dict[str, Any], save: str) -> None:
    """Read the table by the answers, show the counts, and keep the answers."""
    from equipoise.history import History
    from equipoise.history.problems import UnreadTable
    from equipoise.history.saved_readings import save_reading
    from equipoise.messages.shell import describe

    try:
        history = History.read(place, **arguments)
    except UnreadTable as error:
        # Only a proposal that was tried is offered, and one without a choice left to make.
        if error.proposal is None or not error.proposal.reads_table:
            raise
        for problem in error.problems:
            typer.echo(f"\n{describe(problem)}")
        if error.proposal.has_open_choices or not typer.confirm("Read it so?", default=True):
            raise
        arguments = dict(error.proposal.arguments)
        history = History.read(place, **arguments)
    typer.echo(f"\n{history}")
    save_reading(save, place, arguments)
    typer.echo(f"\nwrote {save}\nNext: equipoise check {save} --metric equal_opportunity")
