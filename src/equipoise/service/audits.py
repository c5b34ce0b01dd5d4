"""The audits of a ledger as one server holds them.

An audit has two handles. Commands go through one, and the ledger lets threads that come together
share a commit. Reads go through the other, so that a page never delays an ask.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from math import inf
from typing import Any
from urllib.parse import quote

from equipoise._json import to_plain_data
from equipoise.errors import InvalidInput
from equipoise.history.coding import ValueReader
from equipoise.history.past import Past
from equipoise.ledger import LiveAudit, inputs
from equipoise.ledger.settings import Settings
from equipoise.ledger.store import AuditRow, Store
from equipoise.planning import plan
from equipoise.question import Costs, Question
from equipoise.service.access import Caller
from equipoise.service.limited_work import is_large, work_within_limits
from equipoise.service.problems import HttpProblem
from equipoise.service.settings import ServiceSettings
from equipoise.service.snapshot import ReportCache

log = logging.getLogger("equipoise.service")

MAX_OPEN_AUDITS = 64  # audits that a server keeps open
MAX_LOADED_AUDITS = 8  # audits that a server opens before it is ready
SECONDS_BETWEEN_PROBES = 1.0  # between two writes by which /readyz tries the disk
LOADING_WAIT_SECONDS = 2.0  # for which /readyz waits for small audits


class OpenAudit:
    """One audit: a handle for commands, a handle to read by, and its report.

    ``url_name`` is its name as part of an address.
    """

    def __init__(self, settings: ServiceSettings, row: AuditRow) -> None:
        self.name = row.name
        self.uid = row.uid
        self.url_name = quote(row.name, safe="")
        self.writer = LiveAudit.open(settings.ledger, row.uid, timeout=settings.wait_seconds)
        self.reader = LiveAudit.open(settings.ledger, row.uid)
        self.reports = ReportCache(self.reader)

    @cached_property
    def values(self) -> ValueReader:
        """How groups, decisions and outcomes that callers send are understood.

        It never changes, so it is read once, by the handle for commands: every command needs it,
        and reading it anew would make each wait for the other handle to catch up.
        """
        return self.writer.settings.values

    def close(self) -> None:
        """Close the connections to the database."""
        self.writer.close_ledger()
        self.reader.close_ledger()


class OpenAudits:
    """The audits that this server was asked about, at most ``MAX_OPEN_AUDITS`` of them open."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self.ledger = Store(settings.ledger, create=True, timeout=settings.wait_seconds)
        self._audits: list[OpenAudit] = []
        self._opening_lock = threading.Lock()
        self._long_work_lock = threading.Lock()
        self._is_loaded = threading.Event()
        self._is_closed = threading.Event()
        self._loading: threading.Thread | None = None
        self._last_write_time = -inf  # of the probe, by the monotonic clock, in seconds

    def load(self) -> None:
        """Open the audits in use, then replay their chains; for a thread of its own.

        In use are those with the latest events. Their states come from the cache where it fits, so
        the server is ready after seconds. Replaying takes longer and goes on behind it.
        """
        try:
            rows = sorted(self.ledger.audits(), key=lambda row: row.time, reverse=True)
            for row in rows[:MAX_LOADED_AUDITS]:
                self.open(row.uid).writer.status()
            self._is_loaded.set()
            # A copy of the list, because requests open audits meanwhile.
            for audit in list(self._audits):
                if not self._is_closed.is_set():
                    audit.writer.confirm()
        except Exception as error:  # the server stays up, unready unless all audits were opened
            log.warning(
                "audits not loaded or not confirmed", extra={"fields": {"error": str(error)}}
            )

    def open(self, name: str) -> OpenAudit:
        """Return an audit by name or id."""
        with self._opening_lock:
            for audit in self._audits:  # few enough to search one by one
                if name in (audit.name, audit.uid):
                    return audit
            opened = OpenAudit(self.settings, self.ledger.audit(name))
            self._audits.append(opened)
            # The one that has been open longest goes. If a request still has it, its connections
            # are opened again.
            if len(self._audits) > MAX_OPEN_AUDITS:
                self._audits.pop(0).close()
            return opened

    def loaded(self) -> list[OpenAudit]:
        """Return the audits that are open now."""
        return list(self._audits)

    def begin(self, settings: Settings, seed: str, caller: Caller) -> AuditRow:
        """Begin an audit, or find the one that was begun with the same settings.

        Raises
        ------
        HttpProblem
            ``audit-exists``, if an audit of this name has other settings.
        InvalidInput
            If the name is the id of another audit.
        """
        try:
            live = LiveAudit.begin(self.settings.ledger, settings, seed=seed, actor=caller.name)
        except InvalidInput as refused:  # the name is taken
            stored = self.open(settings.name).reader.settings
            if stored.name != settings.name:
                raise refused from None
            if not stored.coding:  # a client of an earlier version sent none
                settings = replace(settings, coding={})
            if _comparable(stored) != _comparable(settings):
                raise HttpProblem("audit-exists") from None
            return self.ledger.audit(settings.name)
        # Requests use the two handles of ``open``, which belong to the server.
        live.close_ledger()
        return live.row

    @contextmanager
    def long_work(self) -> Iterator[None]:
        """Do something that takes long, one at a time; a second caller is refused meanwhile."""
        if not self._long_work_lock.acquire(blocking=False):
            raise HttpProblem("busy", "another long calculation is under way")
        try:
            yield
        finally:
            self._long_work_lock.release()

    def make_plan(
        self, past: Past, question: Question, costs: Costs, *, trial_runs: int, **options: Any
    ) -> dict[str, Any]:
        """Return the data of a plan.

        Raises
        ------
        HttpProblem
            ``too-large``, with the limits; ``busy``, if other long work is under way.
        """
        options = {**options, "trial_runs": trial_runs}
        if is_large(past.cells) or trial_runs:
            answer = self._work_within_limits("plan", past, question, costs, options)
            if "plan" in answer:
                data: dict[str, Any] = answer["plan"]
                return data
            # A value breaks a rule. Planning once more, here, raises the error to show.
        return plan(past, question, costs, **options).to_dict()

    def require_within_limits(
        self, work: str, past: Past, question: Question, costs: Costs, **arguments: Any
    ) -> bool:
        """Refuse work for many groups that takes more memory or time than is set aside.

        Return whether an audit was tried there and can begin, so that it need not be tried again.

        Raises
        ------
        HttpProblem
            ``too-large``, with the limits; ``busy``, if other long work is under way.
        """
        if not is_large(past.cells):
            return False
        answer = self._work_within_limits(work, past, question, costs, arguments)
        return "is_possible" in answer

    def _work_within_limits(
        self, work: str, past: Past, question: Question, costs: Costs, arguments: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        memory = self.settings.read_memory
        seconds = self.settings.read_seconds
        with self.long_work():
            answer = work_within_limits(
                work, past, question, costs, memory=memory, seconds=seconds, arguments=arguments
            )
        if answer is None:
            raise HttpProblem(
                "too-large",
                f"{len(past.cells)} groups take more than the {memory >> 20:,} MB or {seconds} s "
                "that this server allows for one request: compare fewer groups, leave groups out, "
                "or raise read_memory and read_seconds",
            )
        return answer

    def require_ready(self) -> None:
        """Raise unless audits are loaded, a write is possible, and the ledger has what was seen."""
        if not self._is_loaded.is_set():
            self._load_again()
        probe_time = time.monotonic()
        if probe_time - self._last_write_time > SECONDS_BETWEEN_PROBES:
            with self.ledger.transaction() as connection:
                # A write that changes nothing and reaches the disk, so that a full one shows.
                connection.run(
                    "UPDATE audits SET time = time WHERE id = (SELECT MAX(id) FROM audits)"
                )
            self._last_write_time = probe_time
        for audit in list(self._audits):
            audit.writer.status()  # a handle refuses a ledger that lacks an event it has seen

    def _load_again(self) -> None:
        """Load what could not be loaded when the server started; refuse while that is going on."""
        if self._loading is not None and self._loading.is_alive():
            raise HttpProblem("storage-unavailable", "audits are being loaded")
        self.start_loading()
        if not self._is_loaded.wait(LOADING_WAIT_SECONDS):
            raise HttpProblem("storage-unavailable", "audits are being loaded")

    def start_loading(self) -> None:
        """Load the audits in use in the background."""
        self._loading = threading.Thread(target=self.load, daemon=True, name="load-audits")
        self._loading.start()

    def close(self) -> None:
        """Close the connections to the database."""
        self._is_closed.set()  # the thread that replays chains begins no other
        for audit in self._audits:
            audit.close()
        self.ledger.close()


def new_seed() -> str:
    """Return a secret seed for a new audit."""
    return secrets.token_hex(32)


def require_name_in_scope(name: str, caller: Caller) -> str:
    """Return the name of an audit that the caller may begin, in stored form."""
    stored_name = inputs.name("name", name)
    if not caller.may_see(stored_name, stored_name):
        raise HttpProblem("forbidden")
    return stored_name


def _comparable(settings: Settings) -> dict[str, Any]:
    """Return settings as JSON holds them, without what differs at every request."""
    data: dict[str, Any] = to_plain_data(settings.to_data())
    del data["seed_hash"]
    del data["software"]
    return data
