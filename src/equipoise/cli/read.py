"""``equipoise read``: say what the columns and values of files mean, question by question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.cli import past_options as reading
from equipoise.cli.console import Output, can_ask, show, without_escapes
from equipoise.errors import BadData, InvalidInput
from equipoise.messages.shell import describe, describe_error
from equipoise.messages.texts import list_with_counts

if TYPE_CHECKING:
    from equipoise.history import History
    from equipoise.history.guided_reading import ColumnProfile, ReadingQuestion
    from equipoise.messages import Problem

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
    "id": "Which column identifies a person? Files of people who arrive later need it.",
    "latest": "People have several rows of outcomes. Which column says which row is the latest?",
}


MAIN_ROLES = ("group", "decision", "outcome")
MAX_VALUES_SHOWN = 6  # of a column
MAX_DIGITS = 4  # of the number of an answer
CHANGE = "none of these: change an earlier answer"
STOP = "stop, and keep nothing"


@app.command()
def read(
    files: Files = None,
    presets: Presets = False,
    save: SaveTo = "loans.toml",
    preset: reading.Preset = None,
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
    from equipoise.history.saved_readings import save_reading

    said = {"table": table, "encoding": encoding, "preset": preset}
    arguments = {name: value for name, value in said.items() if value is not None}
    interview = Interview(files, arguments, profile_columns(files, table, encoding))
    if not can_ask():
        show(Output(interview.as_data(), failure=typer.Exit(2)), True)
        return
    interview.require_columns()
    _echo(_describe_columns(interview.profiles))
    answered = _read_until_right(interview)
    save_reading(save, files[0], answered)
    typer.echo(f"\nwrote {save}\nNext: equipoise check {save} --metric equal_opportunity")


# -- what is asked ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Interview:
    """The questions about one file or two, asked of a person or written as data.

    ``said`` has the arguments of :meth:`History.read` that need no question, such as a preset.
    """

    files: Sequence[str]
    said: Mapping[str, Any]
    profiles: Sequence[ColumnProfile]

    def as_data(self) -> dict[str, Any]:
        """Return columns and questions; those about values suppose the proposed columns."""
        questions = self._ask_for_columns()
        # Nobody answers here, so later questions suppose that every proposal is right.
        proposed = {question.role: question.proposal for question in questions}
        columns = {**self._columns_of_preset(), **proposed}
        if len(self.files) > 1 and columns["outcome"] and self._key_of(columns):
            questions += self._ask_for_latest(columns)
        if all(columns[role] for role in MAIN_ROLES) or "preset" not in self.said:
            questions += self._ask_for_values(columns)
        return {
            "columns": [profile.to_dict() for profile in self.profiles],
            "questions": [question.to_dict() for question in questions],
        }

    def ask(self, answers: Answers) -> dict[str, Any]:
        """Ask a person all questions; return the arguments of :meth:`History.read`."""
        from equipoise.history.guided_reading import NO_COLUMN, arguments_of

        columns = self._columns_of_preset()
        arguments = dict(self.said)
        for question in self._ask_for_columns():
            # A column has one role.
            choices = [choice for choice in question.choices if choice not in columns.values()]
            self._require_choices(question, choices)
            columns[question.role] = answers.ask_for(question, choices)
            if question.role in MAIN_ROLES:
                arguments[question.role] = columns[question.role]
        if len(self.files) > 1:
            arguments["outcomes"] = self.files[1]
            arguments["on"] = columns["on"]
            if "on_outcomes" in columns:  # the two files have different names for it
                arguments["on"] += f"={columns['on_outcomes']}"
            for question in self._ask_for_latest(columns):
                arguments["latest"] = answers.ask_for(question)
        elif columns.get("id", NO_COLUMN) != NO_COLUMN:
            arguments["id"] = columns["id"]
        questions = self._ask_for_values(columns)
        meanings = {
            (question.role, question.value): answers.ask_for(question) for question in questions
        }
        return {**arguments, **arguments_of(meanings)}

    def require_columns(self) -> None:
        """Raise if the files have too few columns for the roles, whatever is answered."""
        used_columns: set[str] = set()
        for question in self._ask_for_columns():
            if question.role in MAIN_ROLES:
                choices = [choice for choice in question.choices if choice not in used_columns]
                self._require_choices(question, choices)
                used_columns.add(choices[0])

    def _require_choices(self, question: ReadingQuestion, choices: Sequence[str]) -> None:
        """Raise if no column can be the answer to a question."""
        if choices:
            return
        is_of_outcomes = question.role in ("outcome", "on_outcomes")
        place = self.files[-1] if is_of_outcomes else self.files[0]
        if question.role not in MAIN_ROLES:
            raise BadData(f"{place} has no column left that identifies a person")
        raise BadData(
            f"{place} has no column left that can hold the {question.role}: groups, decisions and "
            "outcomes have from 2 to 60 different values"
        )

    def _ask_for_columns(self) -> list[ReadingQuestion]:
        """Return the questions for columns that no preset names."""
        from equipoise.history.guided_reading import ask_for_columns, ask_for_id

        questions = [*ask_for_columns(self.profiles)]
        if len(self.files) == 1:
            questions += ask_for_id(self.profiles)
        known = self._columns_of_preset()
        return [question for question in questions if question.role not in known]

    def _columns_of_preset(self) -> dict[str, str]:
        """Return the columns that the preset names and the files have, by role."""
        from equipoise.history.presets import load_preset

        present = {profile.column for profile in self.profiles}
        preset = load_preset(self.said.get("preset"))
        return {role: preset[role] for role in MAIN_ROLES if preset.get(role) in present}

    def _ask_for_latest(self, columns: Mapping[str, str]) -> tuple[ReadingQuestion, ...]:
        from equipoise.history.guided_reading import ask_for_latest

        key = self._key_of(columns)
        encoding = self.said.get("encoding")
        return ask_for_latest(self.files[1], key, columns["outcome"], encoding)

    def _ask_for_values(self, columns: Mapping[str, str]) -> list[ReadingQuestion]:
        """Return the questions about values of the decision and the outcome, if both are known.

        What a preset explains needs no question.
        """
        from equipoise.history.guided_reading import ask_for_values

        questions: list[ReadingQuestion] = []
        for role in ("decision", "outcome"):
            if columns[role]:
                questions += ask_for_values(role, columns[role], self.profiles)
        if "preset" not in self.said:
            return questions
        from equipoise.history.saved_readings import load_reading
        from equipoise.history.values import key_of

        main_columns = {role: columns[role] for role in MAIN_ROLES}
        _, options = load_reading(self.files[0], {**self.said, **main_columns})
        explained = {
            "decision": options.missing_words("decision"),
            "outcome": options.missing_words("outcome"),
        }
        return [
            question
            for question in questions
            if key_of(question.value) not in explained[question.role].explained
            and not explained[question.role].include(question.value)
        ]

    def _key_of(self, columns: Mapping[str, str]) -> str:
        """Return the column that identifies people in the file of outcomes."""
        return columns.get("on_outcomes", columns["on"])


def _describe_columns(profiles: Sequence[ColumnProfile]) -> str:
    """Return the columns of each file with their values and numbers of rows."""
    width = max(len(profile.column) for profile in profiles)
    lines: list[str] = []
    last_file = ""
    for profile in profiles:
        if profile.file != last_file:
            lines.append(f"\n{profile.file}")
            last_file = profile.file
        values = list_with_counts(profile.values, MAX_VALUES_SHOWN) or "many different values"
        lines.append(f"  {profile.column:<{width}}  {values}")
    return "\n".join(lines)


# -- how it is asked -------------------------------------------------------------------------------


class Answers:
    """Answers that a person gave, so that one can be changed without giving the others again."""

    def __init__(self) -> None:
        self._answer_of: dict[str, str] = {}  # by the question as it was shown
        self.asked: list[str] = []  # since the last beginning, in this order

    def begin(self) -> None:
        """Begin with the first question again; what has been answered is not asked again."""
        self.asked = []

    def ask_for(self, question: ReadingQuestion, choices: Sequence[str] | None = None) -> str:
        """Return the answer to a question about a column or a value."""
        text = QUESTIONS.get(question.role, "")
        if question.value:
            rows = f"{question.rows:,} row{'' if question.rows == 1 else 's'}"
            text = f"{question.column}: what does {question.value!r} ({rows}) mean?"
        return self.ask(text, question.choices if choices is None else choices, question.proposal)

    def ask(self, text: str, choices: Sequence[str], proposal: str = "") -> str:
        """Return the answer that was given before, or ask."""
        answer = self._answer_of.get(text, "")
        if answer not in choices:
            _echo(f"\n{text}")
            answer = _choose(choices, proposal)
            self._answer_of[text] = answer
        self.asked.append(text)
        return answer

    def change_one(self) -> None:
        """Ask which answer was wrong, and forget that one."""
        _echo("\nWhich answer shall be changed?")
        answers = {f"{text} {self._answer_of[text]}": text for text in self.asked}
        chosen = _choose([*answers, STOP], "")
        if chosen == STOP:
            raise typer.Exit(2)
        self.forget(answers[chosen])

    def forget(self, text: str) -> None:
        """Forget the answer to a question, so that it is asked again."""
        del self._answer_of[text]
        self.asked.remove(text)


def _choose(choices: Sequence[str], proposal: str) -> str:
    """Return one of several choices, by its number."""
    for number, choice in enumerate(choices, start=1):
        _echo(f"  {number}  {choice}")
    default = str(choices.index(proposal) + 1) if proposal in choices else None
    while True:
        answer = str(typer.prompt("Number", default=default, type=str)).strip()
        # Arrow keys and words arrive as text, too.
        is_number = answer.isdecimal() and len(answer) <= MAX_DIGITS
        if is_number and 1 <= int(answer) <= len(choices):
            return choices[int(answer) - 1]
        _echo(f"Type a number from 1 to {len(choices)}, and press Enter.")


def _echo(text: str) -> None:
    """Print a text that may hold what a file holds."""
    typer.echo(without_escapes(text))


# -- what the answers say --------------------------------------------------------------------------


class _NotSo(Exception):
    """None of the answers to a question is right, so that an earlier one has to be changed."""


def _read_until_right(interview: Interview) -> dict[str, Any]:
    """Ask and read until a person finds the counts right; return the arguments."""
    answers = Answers()
    while True:
        answers.begin()
        try:
            arguments, history = _read_by_answers(interview, answers)
        except _NotSo:
            pass
        except InvalidInput as error:
            if not answers.asked:
                raise
            _echo(f"\n{describe_error(error)}")
        else:
            _echo(f"\n{_describe(history)}")
            if typer.confirm("\nKeep this reading?", default=True):
                return arguments
        answers.change_one()


def _read_by_answers(interview: Interview, answers: Answers) -> tuple[dict[str, Any], History]:
    """Read the table by the answers, and ask about each problem that it meets."""
    from equipoise.history import History
    from equipoise.history.problems import UnreadTable

    place = interview.files[0]
    arguments = interview.ask(answers)
    while True:
        try:
            return arguments, History.read(place, **arguments)
        except UnreadTable as error:
            solved = _solve(error.problems[0], place, arguments, answers)
            if solved is None or solved == arguments:
                raise UnreadTable(error.problems[0]) from None
            arguments = solved


def _solve(
    problem: Problem, place: str, arguments: dict[str, Any], answers: Answers
) -> dict[str, Any] | None:
    """Return the arguments that solve a problem as a person says; None if no answer can."""
    from equipoise.history.saved_readings import load_reading
    from equipoise.messages.questions import ask_about

    question = ask_about(problem)
    if question is None:
        return None
    remedies = list(question.remedies)
    answer = answers.ask(question.text, [*remedies, CHANGE], question.proposal)
    if answer == CHANGE:
        answers.forget(question.text)
        raise _NotSo
    _, options = load_reading(place, arguments)
    return dict(options.with_fixes(question.remedies[answer]).given_arguments)


def _describe(history: History) -> str:
    """Return what was read, with notes as the commands that follow would mend them."""
    lines = [repr(history)[1:-1], str(history.summary), str(history.cells)]
    lines += [f"- {describe(note)}" for note in history.notes]
    return "\n".join(lines)
