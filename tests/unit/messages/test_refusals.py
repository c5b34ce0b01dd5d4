"""Why an audit refuses, as Python, the shell, HTTP and the pages say it."""

from __future__ import annotations

import pytest

from equipoise.ledger.verify import MOVES
from equipoise.messages import audit_words, form, http, shell
from equipoise.messages.refusals import Refusal, to_python

CONFLICT = Refusal(
    "outcome-conflict", {"person": "p 17", "stored_outcome": 1, "outcome": 0}, "loans & more"
)


@pytest.mark.parametrize(
    ("describe", "fix"),
    [
        (to_python, "correct('p 17', 0, why)"),
        (
            shell.describe_refusal,
            "equipoise audit correct 'loans & more' 'p 17' bad --why REASON",
        ),
        (
            http.describe_refusal,
            '{"command": "correct", "person": "p 17", "outcome": 0, "why": reason}',
        ),
        (form.describe_refusal, "“Correct an outcome” under “Enter data”"),
    ],
)
def test_the_remedy_is_spelled_as_each_reader_can_use_it(describe: object, fix: str) -> None:
    assert callable(describe)
    text = describe(CONFLICT)
    assert text.startswith("outcome 1 (good) of person 'p 17' is stored; got 0 (bad).")
    assert text.endswith(f"if 0 (bad) is right: {fix}")


def test_states_are_said_in_the_words_of_the_other_pages() -> None:
    for action, (states, _) in MOVES.items():
        facts = {"person": "p", "state": "SKIPPED", "states": list(states), "action": action}
        text = to_python(Refusal("wrong-state", facts))
        for state in ("SKIPPED", *states):
            assert repr(audit_words.PERSON_STATE_WORDS[state]) in text
            assert state not in text
        assert audit_words.MOVE_WORDS[action] in text


def test_every_move_has_words() -> None:
    assert audit_words.MOVE_WORDS.keys() == MOVES.keys()
