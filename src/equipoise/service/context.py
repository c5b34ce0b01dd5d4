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


@dataclass(frozen=True)
class AuditContext:
    """One caller at one audit of a server, and the record of its proofs."""

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

    def results(self, commands: Sequence[Command | EquipoiseError]) -> list[Reply | HttpProblem]:
        """Carry out commands in the caller's name; each has a reply, or why not.

        A command that the caller may not send, or a ledger that cannot store, refuses all of them.
        """
        tags = [result.command for result in commands if not isinstance(result, EquipoiseError)]
        if not all(map(self.caller.may_do, tags)):
            raise HttpProblem("forbidden")
        results: list[Reply | HttpProblem] = []
        for command, result in zip(commands, self.writer.attempt(commands), strict=True):
            if isinstance(result, EquipoiseError):
                results.append(
                    as_problem(result, command, may_see_details=self.caller.may_see_details)
                )
            elif self.caller.may_see_details:
                results.append(result)
            else:  # writers learn what is wanted, no more
                results.append(
                    Reply(result.person, result.state, result.want, repeated=result.repeated)
                )
        return results

    def hand_out_checkpoint(self) -> tuple[Checkpoint, Mark]:
        """Return the present end of the chain, and remember that it was handed out."""
        point, who = self.reader.checkpoint(), self.caller.name
        return point, self.checkpoints.add_mark(
            point.audit, "checkpoint", point.seq, point.hash, who
        )

    def begin_verification(self) -> Mark:
        """Verify against every checkpoint handed out, in a thread and by a handle of its own.

        What came of it is in the store, where every server of the ledger finds it. Whoever asks
        again meanwhile is told of the one that is under way.
        """
        uid, store, ledger = self.audit.uid, self.checkpoints, self.audits.settings.ledger
        if unfinished := store.marks(uid, "running", limit=1):
            return unfinished[0]
        head = self.reader.checkpoint()
        mark = store.add_mark(uid, "running", head.seq, head.hash, self.caller.name)
        threading.Thread(target=_verify, args=(ledger, mark, store), daemon=True).start()
        return mark


def _verify(ledger: str, mark: Mark, store: CheckpointLog) -> None:
    try:
        checkpoints = [
            (checkpoint.seq, checkpoint.hash)
            for checkpoint in store.marks(mark.audit, "checkpoint", limit=1000)
        ]
        proof = LiveAudit.open(ledger, mark.audit).verify(checkpoints)
        note = f"against {len(checkpoints)} checkpoints" if checkpoints else ""
        ended = replace(mark, kind="verified", seq=proof.seq, hash=proof.hash, note=note)
    except EquipoiseError as error:
        is_database_error = isinstance(
            error.__cause__, driver_errors()
        )  # the database, not what is in it
        ended = replace(mark, kind="lost" if is_database_error else "broken", note=str(error))
    store.end_verification(ended)


def audit_context(
    roles: Sequence[Role],
    request: Request,
    audit: Annotated[str, Path(min_length=1, description="The audit's name or id.")],
) -> AuditContext:
    """Let these roles in, and say the same to everybody else."""
    caller, state, audit_name = (
        require_role(roles, request),
        request.app.state,
        decode_path_part(audit),
    )
    try:
        open_audit = state.audits.open(inputs.name("audit", audit_name))
    except InvalidInput:  # whether others exist is not said
        raise HttpProblem("unknown-audit" if caller.audit is None else "forbidden") from None
    if not caller.may_see(open_audit.name, open_audit.uid):
        raise HttpProblem("forbidden")
    return AuditContext(caller, open_audit, state.audits, state.checkpoints)


COMMAND_ROLES = (Role.WRITER, Role.AUDITOR, Role.APPROVER)
AuditorContext = Annotated[AuditContext, Depends(partial(audit_context, (Role.AUDITOR,)))]
CommandContext = Annotated[AuditContext, Depends(partial(audit_context, COMMAND_ROLES))]
ReaderContext = Annotated[AuditContext, Depends(partial(audit_context, READERS))]
