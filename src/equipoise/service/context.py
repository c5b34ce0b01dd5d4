"""One caller at one audit of the server: what a request may do there."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from fastapi import Depends, Path, Request

from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.ledger import Checkpoint, LiveAudit, Reply, inputs
from equipoise.ledger.commands import Command
from equipoise.ledger.database import driver_errors
from equipoise.service.access import Caller, decode_path_part, require_role
from equipoise.service.audits import OpenAudit, OpenAudits
from equipoise.service.checkpoints import CheckpointLog, Mark
from equipoise.service.problems import HttpProblem, as_problem
from equipoise.service.tokens import READERS, Role

MAX_CHECKPOINTS = 1000  # that an audit is verified against, the latest


@dataclass(frozen=True)
class AuditContext:
    """One caller at one audit of the server, and the record of its checkpoints."""

    caller: Caller
    audit: OpenAudit
    audits: OpenAudits
    checkpoints: CheckpointLog

    @property
    def reader(self) -> LiveAudit:
        """The handle to read by."""
        return self.audit.reader

    @property
    def writer(self) -> LiveAudit:
        """The handle for commands, in the caller's name."""
        return self.audit.writer.acting_as(self.caller.name)

    def run_commands(
        self, commands: Sequence[Command | EquipoiseError]
    ) -> list[Reply | HttpProblem]:
        """Carry out commands in the caller's name; return a reply or a problem for each.

        An error in place of a command becomes its problem. A command that the caller may not send,
        or a ledger that cannot store, refuses all of them.
        """
        # Checked before any is carried out: a refusal of the role must leave no trace.
        for command in commands:
            if not isinstance(command, EquipoiseError) and not self.caller.may_do(command.command):
                raise HttpProblem("forbidden")
        sees_details = self.caller.may_see_details
        replies: list[Reply | HttpProblem] = []
        for command, reply_or_error in zip(commands, self.writer.attempt(commands), strict=True):
            if isinstance(reply_or_error, EquipoiseError):
                replies.append(as_problem(reply_or_error, command, may_see_details=sees_details))
            elif sees_details:
                replies.append(reply_or_error)
            else:
                replies.append(_reply_for_writer(reply_or_error))
        return replies

    def hand_out_checkpoint(self) -> tuple[Checkpoint, Mark]:
        """Return the present end of the chain, and store that it was handed out."""
        checkpoint = self.reader.checkpoint()
        mark = self.checkpoints.add_mark(
            checkpoint.audit, "checkpoint", checkpoint.seq, checkpoint.hash, self.caller.name
        )
        return checkpoint, mark

    def begin_verification(self) -> Mark:
        """Begin to verify the audit against every checkpoint handed out, and return its mark.

        It runs in a thread and by a handle of its own. The result is stored, where every server of
        the ledger finds it. If a verification is under way, its mark is returned.
        """
        unfinished = self.checkpoints.latest(self.audit.uid, "running")
        if unfinished is not None:
            return unfinished
        head = self.reader.checkpoint()
        mark = self.checkpoints.add_mark(
            self.audit.uid, "running", head.seq, head.hash, self.caller.name
        )
        # By a handle of its own, because a verification holds its connection for long.
        ledger = self.audits.settings.ledger
        arguments = (ledger, mark, self.checkpoints)
        threading.Thread(target=_verify, args=arguments, daemon=True).start()
        return mark


def _reply_for_writer(reply: Reply) -> Reply:
    """Return what writers may see of a reply: what is wanted, what it may cost, and no more."""
    return Reply(reply.person, reply.state, reply.want, reply.hold, repeated=reply.repeated)


def _verify(ledger: str, mark: Mark, log: CheckpointLog) -> None:
    """Verify an audit and store how it ended: ``verified``, ``broken`` or ``lost``."""
    checkpoints = log.marks(mark.audit, "checkpoint", limit=MAX_CHECKPOINTS)
    ends = [(checkpoint.seq, checkpoint.hash) for checkpoint in checkpoints]
    try:
        proof = LiveAudit.open(ledger, mark.audit).verify(ends)
    except EquipoiseError as error:
        is_database_error = isinstance(error.__cause__, driver_errors())  # nothing is proved then
        kind = "lost" if is_database_error else "broken"
        log.end_verification(replace(mark, kind=kind, note=str(error)))
        return
    note = f"against {len(ends)} checkpoints" if ends else ""
    log.end_verification(replace(mark, kind="verified", seq=proof.seq, hash=proof.hash, note=note))


def audit_context(
    roles: Sequence[Role],
    request: Request,
    audit: Annotated[str, Path(min_length=1, description="The audit's name or id.")],
) -> AuditContext:
    """Return the context of a request, if its caller has one of the roles and the audit in scope.

    A caller whose scope is one audit gets the same refusal whether another audit exists or not.
    """
    caller = require_role(roles, request)
    audit_name = decode_path_part(audit)
    state = request.app.state
    try:
        open_audit = state.audits.open(inputs.name("audit", audit_name))
    except InvalidInput:
        raise HttpProblem("unknown-audit" if caller.audit is None else "forbidden") from None
    if not caller.may_see(open_audit.name, open_audit.uid):
        raise HttpProblem("forbidden")
    return AuditContext(caller, open_audit, state.audits, state.checkpoints)


COMMAND_ROLES = (Role.WRITER, Role.AUDITOR, Role.APPROVER)
AuditorContext = Annotated[AuditContext, Depends(partial(audit_context, (Role.AUDITOR,)))]
CommandContext = Annotated[AuditContext, Depends(partial(audit_context, COMMAND_ROLES))]
ReaderContext = Annotated[AuditContext, Depends(partial(audit_context, READERS))]
