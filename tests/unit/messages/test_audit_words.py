"""Every code of a ledger has its words, in one table."""

from __future__ import annotations

from equipoise.ledger import verify
from equipoise.messages import audit_words


def test_every_code_of_the_rule_book_has_words() -> None:
    assert audit_words.ACTION_TEXT.keys() == {"created", *verify.RULES}
    assert audit_words.PROPOSAL_TEXT.keys() == set(verify.APPROVABLE)
    assert audit_words.SKIP_REASONS.keys() == set(verify.REASONS)
    assert audit_words.PERSON_STATE_WORDS.keys() == set(verify.PersonState)


def test_a_reply_gives_the_reason_that_lists_give() -> None:
    for code, reason in audit_words.SKIP_REASONS.items():
        assert reason in audit_words.REPLY_TEXT[code]
