"""Live audits: an append-only ledger of people, money and evidence, and the audit on top of it."""

from equipoise.ledger.commands import Reply
from equipoise.ledger.live import LiveAudit, list_audits
from equipoise.ledger.proof import Checkpoint
from equipoise.ledger.status import Status

__all__ = ["Checkpoint", "LiveAudit", "Reply", "Status", "list_audits"]
