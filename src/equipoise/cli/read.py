"""``equipoise read``: say what the columns and values of files mean, question by question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.cli.console import Output, can_ask, show
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.history.guided_reading import ReadingQuestion

app = typer.Typer(add_completion=False)

Files = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FILE",
        help="The table of past decisions, and the file of outcomes if there is a second one.",
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
    "on": "Which column identifies a person in both files?",
}


@app.command()
def read(
    files: Files = None,
    presets: Presets = False,
    save: SaveTo = "loans.toml",
) -> None:
    """Ask what columns and values mean, show the counts and keep the answers.

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
    from equipoise.history import guided_reading

    profiles = guided_reading.profile_columns(files)
    column_questions = guided_reading.ask_for_columns(profiles)
    if not can_ask():
        proposed = {question.role: question.proposal for question in column_questions}
        value_questions: list[ReadingQuestion] = []
        for role in ("decision", "outcome"):
            if proposed[role]:
                value_questions += guided_reading.ask_for_values(role, proposed[role], profiles)
        data = {
            "columns": [profile.to_dict() for profile in profiles],
            "questions": [q.to_dict() for q in (*column_questions, *value_questions)],
        }
        show(Output(data, failure=typer.Exit(2)), True)
        return
    columns = {question.role: _ask(question) for question in column_questions}
    meanings = {}
    for role in ("decision", "outcome"):
        for question in guided_reading.ask_for_values(role, columns[role], profiles):
            meanings[role, question.value] = _ask(question)
    arguments: dict[str, Any] = {**columns, **guided_reading.arguments_of(meanings)}
    if len(files) > 1:
        arguments["outcomes"] = files[1]
    _read_and_keep(files[0], arguments, save)


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
    typer.echo(f"\nwrote {save}; next: equipoise check {save} --metric equal_opportunity")
