"""The audits of a ledger as one server holds them, one caller at one of them, and proofs.

An audit has two handles. Commands go through one; threads that come together share a commit, which
the ledger sees to. Reads go through the other, so that a page never holds up an ask.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import Depends, Path, Request
from starlette.concurrency import run_in_threadpool

from equipoise.errors import EquipoiseError, LedgerError, UnknownName
from equipoise.ledger import Checkpoint, LiveAudit, Reply, Status, inputs
from equipoise.ledger.commands import Command
from equipoise.ledger.database import driver_errors
from equipoise.ledger.state import EvidencePoint
from equipoise.ledger.store import AuditRow, Store
from equipoise.ledger.verify import digest
from equipoise.report import Report
from equipoise.service.access import Caller, caller_of, decoded
from equipoise.service.panels import Panels, panels_of
from equipoise.service.problems import HttpProblem, problem_of
from equipoise.service.settings import ServiceSettings
from equipoise.service.tokens import READERS, Mark, Role, TokenStore

__all__ = [
    "AuditContext",
    "Auditing",
    "Commanding",
    "OpenAudit",
    "OpenAudits",
    "Reading",
    "ReportCache",
    "begin_verification",
    "hand_out_checkpoint",
    "may_do",
]

log = logging.getLogger("equipoise.service")

HELD = 64  # audits that a server keeps open
POINTS = 60  # of the evidence over time
SETTLED = ("REVEALED", "CORRECTED", "WITHDRAWN", "WRITTEN_OFF")
SIGN_OF_LIFE = 10.0  # seconds between signs of a verification that is under way
WRITES = ("ask", "tell", "execute", "withdraw")


def may_do(role: Role, command: str) -> bool:
    """Whether a role may send a command, known by its tag."""
    if command in WRITES:
        return role in (Role.WRITER, Role.AUDITOR)
    if command in ("approve", "upgrade"):
        return role is Role.APPROVER
    return role is Role.AUDITOR or (role is Role.APPROVER and command == "reject")


@dataclass(frozen=True)
class Snapshot:
    """What the page of an audit shows.

    People and money are as of ``status.events``, the report as of ``report.status.events``, which
    may be earlier. No report: it is being made.
    """

    status: Status
    panels: Panels
    report: Report | None = None

    @property
    def todo(self) -> bool:
        """Whether anything waits for somebody."""
        panels = self.panels
        lists = (self.status.proposals, panels.late, panels.unconfirmed, panels.conflicts)
        return any(lists)


class ReportCache:
    """What an audit's evidence says, brought up to date in the background.

    A fresh process builds the evidence from the whole log, and with many outcomes that takes
    seconds. So nobody waits for it longer than they want: they see what was reported last.
    """

    def __init__(self, live: LiveAudit) -> None:
        self._live = live
        self._lock = threading.Lock()
        self._worker = ThreadPoolExecutor(1, "report")
        self._work: Future[Report] | None = None
        self._latest: Snapshot | None = None
        self._trail: list[EvidencePoint] = []
        self._revised = -1
        self._took, self._ended = 0.0, 0.0

    def look(self, patience: float) -> Snapshot:
        """Return the latest, after at most so many seconds."""
        with self._lock:
            if self._work is None or self._work.done():
                status, seen = self._live.status(), self._latest
                if seen is None or seen.status.head != status.head:
                    panels = panels_of(self._live, status)
                    seen = replace(seen or Snapshot(status, panels), status=status, panels=panels)
                self._latest = seen
                current = seen.report is not None and seen.report.status.head == status.head
                if not current and self._rested():
                    self._begin()
            work, latest = self._work, self._latest
        if work is not None:
            wait([work], timeout=patience)
        return self._latest or latest  # type: ignore[return-value]

    def report(self) -> Report:
        """Return the report as of now, however long it takes."""
        with self._lock:
            work = self._begin()
        return work.result()

    def close(self) -> None:
        """Begin nothing more."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _begin(self) -> Future[Report]:
        self._work = self._worker.submit(self._bring_up_to_date)
        return self._work

    def _rested(self) -> bool:
        """Whether another report would take little of the processor: at most a quarter."""
        return time.monotonic() - self._ended >= 3.0 * self._took

    def _bring_up_to_date(self) -> Report:
        start = time.thread_time()
        try:
            status = self._live.status()
            report = Report.of(self._live, evidence=self._evidence(status))
            self._latest = Snapshot(report.status, panels_of(self._live, report.status), report)
            return report
        except Exception as error:
            log.warning("no report", extra={"fields": {"error": str(error)}})
            raise
        finally:
            self._took, self._ended = time.thread_time() - start, time.monotonic()

    def _evidence(self, status: Status) -> tuple[EvidencePoint, ...]:
        """Return the evidence over time: replayed once, then one point more at each look."""
        kinds = ("corrected", "random_accepts")
        revised = status.late + sum(n.get(k, 0) for n in status.actors.values() for k in kinds)
        answers = sum(status.states.get(state, 0) for state in SETTLED)
        if not self._trail or revised != self._revised:
            self._trail, self._revised = list(self._live.trace()), revised
        elif answers > self._trail[-1].answers:
            now = self._live.so_far()
            self._trail.append(EvidencePoint(answers, now.lower, now.upper, now.estimate))
        if len(self._trail) > 2 * POINTS:
            self._trail = [*self._trail[:-1:2], self._trail[-1]]
        return tuple(self._trail)


class OpenAudit:
    """One audit: a handle for commands, a handle to read by, and its report."""

    def __init__(self, settings: ServiceSettings, name: str) -> None:
        self.writer = LiveAudit.open(settings.ledger, name, timeout=settings.wait_seconds)
        self.row = self.writer.row
        self.name, self.uid = self.row.name, self.row.uid
        self.reader = LiveAudit.open(settings.ledger, self.uid)
        self.reports = ReportCache(self.reader)

    def close(self) -> None:
        """Let go of the database."""
        self.reports.close()
        self.writer.close_ledger()
        self.reader.close_ledger()


class OpenAudits:
    """Every audit that this server was asked about."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self._audits: OrderedDict[str, OpenAudit] = OrderedDict()
        self._uids: dict[str, str] = {}
        self._heads: dict[int, tuple[int, str]] = {}
        self._store: Store | None = None
        self._opening, self._long = threading.Lock(), threading.Lock()

    def known(self, name: str) -> OpenAudit | None:
        """Return an audit that is open."""
        return self._audits.get(self._uids.get(name, ""))

    def open(self, name: str) -> OpenAudit:
        """Return an audit by name or id."""
        with self._opening:
            try:
                uid = self._uids[name] = self._ledger().audit(name).uid
            except UnknownName:
                raise HttpProblem("unknown-audit") from None
            if uid not in self._audits:
                self._audits[uid] = OpenAudit(self.settings, uid)
            self._audits.move_to_end(uid)
            if len(self._audits) > HELD:
                self._audits.popitem(last=False)[1].close()
            return self._audits[uid]

    def rows(self) -> list[AuditRow]:
        """Return the audits of the ledger, oldest first."""
        return self._ledger().audits()

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
        store = self._ledger()
        with store.transaction() as connection:
            connection.run("UPDATE audits SET seq = seq WHERE id = -1")
        for row in store.audits():
            seq, own = self._heads.get(row.id, (0, ""))
            if seq:
                bodies = list(store.events(row.id, after=seq - 1, upto=seq))
                if [digest(body) for body in bodies] != [own]:
                    raise LedgerError(f"event {seq} of {row.name!r} is not the one seen earlier")
            self._heads[row.id] = (row.seq, row.hash)

    def close(self) -> None:
        """Let go of the database."""
        for audit in self._audits.values():
            audit.close()
        if self._store is not None:
            self._store.close()

    def _ledger(self) -> Store:
        if self._store is None:
            wait_seconds = self.settings.wait_seconds
            self._store = Store(self.settings.ledger, create=True, timeout=wait_seconds)
        return self._store


@dataclass(frozen=True)
class AuditContext:
    """One caller at one audit of a server, which keeps tokens and proofs in a store."""

    caller: Caller
    audit: OpenAudit
    audits: OpenAudits
    store: TokenStore

    @property
    def reader(self) -> LiveAudit:
        """The handle to read by."""
        return self.audit.reader

    @property
    def writer(self) -> LiveAudit:
        """The handle for commands, in the caller's name."""
        return self.audit.writer.acting_as(self.caller.name)

    def do(self, command: Command) -> Reply:
        """Carry out a command in the caller's name."""
        (result,) = self.results([command])
        if isinstance(result, HttpProblem):
            raise result
        return result

    def results(self, commands: Sequence[Command]) -> list[Reply | HttpProblem]:
        """Carry out commands in the caller's name; each has a reply, or why not.

        A command that the caller may not send, or a ledger that cannot store, refuses all of them.
        """
        if not all(may_do(self.caller.role, command.command) for command in commands):
            raise HttpProblem("forbidden")
        found: list[Reply | HttpProblem] = []
        for command, result in zip(commands, self.writer.attempt(commands), strict=True):
            if not isinstance(result, EquipoiseError):
                found.append(self._seen(result))
                continue
            problem = problem_of(result, command, tell_all=self.caller.may_know)
            if isinstance(result, LedgerError):
                raise problem
            found.append(problem)
        return found

    def _seen(self, reply: Reply) -> Reply:
        """Return what the caller may know of a reply: writers learn what is wanted, no more."""
        if self.caller.may_know:
            return reply
        return Reply(reply.person, reply.state, reply.want, repeated=reply.repeated)


def context(*roles: Role) -> Callable[..., Awaitable[AuditContext]]:
    """Return a dependency that lets these roles in, and says the same to everybody else."""

    async def let_in(
        request: Request,
        audit: Annotated[str, Path(min_length=1, description="The audit's name or id.")],
    ) -> AuditContext:
        caller, state = caller_of(request), request.app.state
        if caller.role not in roles:
            raise HttpProblem("forbidden")
        if request.scope["query_string"]:
            _require_known_query(request)
        wanted = decoded(audit)
        try:
            name = inputs.name("audit", wanted)
            found = state.audits.known(name) or await run_in_threadpool(state.audits.open, name)
        except (HttpProblem, EquipoiseError) as error:
            if isinstance(error, LedgerError):
                raise
            # whether others exist is not said
            raise HttpProblem("unknown-audit" if caller.audit is None else "forbidden") from None
        if not caller.may_see(found.name, found.uid):
            raise HttpProblem("forbidden")
        return AuditContext(caller, found, state.audits, state.store)

    return let_in


def _require_known_query(request: Request) -> None:
    """Refuse what would be ignored: somebody who mistypes a limit shall hear of it."""
    known = getattr(request.scope.get("route"), "dependant", None)
    names = set() if known is None else {field.alias for field in known.query_params}
    for name in request.query_params:
        if name not in names:
            raise HttpProblem("invalid-input", f"there is no query parameter {name[:40]!a} here")


Auditing = Annotated[AuditContext, Depends(context(Role.AUDITOR))]
Commanding = Annotated[AuditContext, Depends(context(Role.WRITER, Role.AUDITOR, Role.APPROVER))]
Reading = Annotated[AuditContext, Depends(context(*READERS))]


# -- proof ----------------------------------------------------------------------------------------


def hand_out_checkpoint(context: AuditContext) -> tuple[Checkpoint, Mark]:
    """Return the present end of the chain, and remember that it was handed out."""
    point, store = context.reader.checkpoint(), context.store
    mark = store.add_mark(point.audit, "checkpoint", point.seq, point.hash, context.caller.name)
    return point, mark


def begin_verification(context: AuditContext) -> Mark:
    """Verify against every checkpoint that was handed out, in a thread and by a handle of its own.

    What came of it is in the store, where every server of the ledger finds it.
    """
    uid, store, ledger = context.audit.uid, context.store, context.audits.settings.ledger
    for mark in store.marks(uid, "running"):
        if mark.kind == "running":  # whoever asks again is told of the one that is under way
            return mark
    head = context.reader.checkpoint()
    mark = store.add_mark(uid, "running", head.seq, head.hash, context.caller.name)
    threading.Thread(target=_verify, args=(ledger, uid, mark.id, store), daemon=True).start()
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
            end: dict[str, str | int] = {"seq": summary.seq, "hash": summary.hash}
            store.change_mark(number, kind="verified", note=words, **end)
        finally:
            live.close_ledger()
    except EquipoiseError as error:
        unread = isinstance(error.__cause__, driver_errors())  # the database, not what is in it
        store.change_mark(number, kind="lost" if unread else "broken", note=str(error))
    finally:
        done.set()
