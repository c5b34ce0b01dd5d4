"""All problems of a table in one message, which ends in the call that reads it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import equipoise as eq
from equipoise.cli import app
from equipoise.errors import InvalidInput
from equipoise.history import counting
from equipoise.history.options import ReadOptions
from equipoise.history.problems import UnreadTable, read_with_fixes
from equipoise.messages import Fix, Problem, shell
from equipoise.messages.shell import describe_error, finished_command
from tests.profiles import quick
from tests.support.messages import codes_of, fixes_of, note_of, problems_of, refused
from tests.unit.history.backends import Table, offer, options
from tests.unit.history.test_counting import BROKEN, COLUMNS

pytestmark = pytest.mark.slow

LOANS: dict[str, Any] = {"group": "race", "decision": "decision", "outcome": "status"}


def messy(size: int = 3_000) -> pd.DataFrame:
    """Return applications as a bank has them: words, blanks, withdrawals, running loans."""
    rng = np.random.default_rng(7)
    race = rng.choice(
        ["White", "white ", "Black", "BLACK", None], size, p=[0.4, 0.1, 0.3, 0.1, 0.1]
    )
    decision = rng.choice(["Approved", "Declined", "Withdrawn"], size, p=[0.6, 0.3, 0.1])
    status = rng.choice(["Paid", "Default", "Open"], size, p=[0.7, 0.2, 0.1])
    status = np.where(decision == "Approved", status, None)
    return pd.DataFrame(
        {"id": np.arange(size), "race": race, "decision": decision, "status": status}
    )


def message_of(source: object, **more: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        eq.History.read(source, **more)
    return str(caught.value)


def call_of(message: str, source: object) -> eq.History:
    """Make the call that a message ends in."""
    line = next(line for line in message.splitlines() if line.startswith("  History.read("))
    inside = line.strip().removeprefix("History.read(").removesuffix(")")
    arguments = inside[re.match(r"'(?:[^'\\]|\\.)*'|\[.*?\]|\w+", inside).end() :]  # type: ignore[union-attr]
    arguments = re.sub(r"<('[^']*')[^>]*>", r"\1", arguments)
    said: dict[str, Any] = eval(f"dict({arguments.removeprefix(', ')})")
    return eq.History.read(source, **said)


def test_a_messy_table_is_read_at_the_second_try() -> None:
    data = messy()
    message = message_of(data, **LOANS)
    assert message.startswith("4 problems:\n1. Column 'race' names no group")
    for remedy in (
        "missing_group='not stated'",
        "positive={'decision': 'Approved'}",
        "missing_values={'decision': ['Withdrawn']}, undecided='leave_out'",
        "positive={'outcome': 'Paid'}, negative={'outcome': 'Default'}, "
        "missing_values={'outcome': ['Open']}",
        "unknown='bounds'",
    ):
        assert remedy in message, remedy
    assert "--" not in message  # Python shows what to do in Python
    cells = call_of(message, data).cells
    plain = data.assign(race=data.race.fillna("not stated").str.strip().str.casefold())
    plain = plain[plain.decision != "Withdrawn"]
    for group, own in plain.groupby("race"):
        found = next(c for name, c in cells.items() if name.casefold() == group)
        assert found.approved_positive == own.status.eq("Paid").sum()
        assert found.approved_negative == own.status.eq("Default").sum()
        assert found.approved_unknown == own.status.eq("Open").sum()
        assert found.denied == own.decision.eq("Declined").sum()


@pytest.mark.parametrize(
    "kind", quick(["csv", "sqlite file"], full=["csv", "pandas", "polars lazy", "sqlite file"])
)
@pytest.mark.parametrize("fault", BROKEN)
def test_every_finished_call_reads_the_table(kind: str, fault: str, tmp_path: Path) -> None:
    table, more, _, _ = BROKEN[fault]
    source = offer(kind, table, tmp_path)
    message = message_of(source, **{**COLUMNS, **options(kind), **more})
    if "This was tried" in message:
        assert len(call_of(message, source).cells) > 1
    else:
        assert "History.read" not in message


def test_the_finished_command_reads_the_file(tmp_path: Path) -> None:
    path = tmp_path / "our loans.csv"
    messy().to_csv(path, index=False)
    with pytest.raises(UnreadTable) as caught:
        eq.History.read(path, **LOANS)
    assert caught.value.proposal is not None
    command = shlex.split(finished_command(caught.value.proposal))
    assert command[:3] == ["equipoise", "check", str(path)]
    done = CliRunner().invoke(app, command[1:])
    assert done.exit_code == 0, done.output
    first = [*command[1:3], "--group", "race", "--decision", "decision", "--outcome", "status"]
    in_shell = CliRunner().invoke(app, first)
    assert in_shell.exit_code == 2
    assert "4 problems" in in_shell.output
    assert shlex.split(in_shell.output.splitlines()[-1]) == command
    assert "History.read" not in in_shell.output


def test_what_only_a_person_can_know_stays_open() -> None:
    data = pd.DataFrame(
        {"race": ["a", "b"] * 4, "decision": [1] * 8, "status": ["x", "y", "y", "x"] * 2}
    )
    message = message_of(data, **LOANS)
    assert "positive={'outcome': <'x' | 'y'>}" in message
    assert "was tried with the first of each <choice>" in message
    assert call_of(message, data).cells["a"].approved_positive == 2
    with pytest.raises(InvalidInput, match=r"'positive': replace .*<x \| y> by the one"):
        eq.History.read(data, **LOANS, positive="outcome=<x | y>")
    for value in ("< | y>", "<x | >", "<x | y> z", "x | y>", "< | " * 100_000):  # no placeholders
        with pytest.raises(InvalidInput):
            eq.History.read(data, **LOANS, positive={"outcome": value})


@pytest.mark.parametrize(
    ("third", "filler"),
    [("cancelled by client", "unknown"), ("expired", "no loan"), ("Withdrawn", "N.A.")],
)
@pytest.mark.parametrize("written", [0.5, 1.0])
def test_a_word_for_no_outcome_makes_nobody_approved(
    third: str, filler: str, written: float
) -> None:
    """Who is not approved has a filler in the outcome column, in every row or in every other."""
    every = ["approved"] * 400 + ["declined"] * 800 + [third] * 40
    status = ["repaid", "repaid", "repaid", "charged off"] * 100
    status += [filler if at % 2 or written == 1.0 else "" for at in range(840)]
    data = pd.DataFrame({"race": ["a", "b"] * 620, "decision": every, "status": status})
    message = message_of(data, **LOANS)
    past = call_of(message, data)
    assert "<" not in message
    assert past.cells.total == 1_200
    assert sum(own.approved for own in past.cells.values()) == 400
    assert note_of(past, "undecided-left-out").fields["written"] == {third: 40}


def test_a_third_decision_in_unknown_words_stays_open() -> None:
    every = ["approved"] * 40 + ["declined"] * 80 + ["storniert"] * 4
    status = ["repaid", "charged off"] * 20 + [""] * 84
    data = pd.DataFrame({"race": ["a", "b"] * 62, "decision": every, "status": status})
    message = message_of(data, **LOANS)
    assert "missing_values={'decision': [<'storniert'>]}, undecided='leave_out'" in message


def test_a_period_may_lack_a_word_that_the_table_has() -> None:
    data = pd.DataFrame(
        {
            "race": ["a", "b"] * 6,
            "decision": [1, 1, 1, 1, 0, 0] * 2,
            "status": ["0", "1", "1", "0", "", "", "1", "0", "running", "running", "", ""],
            "day": ["2022-01-01"] * 6 + ["2023-01-01"] * 6,
        }
    )
    options: dict[str, Any] = {**LOANS, "missing_values": ["running"], "date": "day"}
    assert eq.History.read(data, **options, until="2023-01-01").cells.total == 6


def test_the_words_of_a_column_are_known_not_those_of_the_other() -> None:
    data = pd.DataFrame(
        {"race": ["a", "b"] * 2, "decision": ["yes", "no"] * 2, "status": ["paid", ""] * 2}
    )
    with refused("unknown-value", value="settled", column="status", known=["paid"]):
        eq.History.read(data, **LOANS, positive={"outcome": "settled"})


@pytest.mark.parametrize(
    ("values", "open_choices"),
    [
        (
            ["0", "1", "offen"],
            ["positive={'outcome': <'0' | '1'>}", "missing_values={'outcome': [<'offen'>]}"],
        ),
        (
            ["bezahlt", "ausgefallen", "offen"],
            [
                "positive={'outcome': <'bezahlt' | 'ausgefallen' | 'offen'>}",
                "negative={'outcome': <'ausgefallen'>}",  # the list is written once
                "missing_values={'outcome': [<'offen'>]}",
            ],
        ),
    ],
)
def test_of_three_values_none_is_guessed_to_be_no_outcome(
    values: list[str], open_choices: list[str]
) -> None:
    """A bad outcome that is taken for an unknown one would be a wrong answer."""
    status = [*([values[0]] * 5), *([values[1]] * 3), *([values[2]] * 2)]
    data = pd.DataFrame({"race": ["a", "b"] * 5, "decision": 1, "status": status})
    message = message_of(data, **LOANS)
    for choice in open_choices:
        assert choice in message
    assert "was tried with the first of each <choice>" in message
    cells = call_of(message, data).cells
    found = [
        sum(getattr(c, cell) for c in cells.values())
        for cell in ("approved_positive", "approved_negative", "approved_unknown")
    ]
    assert found == [5, 3, 2]


def test_a_denial_in_another_language_is_not_left_out() -> None:
    """Only a person knows which of two words is the denial and which that nobody decided."""
    data = pd.DataFrame(
        {
            "race": ["a", "b"] * 6,
            "decision": [*["Ja"] * 6, *["Nein"] * 4, *["storniert"] * 2],
            "status": [*[1, 0] * 3, *[None] * 6],
        }
    )
    message = message_of(data, **LOANS)
    assert "negative={'decision': <'Nein' | 'storniert'>}" in message
    cells = call_of(message, data).cells
    assert sum(c.denied for c in cells.values()) == 4


def test_decisions_that_say_who_was_denied_are_turned_round() -> None:
    """Nobody sees the outcomes of the denied: whoever has one was approved."""
    denied = [0, 0, 0, 1] * 10
    status = [None if no else 1 for no in denied]
    data = pd.DataFrame({"race": ["a", "b"] * 20, "decision": denied, "status": status})
    message = message_of(data, **LOANS)
    assert "'decision' seems to be the other way round: outcomes are known mostly" in message
    cells = call_of(message, data).cells
    assert sum(c.denied for c in cells.values()) == 10
    assert sum(c.approved_positive for c in cells.values()) == 30


@pytest.mark.parametrize("words", [("approved", "denied"), (1, 0), ("genehmigt", "abgelehnt")])
def test_a_word_for_no_outcome_does_not_make_an_approval(words: tuple[object, object]) -> None:
    """The denied have one in every row, and of many approved the outcome is not known yet."""
    yes, no = words
    data = pd.DataFrame(
        {
            "race": ["a", "b"] * 18,
            "decision": [*[yes] * 20, *[no] * 16],
            "status": [*["repaid", "default"] * 4, *[None] * 12, *["nv"] * 16],
        }
    )
    message = message_of(data, **LOANS)
    assert ("positive={'decision': <'genehmigt' | 'abgelehnt'>" in message) == (no == "abgelehnt")
    cells = call_of(message, data).cells
    assert sum(c.denied for c in cells.values()) == 16
    assert sum(c.approved_positive for c in cells.values()) == 4


@pytest.mark.parametrize("no", ["-", "no loan", "expired"])
def test_who_may_have_been_denied_is_not_left_out_by_a_guess(no: str) -> None:
    """A word for nothing may be the denial where no other word is."""
    data = pd.DataFrame(
        {
            "race": ["a", "b"] * 6,
            "decision": [*["approved"] * 6, *[no] * 6],
            "status": [*[1, 0] * 3, *[None] * 6],
        }
    )
    message = message_of(data, **LOANS)
    assert f"negative={{'decision': <{no!r}>}}" in message
    assert sum(c.denied for c in call_of(message, data).cells.values()) == 6


def test_a_word_for_nothing_after_which_outcomes_are_known_is_the_approval() -> None:
    words = [*["active"] * 6, *["rejected"] * 4, *["expired"] * 2]
    status = [*[1, 0] * 3, *[None] * 6]
    data = pd.DataFrame({"race": ["a", "b"] * 6, "decision": words, "status": status})
    message = message_of(data, **LOANS)
    assert "positive={'decision': 'active'}, negative={'decision': 'rejected'}" in message
    assert sum(c.approved_positive for c in call_of(message, data).cells.values()) == 3


def test_too_many_combinations_of_values_are_no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pd.DataFrame({"race": range(12_000), "decision": 1, "status": 1})
    with refused("too-many-combinations", column="race", different=10_000):
        eq.History.read(data, **LOANS)
    monkeypatch.setattr(counting, "MAX_COMBINATIONS", 20)
    with refused("too-many-combinations", column="race", different=20):
        eq.History.read(data, **LOANS)


def test_a_problem_without_remedy_ends_the_list() -> None:
    data = messy()
    data["status"] = data.status.where(data.status.isna(), np.linspace(0, 1, len(data)).round(2))
    with refused("not-yes-no", column="status") as caught:
        eq.History.read(data, **LOANS)
    assert problems_of(caught.value)[-1].code == "not-yes-no"
    assert "The last of these has no remedy" in str(caught.value)


def test_a_password_is_not_printed(tmp_path: Path) -> None:
    options = ReadOptions(group="race", decision="decision", outcome="status")
    fix = Fix("missing_group", ("not stated",))

    def refuse_once(options: ReadOptions) -> None:
        if options.missing_group == "refuse":
            problem = Problem("group-missing", {"column": "race", "rows": 1, "written": {}}, (fix,))
            raise UnreadTable(problem)

    with pytest.raises(UnreadTable) as caught:
        read_with_fixes(options, "postgresql://anna:secret@host/bank", refuse_once)
    for text in (str(caught.value), describe_error(caught.value)):
        assert "secret" not in text
        assert "anna:***@host" in text


# -- what goes by the name of a column -------------------------------------------------------------


@pytest.mark.parametrize("column", ["default", "is_default", "Charge-Off", "bad", "delinquent_90"])
@pytest.mark.parametrize(("bad", "good"), [(1, 0), ("yes", "no"), (True, False)])
def test_one_may_mean_default(column: str, bad: object, good: object) -> None:
    """A column called after what went wrong is never read silently as 1 = good."""
    data = pd.DataFrame(
        {"race": ["a", "b"] * 4, "decision": 1, column: [bad, good, good, good] * 2}
    )
    said = {"group": "race", "decision": "decision", "outcome": column}
    message = message_of(data, **said)
    cells = call_of(message, data).cells
    assert sum(c.approved_positive for c in cells.values()) == 6
    turned = eq.History.read(data, **said, positive={column: bad})  # a person may say otherwise
    assert sum(c.approved_positive for c in turned.cells.values()) == 2


def test_fewer_good_than_bad_outcomes_get_a_warning_with_the_remedy() -> None:
    data = pd.DataFrame({"race": ["a", "b"] * 50, "decision": 1, "status": [1, 0, 0, 0, 1] * 20})
    note = note_of(eq.History.read(data, **LOANS), "mostly-bad-outcomes")
    assert note.fields == {"groups": ["a", "b"], "column": "status"}
    assert fixes_of(note) == {"positive": {"outcome": "0"}, "negative": {"outcome": "1"}}
    assert "turn it: --positive outcome=0 --negative outcome=1." in shell.describe(note)
    turned = eq.History.read(data, **LOANS, positive={"outcome": "0"})
    assert "mostly-bad-outcomes" not in codes_of(turned.notes)


def test_the_remedy_of_words_upside_down_reads_the_table_where_both_were_said() -> None:
    said = {"positive": {"outcome": "not paid"}, "negative": {"outcome": "paid in full"}}
    data = pd.DataFrame({"race": ["a", "b"] * 50, "decision": 1})
    data["status"] = ["not paid", "paid in full", "paid in full", "paid in full", "not paid"] * 20
    note = note_of(eq.History.read(data, **LOANS, **said), "mostly-bad-outcomes")
    in_shell = shell.describe(note)
    assert "--positive 'outcome=paid in full' --negative 'outcome=not paid'" in in_shell
    turned = eq.History.read(data, **LOANS, **fixes_of(note))
    assert "mostly-bad-outcomes" not in codes_of(turned.notes)


def test_positive_takes_columns_and_roles() -> None:
    data = messy().dropna(subset="race").query("decision != 'Withdrawn' and status != 'Open'")
    by_role = {"decision": "Approved", "outcome": "Paid"}
    by_column = {"decision": "Approved", "status": "Paid"}
    read = [eq.History.read(data, **LOANS, positive=said).cells for said in (by_role, by_column)]
    assert read[0] == read[1]
    plain = data.assign(decision=data.decision.eq("Approved") * 1)
    turned = eq.History.read(plain, **LOANS, positive={"status": "Default"}).cells
    assert turned["White"].approved_positive == read[0]["White"].approved_negative


def test_positive_is_said_as_on_the_command_line() -> None:
    def said(positive: Any) -> Any:
        return ReadOptions(group="g", decision="d", outcome="y", positive=positive).positive

    assert said([]) == said(None) == {}
    assert said(["yes", "Y"]) == {"decision": ["yes", "Y"], "outcome": ["yes", "Y"]}
    assert said("a=b") == {"decision": "a=b", "outcome": "a=b"}  # no column is called a
    both = {"decision": "granted", "outcome": ["paid=off", "settled"]}
    assert said(["d=granted", "outcome=paid=off", "y=settled"]) == both
    with refused("bit-without-column", argument="positive", value=0) as caught:
        said(0)
    assert "for example --positive outcome=0." in describe_error(caught.value)


def test_a_missing_value_that_is_nowhere_is_refused() -> None:
    data = messy().dropna(subset="race")
    with refused("unknown-value", argument="missing_values", nearest="Withdrawn") as caught:
        eq.History.read(data, **LOANS, missing_values=["Withdrwn"])
    assert "'missing_values' names 'Withdrwn', which is not a value. Did you" in str(caught.value)


# -- people who are there more than once -----------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas", "polars lazy", "sqlite file", "ibis"])
def test_repeated_people_are_found_in_the_engine(kind: str, tmp_path: Path) -> None:
    table: Table = {
        "id": [1, 2, 3, 4, 4],
        "race": [*"abaaa"],
        "approved": [1, 1, 0, 0, 0],
    }
    table["repaid"] = [1, 0, None, None, None]
    source, said = offer(kind, table, tmp_path), {**COLUMNS, **options(kind), "id": "id"}
    message = message_of(source, **said)
    assert "people are there more than once (1 row too many)" in message
    once = call_of(message, source)
    assert once.cells.total == 4
    assert once.summary is not None
    assert once.summary.columns["id"] == "id"


def test_rows_of_a_person_that_differ_are_refused() -> None:
    data = pd.DataFrame({"id": [1, 1, 2], "race": ["a", "b", "b"], "decision": 1, "status": 1})
    with refused("person-rows-differ", others=["race", "decision", "status"]):
        eq.History.read(data, **LOANS, id="id", repeated="count_once")
    with refused("person-id-missing", column="id", rows=1):
        eq.History.read(data.assign(id=[1, None, 2]), **LOANS, id="id")
    with pytest.raises(InvalidInput, match="'repeated' belongs to 'id'"):
        eq.History.read(data, **LOANS, repeated="count_once")


@pytest.mark.parametrize("kind", ["csv", "pandas", "polars", "sqlite file"])
def test_equal_rows_are_noted(kind: str, tmp_path: Path) -> None:
    table: Table = {"id": [1, 2, 3, 3], "race": [*"abab"], "approved": [1] * 4, "repaid": [1] * 4}
    table["race"][3] = table["race"][2]
    source = offer(kind, table, tmp_path)
    notes = eq.History.read(source, **COLUMNS, **options(kind)).notes
    assert notes[0].code == "equal-rows"
    assert str(notes[0]).startswith("1 row equals another one in all columns.")


def test_people_who_are_equal_by_chance_are_not_noted() -> None:
    """Of a group, a decision and an outcome alone nearly every row equals another one."""
    table = {"race": [*"abab"] * 9, "approved": [1] * 36, "repaid": [1] * 36}
    assert "equal-rows" not in codes_of(eq.History.read(table, **COLUMNS).notes)
    few_others = {**table, "city": ["x"] * 36, "product": ["y"] * 36}
    assert "equal-rows" not in codes_of(eq.History.read(few_others, **COLUMNS).notes)
    enough_others = {**few_others, "amount": [5] * 36}
    assert "equal-rows" in codes_of(eq.History.read(enough_others, **COLUMNS).notes)


def test_a_file_ten_times_over_counts_once_by_id() -> None:
    data = messy(400).dropna(subset="race").query("decision != 'Withdrawn'")
    said: Any = {"positive": {"outcome": "Paid", "decision": "Approved"}, "unknown": "bounds"}
    said |= {"negative": {"outcome": "Default"}, "missing_values": "Open"}
    once = eq.History.read(data, **LOANS, **said)
    often = pd.concat([data] * 10)
    assert "equal-rows" in codes_of(eq.History.read(often, **LOANS, **said).notes)
    said |= {"id": "id", "repeated": "count_once"}
    assert eq.History.read(often, **LOANS, **said).cells == once.cells
