"""``equipoise audit ask, tell, …``: what happens to people."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from equipoise.cli.console import Answer
from equipoise.cli.options import acting_audit, command, option, pairs
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.finding import Finding
    from equipoise.ledger import LiveAudit
    from equipoise.ledger.commands import Reply

FILES = "Many people at once"
Carry = Callable[..., Answer]
EXPLAINED = ("UNLINKED", "CONCLUDED", "DECIDED")  # states of an audit that say why

REPLY_TEXT = {  # of a person's state, and of why nothing is wanted
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
    "approved": "nothing to do (approved: there is no denial to override)",
    "budget": "nothing to do (the budget is spent or held)",
    "concluded": "nothing to do (the audit is concluded)",
    "decided": "nothing to do (the audit has its verdict)",
    "in_flight": "nothing to do (as many overrides as allowed are out)",
    "left_out": "nothing to do (this group is not compared)",
    "lottery": "nothing to do (not drawn in the lottery)",
    "not_wanted": "nothing to do (another group is wanted now)",
    "paused": "nothing to do (the audit is paused)",
}
IDLE = {"RESUMED": "nothing to resume", "UPGRADED": "nothing to upgrade"}

PERSON = typer.Argument(None, metavar="PERSON", help="Pseudonym.", show_default=False)
KNOWN = typer.Argument(..., metavar="PERSON", help="Pseudonym.", show_default=False)
WHY = option(..., "Reason, kept in the ledger.")


def reply_key(reply: Reply, command: object) -> str:
    """Return the key in ``REPLY_TEXT`` of what came of a command."""
    if reply.state == "RESERVED" and getattr(command, "decision", 0) == 1:
        return "AWAITED"
    if reply.state == "WITHDRAWN" and hasattr(command, "outcome"):
        return "UNUSED"
    return reply.why if reply.state == "SKIPPED" else reply.state


def replied(reply: Reply, command: object = None) -> Answer:
    """Return what came of one command, in words too: what to do now, or what is known."""
    if reply.repeated and reply.state in IDLE:
        return Answer(reply, IDLE[reply.state])
    again, came = ", as before" if reply.repeated else "", reply_key(reply, command)
    said = REPLY_TEXT.get(came, came.lower())
    if reply.state == "PROPOSED":
        return Answer(reply, f"proposed as {reply.number}{again}; somebody else must approve it")
    if not reply.person:
        why = f": {reply.why}" if reply.state in EXPLAINED else ""
        return Answer(reply, f"{said}{again}{why}")
    return Answer(reply, f"{reply.person}: {said}{again}")


def with_verdict(live: LiveAudit, answer: Answer, before: Finding | None = None) -> Answer:
    """Return an answer with the verdict of now, and that of ``before`` if it holds no more."""
    now, said = live.finding, []
    if before is not None and (now is None or now.verdict is not before.verdict):
        said = [f"the verdict {before.verdict} is taken back"]
    if now is not None or said:
        said += [f"verdict: {now.verdict}" if now else "the audit goes on"]
        see = f"see equipoise audit status {shlex.quote(live.row.name)}"
        return replace(answer, words=f"{answer.words}\n{'; '.join([*said, see])}")
    return answer


def one_or_many(
    file: Path | None = option(
        None, "CSV, Parquet or JSON lines; repeating a file is safe.", FILES, flags="--file -f"
    ),
    column: list[str] | None = option(
        None, "Name of a column in the file, as in person=applicant_id.", FILES, "WHAT=COLUMN"
    ),
    results: Path | None = option(None, "Write a CSV with a row per row.", FILES),
) -> Carry:
    """Return what carries out a command of the ledger for one person, or for every row of a file.

    ``said`` must be said of everybody and ``seen`` is said besides: values, or for a file what its
    columns hold, and the names of columns. ``more`` is the same for everybody.
    """

    def carry_out(
        live: LiveAudit,
        verb: str,
        said: Mapping[str, str | None],
        seen: Mapping[str, str] | None = None,
        **more: str,
    ) -> Answer:
        from equipoise.cli.people_files import PeopleColumns, read_rows, store
        from equipoise.ledger.commands import COMMANDS, Command

        seen = seen or {}
        if (said["person"] is None) == (file is None):
            words = " ".join(name.upper() for name in said)
            raise InvalidInput(f"say whom it is about, {words} or --file FILE: one of the two")
        given, header = pairs("--column", column), list[str]()
        if file is not None:
            given |= seen
            header = next((list(r) for _, r in read_rows(file) if isinstance(r, Mapping)), [])
        elif lacking := [repr(name.upper()) for name, value in said.items() if value is None]:
            raise InvalidInput(f"{' and '.join(lacking)} must stand after 'PERSON'")
        columns = PeopleColumns(live.settings.values, (*said, *seen), given, header)
        kind: Callable[..., Command] = COMMANDS[verb]

        def make(row: Mapping[str, Any]) -> Command:
            return kind(**{name: columns.value(name, row) for name in (*said, *seen)}, **more)

        if file is None:
            command = make({**said, **seen})
            answer = replied(live.do(command), command)
        else:
            done = store(live, file, columns, make, results=results)
            answer = Answer(done, str(done), done.problem())
        return with_verdict(live, answer) if verb == "tell" else answer

    return carry_out


@command(live=acting_audit, carry_out=one_or_many)
def ask(
    live: LiveAudit,
    carry_out: Carry,
    person: str | None = PERSON,
    group: str | None = typer.Argument(None, help="Group.", show_default=False),
    decision: str | None = typer.Argument(
        None, help="1 for approved, 0 for denied, or the past's own words.", show_default=False
    ),
    score: str | None = option(
        None,
        "What a model says, for an audit made with --assist; with --file its column.",
        metavar="NUMBER|COLUMN",
    ),
    price: str | None = option(
        None,
        "What this label costs if it is 0, in minor units; with --file its column.",
        metavar="AMOUNT|COLUMN",
    ),
    score_version: str = option(
        "", "Which model the scores are of, for the record.", metavar="NAME", shown=False
    ),
) -> Answer:
    """Say what is wanted of somebody who arrived, or of everybody in a file."""
    said = {"person": person, "group": group, "decision": decision}
    seen = {"score": score, "price": price}
    seen = {name: value for name, value in seen.items() if value is not None}
    return carry_out(live, "ask", said, seen, version=score_version)


@command(live=acting_audit, carry_out=one_or_many)
def tell(
    live: LiveAudit,
    carry_out: Carry,
    person: str | None = PERSON,
    outcome: str | None = typer.Argument(
        None, help="1 (good) or 0 (bad), or the past's own words.", show_default=False
    ),
) -> Answer:
    """Bring an outcome, or all outcomes in a file, in any order and as often as you like."""
    return carry_out(live, "tell", {"person": person, "outcome": outcome})


@command(live=acting_audit, carry_out=one_or_many)
def executed(live: LiveAudit, carry_out: Carry, person: str | None = PERSON) -> Answer:
    """Say that an override was carried out."""
    return carry_out(live, "execute", {"person": person})


@command(live=acting_audit, carry_out=one_or_many)
def withdraw(live: LiveAudit, carry_out: Carry, person: str | None = PERSON) -> Answer:
    """Say that a person refused: the money is free again, the outcome stays unknown."""
    return carry_out(live, "withdraw", {"person": person})


@command(live=acting_audit)
def overdue(
    live: LiveAudit,
    days: float | None = option(None, "Older than this; the audit's own limit if left out."),
) -> Answer:
    """Mark the outcomes that should have come by now; their money stays held."""
    replies = live.overdue(days=days)
    late = [f"  {reply.person}" for reply in replies]
    return Answer(replies, "\n".join([f"{len(replies):,} newly overdue", *late]))


@command(live=acting_audit)
def write_off(live: LiveAudit, person: str = KNOWN) -> Answer:
    """Give up an overdue outcome: the worst cost is posted, the outcome stays unknown."""
    return replied(live.write_off(person))


@command(live=acting_audit)
def correct(
    live: LiveAudit,
    person: str = KNOWN,
    outcome: str = typer.Argument(..., help="The right outcome.", show_default=False),
    why: str = WHY,
) -> Answer:
    """Replace an outcome that was wrong; the old one stays in the ledger."""
    before, right = live.finding, live.settings.values.read_bit("outcome", outcome)
    return with_verdict(live, replied(live.correct(person, right, why)), before)
