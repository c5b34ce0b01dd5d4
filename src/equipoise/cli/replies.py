"""What came of a command, in the words of the shell."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from equipoise._json import JsonValue
from equipoise.cli.console import Output
from equipoise.messages.audit_words import REPLY_TEXT, UNCHANGED_TEXT

if TYPE_CHECKING:
    from equipoise.finding import Finding
    from equipoise.ledger import LiveAudit
    from equipoise.ledger.commands import Reply
    from equipoise.ledger.waiting import WaitingGroup

STATES_WITH_REASON = ("UNLINKED", "CONCLUDED", "DECIDED")  # states of an audit that say why


def describe_reply(reply: Reply, command: object = None) -> Output:
    """Return what came of one command, in words too: what to do now, or what is known."""
    from equipoise.people import reply_key

    if reply.repeated and reply.state in UNCHANGED_TEXT:
        return Output(reply, UNCHANGED_TEXT[reply.state])
    as_before = ", as before" if reply.repeated else ""
    if reply.state == "PROPOSED":
        return Output(
            reply, f"proposed as {reply.number}{as_before}; somebody else must approve it"
        )
    key = reply_key(reply, command)
    text = REPLY_TEXT.get(key, key.lower())
    if reply.person:
        return Output(reply, f"{reply.person}: {text}{as_before}")
    reason = f": {reply.why}" if reply.state in STATES_WITH_REASON else ""
    return Output(reply, f"{text}{as_before}{reason}")


def with_scrub_command(live: LiveAudit, reply: Reply, answer: Output) -> Output:
    """Return an answer with the command that removes what an erasure left in the files."""
    if reply.state != "UNLINKED":
        return answer
    command = f"equipoise audit scrub {shlex.quote(live.row.name)}"
    return replace(answer, text=f"{answer.text}\nonce for many erasures: {command}")


def with_verdict(live: LiveAudit, answer: Output, finding_before: Finding | None = None) -> Output:
    """Return an answer with the present verdict, and the earlier one if it was taken back."""
    finding = live.finding
    clauses = []
    # A finding whose verdict stayed may have other ranges by now. That is no news here.
    if finding_before is not None and (
        finding is None or finding.verdict is not finding_before.verdict
    ):
        clauses.append(f"the verdict {finding_before.verdict} is taken back")
    if finding is not None:
        clauses.append(f"verdict: {finding.verdict}")
    elif clauses:
        clauses.append("the audit goes on")
    waiting = live.waiting() if finding is None else ()
    return _with_clauses(live, answer, clauses, waiting)


def with_waiting(live: LiveAudit, answer: Output) -> Output:
    """Return an answer with the groups that the audit waits for, in words and for programs."""
    waiting = live.waiting()
    assert isinstance(answer.data, JsonValue)  # a reply, or what came of a file
    texts = [group.to_dict() | {"text": str(group)} for group in waiting]
    with_data = replace(answer, data=answer.data.to_dict() | {"waiting": texts})
    return _with_clauses(live, with_data, [], waiting)


def _with_clauses(
    live: LiveAudit, answer: Output, clauses: Sequence[str], waiting: Sequence[WaitingGroup]
) -> Output:
    """Return an answer with clauses and the groups that the audit waits for, if there are any."""
    clauses = [*clauses, *(f"waiting: {group}" for group in waiting)]
    if not clauses:
        return answer
    clauses.append(f"see equipoise audit status {shlex.quote(live.row.name)}")
    return replace(answer, text=f"{answer.text}\n{'; '.join(clauses)}")
