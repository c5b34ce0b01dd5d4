"""Finished commands, as the shell takes them."""

from __future__ import annotations

import shlex

from equipoise.errors import InvalidInput
from equipoise.history.options import DEFAULTS
from equipoise.messages import OpenChoice, Problem, ReadingProposal
from equipoise.messages.shell import (
    READING_OPTIONS,
    describe_error,
    describe_unread_table,
    finished_command,
)

ARGUMENTS = {"group": ["race", "sex"], "positive": {"outcome": "it's paid"}, "seed": 3}
PROPOSAL = ReadingProposal(ARGUMENTS, ("our loans.csv",), reads_table=True)


def test_a_finished_command_keeps_what_was_typed() -> None:
    command = finished_command(PROPOSAL, ("audit", "new", "my loans"), ("--budget", "50"))
    assert shlex.split(command) == [
        *("equipoise", "audit", "new", "my loans", "our loans.csv", "--group", "race"),
        *("--group", "sex", "--positive", "outcome=it's paid", "--budget", "50"),
    ]  # the seed is for Python alone


def test_all_problems_come_before_the_command() -> None:
    problems = [Problem("no-rows", {"table": "the table"})] * 2
    lines = describe_unread_table(problems, PROPOSAL).splitlines()
    assert lines[:3] == ["2 problems:", *(f"{n}. the table has no rows." for n in (1, 2))]
    assert lines[3].startswith("This was tried and reads the table")
    assert lines[4].startswith("  equipoise check 'our loans.csv'")
    in_memory = ReadingProposal(ARGUMENTS, reads_table=True)
    assert describe_unread_table(problems[:1], in_memory) == "the table has no rows."


def test_open_choices_are_mentioned() -> None:
    arguments = {"positive": {"outcome": OpenChoice(("a", "b"))}}
    for reads_table, words in ((True, "the first of each <choice>"), (False, "no remedy")):
        proposal = ReadingProposal(arguments, ("x.csv",), reads_table=reads_table)
        assert words in describe_unread_table([Problem("no-rows", {"table": "x"})], proposal)


def test_an_error_without_problems_keeps_its_text() -> None:
    assert describe_error(InvalidInput("as it is")) == "as it is"


def test_every_argument_of_reading_has_its_option_written_down() -> None:
    assert list(READING_OPTIONS) == list(DEFAULTS)
