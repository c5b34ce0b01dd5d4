"""The audits of a ledger as one server holds them.

An audit has two handles. Commands go through one; threads that come together share a commit, which
the ledger sees to. Reads go through the other, so that a page never holds up an ask.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from equipoise._json import to_plain_data
from equipoise.errors import InvalidInput
from equipoise.ledger import LiveAudit, inputs
from equipoise.ledger.store import AuditRow, Store
from equipoise.service.access import Caller
from equipoise.service.problems import HttpProblem
from equipoise.service.settings import ServiceSettings
from equipoise.service.snapshot import ReportCache

HELD = 64  # audits that a server keeps open


class OpenAudit:
    """One audit: a handle for commands, a handle to read by, and its report.

    ``part`` is its name as part of an address.
    """

    def __init__(self, settings: ServiceSettings, row: AuditRow) -> None:
        self.name, self.uid, self.part = row.name, row.uid, quote(row.name, safe="")
        self.writer = LiveAudit.open(settings.ledger, row.uid, timeout=settings.wait_seconds)
        self.reader = LiveAudit.open(settings.ledger, row.uid)
        self.reports = ReportCache(self.reader)

    def close(self) -> None:
        """Let go of the database."""
        self.writer.close_ledger()
        self.reader.close_ledger()


class OpenAudits:
    """Every audit that this server was asked about."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self.ledger = Store(settings.ledger, create=True, timeout=settings.wait_seconds)
        self._audits: list[OpenAudit] = []
        self._opening, self._long = threading.Lock(), threading.Lock()

    def open(self, name: str) -> OpenAudit:
        """Return an audit by name or id."""
        with self._opening:
            for audit in self._audits:
                if name in (audit.name, audit.uid):
                    return audit
            self._audits.append(OpenAudit(self.settings, self.ledger.audit(name)))
            if len(self._audits) > HELD:
                self._audits.pop(0).close()
            return self._audits[-1]

    def create(self, name: str, given: Mapping[str, Any], caller: Caller) -> AuditRow:
        """Begin an audit in the caller's scope, or find it begun with the same settings."""
        name = inputs.name("name", name)
        if not caller.may_see(name, name):
            raise HttpProblem("forbidden")
        try:
            live = LiveAudit.create(self.settings.ledger, name, **given, actor=caller.name)
        except InvalidInput as refused:
            # made where nobody sees it, to compare; refused again where it is wrong in itself
            wanted = _comparable(LiveAudit.create("sqlite://", name, **given))
            stored = _comparable(self.open(name).reader)
            if stored["name"] != wanted["name"]:
                raise refused from None
            if stored != wanted:
                raise HttpProblem("audit-exists") from None
            return self.ledger.audit(name)
        live.close_ledger()
        return live.row

    @contextmanager
    def long_work(self) -> Iterator[None]:
        """Do something that takes long, one at a time; whoever comes meanwhile is sent away."""
        if not self._long.acquire(blocking=False):
            raise HttpProblem("busy", "another long calculation is under way")
        try:
            yield
        finally:
            self._long.release()

    def require_ready(self) -> None:
        """Raise unless the ledger can be written and still holds what this server saw of it."""
        with self.ledger.transaction() as connection:
            connection.run("UPDATE audits SET seq = seq WHERE id = -1")
        for audit in list(self._audits):
            audit.writer.status()  # a handle refuses a ledger that lacks an event it has seen

    def close(self) -> None:
        """Let go of the database."""
        for audit in self._audits:
            audit.close()
        self.ledger.close()


def _comparable(live: LiveAudit) -> dict[str, Any]:
    """Return what an audit was created with, except what differs each time."""
    data = to_plain_data(live.settings.to_data())
    return {name: v for name, v in data.items() if name not in ("seed_hash", "software")}
