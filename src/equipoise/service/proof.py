"""Checkpoints that are handed out, and verifications that run while others work."""

from __future__ import annotations

import threading

from equipoise.errors import EquipoiseError
from equipoise.ledger import Checkpoint, LiveAudit
from equipoise.ledger.database import driver_errors
from equipoise.service.audits import AuditContext, OpenAudits
from equipoise.service.tokens import Mark, TokenStore

__all__ = ["begin_verification", "hand_out_checkpoint"]

SIGN_OF_LIFE = 10.0  # seconds


def hand_out_checkpoint(context: AuditContext, store: TokenStore) -> tuple[Checkpoint, Mark]:
    """Return the present end of the chain, and remember that it was handed out."""
    point = context.reader.checkpoint()
    mark = store.add_mark(point.audit, "checkpoint", point.seq, point.hash, context.caller.name)
    return point, mark


def begin_verification(context: AuditContext, audits: OpenAudits, store: TokenStore) -> Mark:
    """Verify against every checkpoint that was handed out, in a thread and by a handle of its own.

    What came of it is in the store, where every server of the ledger finds it.
    """
    uid = context.audit.uid
    for mark in store.marks(uid, "running"):
        if mark.kind == "running":  # whoever asks again is told of the one that is under way
            return mark
    head = context.reader.checkpoint()
    mark = store.add_mark(uid, "running", head.seq, head.hash, context.caller.name)
    work = threading.Thread(
        target=_verify, args=(audits.settings.ledger, uid, mark.id, store), daemon=True
    )
    work.start()
    return mark


def _verify(ledger: str, uid: str, number: str, store: TokenStore) -> None:
    done = threading.Event()

    def give_signs() -> None:
        while not done.wait(SIGN_OF_LIFE):
            store.change_mark(number)

    threading.Thread(target=give_signs, daemon=True).start()
    try:
        live = LiveAudit.open(ledger, uid)
        try:
            known = [(mark.seq, mark.hash) for mark in store.marks(uid, "checkpoint", limit=1000)]
            summary = live.verify(known)
            words = f"against {len(known)} checkpoints" if known else ""
            end: dict[str, str | int] = {"seq": summary.events, "hash": summary.head}
            store.change_mark(number, kind="verified", note=words, **end)
        finally:
            live.close_ledger()
    except EquipoiseError as error:
        unread = isinstance(error.__cause__, driver_errors())  # the database, not what is in it
        store.change_mark(number, kind="lost" if unread else "broken", note=str(error))
    finally:
        done.set()
