"""The audits of a ledger as one server holds them.

An audit has two handles. Commands go through one, and the ledger lets threads that come together
share a commit. Reads go through the other, so that a page never delays an ask.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any, TypeVar
from urllib.parse import quote

from equipoise._json import to_plain_data
from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.history.coding import ValueReader
from equipoise.history.past import Past
from equipoise.ledger import LiveAudit, inputs
from equipoise.ledger.database import driver_errors
from equipoise.ledger.live import EventsLost
from equipoise.ledger.settings import Settings
from equipoise.ledger.state import AuditState
from equipoise.ledger.state_memory import state_memory
from equipoise.ledger.store import AuditRow, Store
from equipoise.question import Costs, Question
from equipoise.service.access import Caller
from equipoise.service.disk_probe import require_writable
from equipoise.service.limited_work import (
    LIMITED_WORK,
    LimitReached,
    Limits,
    plan_within_limits,
    try_within_limits,
)
from equipoise.service.open_memory import release_memory
from equipoise.service.problems import HttpProblem
from equipoise.service.settings import ServiceSettings
from equipoise.service.snapshot import ReportCache
from equipoise.service.work_turns import WorkTurns

log = logging.getLogger("equipoise.service")
T = TypeVar("T")

MAX_OPEN_AUDITS = 64  # audits that a server keeps open
MAX_LOADED_AUDITS = 8  # audits that a server opens before it is ready
SECONDS_BETWEEN_PROBES = 1.0  # between two writes by which /readyz tries the disk
LOADING_WAIT_SECONDS = 2.0  # for which /readyz waits for small audits
SECONDS_BETWEEN_MEASUREMENTS = 2.0  # of the memory of open audits
SECONDS_BETWEEN_TRIALS = 300.0  # of a damaged audit: somebody may have mended it
SMALLER_WORK = "compare fewer groups, leave groups out, choose a wider margin (epsilon)"


@dataclass(frozen=True)
class Sight:
    """What only an audit's state tells a monitoring system."""

    conflicts: int
    drift_alarms: int


class OpenAudit:
    """One audit: a handle for commands, a handle to read by, and its report.

    Attributes
    ----------
    url_name
        Its name as part of an address.
    memory
        About how many bytes both handles held when they were measured last.
    sight
        What was seen when its state was last in memory, None if it never was.
    """

    def __init__(self, settings: ServiceSettings, row: AuditRow) -> None:
        self.name = row.name
        self.uid = row.uid
        self.url_name = quote(row.name, safe="")
        self.writer = LiveAudit.open(settings.ledger, row.uid, timeout=settings.wait_seconds)
        self.reader = LiveAudit.open(settings.ledger, row.uid)
        self.reports = ReportCache(self.reader)
        self.memory = 0
        self.sight: Sight | None = None
        self.was_used = True  # since it was measured

    @cached_property
    def values(self) -> ValueReader:
        """How groups, decisions and outcomes that callers send are understood.

        It never changes, so it is read once, by the handle for commands: every command needs it,
        and reading it anew would make each wait for the other handle to catch up.
        """
        return self.writer.settings.values

    def look(self) -> Sight | None:
        """Return what is to be seen now; if the audit is in use or let go, what was seen last."""
        for handle in (self.writer, self.reader):
            sight = handle.look_in_memory(_sight_of)
            if sight is not None:
                self.sight = sight
                break
        return self.sight

    def measure(self) -> int:
        """Return about how many bytes it holds; if it is in use, what was measured before."""
        if not self.was_used:
            return self.memory
        counted: set[int] = set()  # what both handles share is there once
        memory = 0
        for handle in (self.writer, self.reader):
            held = handle.look_in_memory(lambda state: state_memory(state, counted))
            if held is None:
                return self.memory
            memory += held
        self.was_used = False
        self.memory = memory
        self.look()
        return memory

    def let_go(self) -> bool:
        """Forget the states that nobody uses; say whether that was so of both handles."""
        has_let_go = [handle.let_go() for handle in (self.writer, self.reader)]
        self.was_used = True
        return all(has_let_go)

    def close(self) -> None:
        """Close the connections to the database."""
        self.writer.close_ledger()
        self.reader.close_ledger()


def _sight_of(state: AuditState | None) -> Sight | None:
    if state is None:
        return None
    return Sight(
        conflicts=len(state.rules.people.contradicted),
        drift_alarms=sum(test.alarm for test in state.drift_tests()),
    )


class OpenAudits:
    """The audits that this server was asked about, at most ``MAX_OPEN_AUDITS`` of them open.

    Attributes
    ----------
    damaged
        The ids of audits whose events cannot be followed, and why.
    """

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self.ledger = Store(settings.ledger, create=True, timeout=settings.wait_seconds)
        self.damaged: dict[str, str] = {}
        self._audits: list[OpenAudit] = []  # the one that was used last is the last one
        self._opening_lock = threading.Lock()
        self._work_turns = WorkTurns(settings.wait_seconds)
        self._is_loaded = threading.Event()
        self._is_closed = threading.Event()
        self._loading: threading.Thread | None = None
        self._last_write_time = -inf  # of the probe, by the monotonic clock, in seconds

    def start(self) -> None:
        """Load the audits in use, and limit the memory of open ones, in the background."""
        self.start_loading()
        threading.Thread(target=self._keep_within_limits, daemon=True, name="limit-memory").start()

    def load(self) -> None:
        """Open the audits in use, then replay their chains; for a thread of its own.

        In use are those with the latest events. Their states come from the cache where it fits, so
        the server is ready after seconds. Replaying takes longer and goes on behind it. A damaged
        audit does not keep the others from being served.
        """
        try:
            rows = sorted(self.ledger.audits(), key=lambda row: row.time, reverse=True)
            # Backwards, so that the one with the latest event counts as used last.
            for row in reversed(rows[:MAX_LOADED_AUDITS]):
                self._examine(self.open(row.uid), LiveAudit.catch_up)
            self._is_loaded.set()
            # A copy of the list, because requests open audits meanwhile.
            for audit in list(self._audits):
                if not self._is_closed.is_set() and audit.uid not in self.damaged:
                    self._examine(audit, LiveAudit.confirm)
        except Exception as error:  # the server stays up, unready unless all audits were opened
            log.warning(
                "audits not loaded or not confirmed", extra={"fields": {"error": str(error)}}
            )

    def _examine(self, audit: OpenAudit, examine: Callable[[LiveAudit], None]) -> None:
        """Do something that reads an audit's events, and note whether it is damaged.

        Raises
        ------
        LedgerError
            If the whole ledger is concerned: it cannot be read, or lacks what was seen of it.
        """
        try:
            examine(audit.writer)
        except EquipoiseError as error:
            if isinstance(error, EventsLost) or isinstance(error.__cause__, driver_errors()):
                raise
            self.damaged[audit.uid] = str(error)
            fields = {"audit": audit.name, "error": str(error)}
            log.warning("audit is damaged", extra={"fields": fields})
        else:
            self.damaged.pop(audit.uid, None)

    def open(self, name: str) -> OpenAudit:
        """Return an audit by name or id."""
        with self._opening_lock:
            for audit in self._audits:  # few enough to search one by one
                if name in (audit.name, audit.uid):
                    audit.was_used = True
                    self._audits.remove(audit)
                    self._audits.append(audit)
                    return audit
            opened = OpenAudit(self.settings, self.ledger.audit(name))
            self._audits.append(opened)
            # The one that was used least recently goes. If a request still has it, its connections
            # are opened again.
            if len(self._audits) > MAX_OPEN_AUDITS:
                self._audits.pop(0).close()
            return opened

    def if_open(self, uid: str) -> OpenAudit | None:
        """Return the audit of this id if it is open now."""
        return next((audit for audit in list(self._audits) if audit.uid == uid), None)

    def begin(
        self, settings: Settings, seed: str, caller: Caller, *, confirm: bool = False
    ) -> AuditRow:
        """Begin an audit, or find the one that was begun with the same settings.

        It is tried first, within limits, and is not made in this server before it is needed.

        Parameters
        ----------
        confirm
            Begin even if the audit would probably not end.

        Raises
        ------
        HttpProblem
            ``audit-exists``, if an audit of this name has other settings; ``too-large``, with the
            limits; ``busy``, if other long work is under way.
        InvalidInput
            If no audit can have these settings, or the name is the id of another audit.
        """
        begun = self._find_begun(settings)
        if begun is not None:
            return begun
        has_verdict = self._try_audit(settings, caller, confirm=confirm)
        try:
            live = LiveAudit.begin(
                self.settings.ledger,
                settings,
                seed=seed,
                actor=caller.name,
                has_verdict=has_verdict,
            )
        except InvalidInput:  # the name is taken, perhaps since just now
            begun = self._find_begun(settings)
            if begun is not None:
                return begun
            if self._find_row(settings.name) is None:  # it is the id of another audit
                raise
            raise HttpProblem("audit-exists") from None
        # Requests use the two handles of ``open``, which belong to the server.
        live.close_ledger()
        return live.row

    def _find_row(self, name: str) -> AuditRow | None:
        return next((row for row in self.ledger.audits() if row.name == name), None)

    def _find_begun(self, settings: Settings) -> AuditRow | None:
        """Return the audit that was begun with the same settings; None if there is none."""
        row = self._find_row(settings.name)
        if row is None:
            return None
        stored = self.open(row.uid).reader.settings
        if not stored.coding:  # a client of an earlier version sent none
            settings = replace(settings, coding={})
        return row if _comparable(stored) == _comparable(settings) else None

    def _try_audit(self, settings: Settings, caller: Caller, *, confirm: bool) -> bool:
        """Try a new audit within limits; return whether the historical data give its verdict."""
        n_groups = len(settings.groups)
        tried = self._within_limits(
            lambda limits: try_within_limits(settings, limits, confirm=confirm), n_groups, caller
        )
        allowed = self.settings.audit_memory
        if tried.memory > allowed:
            raise HttpProblem(
                "too-large",
                f"this audit of {n_groups} groups takes {tried.memory >> 20:,} MB, more than the "
                f"{allowed >> 20:,} MB that this server allows for one audit: {SMALLER_WORK}, or "
                "raise EQUIPOISE_AUDIT_MEMORY",
            )
        return tried.has_verdict

    def make_plan(
        self, past: Past, question: Question, costs: Costs, caller: Caller, **options: Any
    ) -> dict[str, Any]:
        """Return the data of a plan, made within limits; ``options`` are arguments of ``plan``.

        Raises
        ------
        HttpProblem
            ``too-large``, with the limits; ``busy``, if other long work is under way.
        InvalidInput
            If a value breaks a rule.
        """
        return self._within_limits(
            lambda limits: plan_within_limits(past, question, costs, options, limits),
            len(past.cells),
            caller,
        )

    def _within_limits(self, work: Callable[[Limits], T], n_groups: int, caller: Caller) -> T:
        """Do work in turn and within limits, or refuse it."""
        limits = Limits(self.settings.read_memory, self.settings.read_seconds)
        with self._work_turns.turn(caller.role):
            try:
                return work(limits)
            except LimitReached:
                raise HttpProblem(
                    "too-large",
                    f"{n_groups} groups take more than the {limits.memory >> 20:,} MB or "
                    f"{limits.seconds} s that this server allows for one request: {SMALLER_WORK}, "
                    "or raise EQUIPOISE_READ_MEMORY and EQUIPOISE_READ_SECONDS",
                ) from None

    def require_ready(self) -> None:
        """Raise unless audits are loaded, a write is possible, and the ledger has what was seen."""
        if not self._is_loaded.is_set():
            self._load_again()
        probe_time = time.monotonic()
        if probe_time - self._last_write_time > SECONDS_BETWEEN_PROBES:
            require_writable(self.ledger)
            self._last_write_time = probe_time
        for audit in list(self._audits):
            if audit.uid not in self.damaged:
                # A handle that is in use finds out by itself whether events are lost.
                self._examine(audit, lambda handle: handle.catch_up(wait=False))

    # -- memory -----------------------------------------------------------------------------------

    def _keep_within_limits(self) -> None:
        """Limit the memory of open audits until the server ends."""
        last_trial = time.monotonic()
        while not self._is_closed.wait(SECONDS_BETWEEN_MEASUREMENTS):
            try:
                self.limit_memory()
                if time.monotonic() - last_trial > SECONDS_BETWEEN_TRIALS:
                    last_trial = time.monotonic()
                    for audit in list(self._audits):
                        if audit.uid in self.damaged:
                            self._examine(audit, LiveAudit.catch_up)
            except Exception as error:  # of the ledger, which /readyz reports
                fields = {"error": str(error)}
                log.warning("memory of audits not limited", extra={"fields": fields})

    def limit_memory(self) -> None:
        """Let go of the audits used least recently if all together hold more than they may."""
        total = 0
        has_let_go = False
        for place, audit in enumerate(reversed(list(self._audits))):
            total += audit.measure()
            # The one in use stays, even if it alone needs more: it would be made again at once.
            if place > 0 and audit.memory > 0 and total > self.settings.open_memory:
                total -= audit.memory
                has_let_go |= audit.let_go()
        if has_let_go:
            release_memory()

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
        self._is_closed.set()  # the threads that replay chains and limit memory end
        LIMITED_WORK.end_jobs()
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
