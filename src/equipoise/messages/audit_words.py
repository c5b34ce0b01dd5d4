"""The words for what happens in an audit: replies, wants, events, proposals and outcomes.

States, reasons and types of events are codes in the ledger and in JSON. This is the one table of
what people read in their place, in the shell, in the report and on the dashboard.
"""

from __future__ import annotations

from collections.abc import Mapping

OUTCOME_WORDS: Mapping[int, str] = {0: "bad", 1: "good"}
"""Outcome -> its word, which the command line understands as well."""
DECISION_WORDS: Mapping[int, str] = {0: "denied", 1: "approved"}
"""Decision -> its word."""
SKIP_REASONS: Mapping[str, str] = {
    "approved": "approved: there is no denial to override",
    "budget": "the budget is spent or held",
    "concluded": "the audit is concluded",
    "decided": "the audit has its verdict",
    "in_flight": "as many overrides as allowed are out",
    "left_out": "this group is not compared",
    "lottery": "not drawn in the lottery",
    "not_wanted": "another group is wanted now",
    "paused": "the audit is paused",
}
"""Why nothing is wanted of a person -> its words."""
REPLY_TEXT: Mapping[str, str] = {
    "SCORE_ONLY": "nothing to do (looked at, and not drawn to be asked)",
    "RESERVED": "override this denial, and tell how it goes",
    "AWAITED": "tell how it goes",  # of an approved person
    "EXECUTED": "overridden, the outcome is awaited",
    "REVEALED": "the outcome is noted",
    "CORRECTED": "the outcome is corrected, the old one stays on record",
    "OVERDUE": "the outcome is overdue",
    "WITHDRAWN": "withdrawn, the outcome stays unknown",
    "UNUSED": "withdrawn before: this outcome is not used",
    "WRITTEN_OFF": "written off, the outcome stays unknown",
    **{code: f"nothing to do ({reason})" for code, reason in SKIP_REASONS.items()},
}
"""Key of a reply, a person's state or why nothing is wanted -> what to do now, or what is known."""
PERSON_STATE_WORDS: Mapping[str, str] = {
    "SKIPPED": "no outcome requested",
    "SCORE_ONLY": "looked at, no outcome requested",
    "RESERVED": "outcome requested",
    "EXECUTED": "override carried out",
    "OVERDUE": "outcome overdue",
    "REVEALED": "outcome known",
    "CORRECTED": "outcome corrected",
    "WITHDRAWN": "declined",
    "WRITTEN_OFF": "outcome given up",
}
"""State of a person -> its words in lists and on the dashboard."""
MOVE_WORDS: Mapping[str, str] = {
    "withdrawn": "withdrawn",
    "overdue": "marked as overdue",
    "written_off": "written off",
}
"""Type of an event that changes a request -> what becomes of the request."""
AUDIT_STATE_WORDS: Mapping[str, str] = {"paused": "paused", "running": "in progress"}
"""State of an audit without a verdict -> its words."""
PAUSE_SENTENCE = "The audit requests no overrides until it is resumed. Outcomes still count."
"""What a pause does."""
UNCHANGED_TEXT: Mapping[str, str] = {
    "RESUMED": "nothing to resume",
    "UPGRADED": "nothing to upgrade",
}
"""State of an audit that a command did not change -> why there was nothing to do."""
WANT_SENTENCES: Mapping[str, str] = {
    "NOTHING": "Nothing is wanted of this person.",
    "SCORE_ONLY": "The score of this person counts; nothing more is wanted.",
    "LABEL": "The outcome is wanted: override the refusal, and enter the outcome when it is known.",
}
"""What is wanted of a person -> what a clerk does next."""
DONE_SENTENCES: Mapping[str, str] = {
    "ask": "The person is entered.",
    "tell": "The outcome is entered.",
    "correct": "The outcome is corrected. The log keeps the first one.",
    "overdue": "The outcome is marked as overdue.",
    "write_off": "The outcome is given up.",
    "erase": "The pseudonym was removed from the tables. Copies stay in the database's files until "
    "whoever runs the server scrubs them, once for many erasures.",
    "set_budget": "The budget is changed.",
    "paused": "The audit is paused.",
    "resumed": "The audit goes on.",
    "conclude": "The audit has ended.",
    "concluded": "The audit has ended, so it requests no overrides.",
    "decided": "The audit has its verdict, so it requests no overrides.",
    "proposed": "Proposed. Another person must approve it.",
    "approve": "The proposal is approved and carried out.",
    "reject": "The proposal is rejected.",
    "verify": "The verification is under way. Its result will appear under Integrity.",
}
"""What a form of the dashboard did -> what the page shows after it."""
IRREVERSIBLE_EFFECTS: Mapping[str, str] = {
    "conclude": "The audit ends now, with the answer that the evidence supports. It requests no "
    "more overrides, and it cannot be begun again.",
    "write_off": "The outcome of this person is given up. Its highest cost is booked as spent, and "
    "the outcome counts as unknown, even if it comes later.",
    "erase": "The pseudonym of this person is deleted. After that the audit cannot tell who it "
    "was, and no outcome can be entered for this person.",
}
"""Command -> what it changes for ever."""
ACTION_TEXT: Mapping[str, str] = {
    "created": "began the audit",
    "asked": "reported an arrival",
    "executed": "confirmed an override",
    "withdrawn": "reported a refusal",
    "revealed": "brought an outcome",
    "corrected": "corrected an outcome",
    "noted": "recorded an outcome (no override was requested)",
    "conflict": "brought an outcome that contradicts the stored one",
    "overdue": "marked an outcome as overdue",
    "written_off": "gave up an outcome",
    "erased": "erased a person",
    "budget": "changed the budget",
    "limits": "changed the limits",
    "random_accepts": "brought a later file of the test programme",
    "paused": "paused the audit",
    "resumed": "resumed the audit",
    "concluded": "concluded the audit",
    "proposed": "proposed",
    "rejected": "rejected a proposal",
    "scrubbed": "removed the erased from the files",
    "upgraded": "went on under another edition of the statistics",
    "verdict": "reached the verdict",
}
"""Type of an event -> what its actor did."""
PROPOSAL_TEXT: Mapping[str, str] = {
    "budget": "to change the budget",
    "concluded": "to conclude the audit",
    "corrected": "to correct an outcome",
    "erased": "to erase a person",
    "limits": "to change the limits",
    "random_accepts": "to take in a later file of the test programme",
    "resumed": "to resume the audit",
    "upgraded": "to go on under this program's statistics",
}
"""Type of an event -> what was proposed."""
