"""The audits of a ledger as one server holds them, one caller at one of them, and proofs.

An audit has two handles. Commands go through one; threads that come together share a commit, which
the ledger sees to. Reads go through the other, so that a page never holds up an ask.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import partial
from math import inf
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Path, Request

from equipoise._json import to_plain_data
from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.ledger import Checkpoint, LiveAudit, Reply, Status, inputs
from equipoise.ledger.commands import Command
from equipoise.ledger.database import driver_errors
from equipoise.ledger.store import AuditRow, Store
from equipoise.ledger.verify import PersonRecord
from equipoise.report import Report
from equipoise.service.access import Caller, caller_in, decoded
from equipoise.service.problems import HttpProblem, as_problem
from equipoise.service.settings import ServiceSettings
from equipoise.service.tokens import READERS, Mark, Role, TokenStore

log = logging.getLogger("equipoise.service")

HELD = 64  # audits that a server keeps open
LISTED = 10  # people in a list of what is to be done
TRACING = 0.1  # share of the time in which the evidence over time may be traced anew
REPORTS = ThreadPoolExecutor(4, "report")  # made in the background, of all audits
AGES = ((1, "since yesterday"), (7, "a week"), (30, "a month"), (90, "three months"),
        (365, "a year"), (inf, "longer"))  # fmt: skip


@dataclass(frozen=True)
class Snapshot:
    """What the page of an audit shows, each list from one small question to the database.

    Attributes
    ----------
    status, report
        People and money as of ``status.events``; the evidence as of ``report.status.events``, which
        may be earlier. No report: it is being made.
    funnel
        What became of everybody: words, number of people, and the states they stand for.
    ages
        How long requests have been open -> how many of them are in each state.
    late, unconfirmed, conflicts
        The oldest that should have an outcome by now, or whose override nobody has confirmed, and
        people whose outcome was contradicted.
    """

    status: Status
    report: Report | None
    funnel: Sequence[tuple[str, int, str]]
    ages: Mapping[str, Mapping[str, int]]
    late: Sequence[PersonRecord]
    unconfirmed: Sequence[PersonRecord]
    conflicts: Sequence[PersonRecord]

    @classmethod
    def of(cls, live: LiveAudit, status: Status, report: Report | None = None) -> Snapshot:
        """Gather what is shown beside the report."""
        states = Counter(status.states)
        wanted = status.people - states["SKIPPED"]
        looked = () if live.settings.assist is None else (("looked at", wanted, ""),)
        known = states["REVEALED"] + states["CORRECTED"]
        today, ages = datetime.now(UTC).date(), {words: Counter[str]() for _, words in AGES}
        for state, day, number in live.pending_by_day():
            age = (today - date.fromisoformat(day)).days
            ages[next(words for most, words in AGES if age <= most)][state] += number
        return cls(
            status=status,
            report=report,
            funnel=(
                ("arrived", status.people, ""),
                *looked,
                ("asked for", wanted - states["SCORE_ONLY"], ""),
                ("carried out or answered", known + states["EXECUTED"], ""),
                ("outcome known", known, "REVEALED"),
                ("refused", states["WITHDRAWN"], "WITHDRAWN"),
                ("given up", states["WRITTEN_OFF"], "WRITTEN_OFF"),
            ),
            ages=ages,
            late=live.people(states=("OVERDUE",), limit=LISTED),
            unconfirmed=live.people(states=("RESERVED",), limit=LISTED),
            conflicts=live.people(conflicted=True, limit=LISTED) if status.conflicts else (),
        )

    @property
    def apart(self) -> list[tuple[str, str, str]]:
        """``(rate, higher group, lower group)`` for every pair whose intervals do not meet."""
        rates = self.report.finding.rates if self.report else {}
        return [
            (rate.replace("_", " "), high, low)
            for rate, groups in rates.items()
            for high, of_high in groups.items()
            for low, of_low in groups.items()
            if of_high.lower > of_low.upper
        ]


class ReportCache:
    """What an audit's evidence says, brought up to date in the background.

    A fresh process builds the evidence from the whole log, and with many outcomes that takes
    seconds. So nobody waits for it longer than they want: they see what was reported last. How the
    evidence grew over time takes as long each time, so it is traced anew now and then.
    """

    def __init__(self, live: LiveAudit) -> None:
        self._live = live
        self._lock = threading.Lock()
        self._work: Future[None] | None = None
        self._latest: Snapshot | None = None
        self._traced, self._trace_at = "", 0.0

    def look(self, patience: float) -> Snapshot:
        """Return the latest, after at most so many seconds."""
        with self._lock:
            seen = self._latest
            if seen is None or self._work is None or self._work.done():
                status, report = self._live.status(), seen.report if seen else None
                if seen is None or seen.status.head != status.head:
                    seen = self._latest = Snapshot.of(self._live, status, report)
                is_new = report is None or report.status.head != status.head
                if is_new or (self._traced != status.head and time.monotonic() > self._trace_at):
                    self._work = REPORTS.submit(self._bring_up_to_date, report)
            work = self._work
        if work is not None:
            wait([work], timeout=patience)
        return self._latest or seen

    def _bring_up_to_date(self, last: Report | None) -> None:
        start = time.monotonic()
        known = None if last is None or start > self._trace_at else last.evidence
        try:
            report = Report.of(self._live, evidence=known)
            self._latest = Snapshot.of(self._live, report.status, report)
            if known is None:
                self._traced = report.status.head
                self._trace_at = start + (time.monotonic() - start) / TRACING
        except Exception as error:
            log.warning("no report", extra={"fields": {"error": str(error)}})


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

    def results(self, commands: Sequence[Command | EquipoiseError]) -> list[Reply | HttpProblem]:
        """Carry out commands in the caller's name; each has a reply, or why not.

        A command that the caller may not send, or a ledger that cannot store, refuses all of them.
        """
        tags = [one.command for one in commands if not isinstance(one, EquipoiseError)]
        if not all(map(self.caller.may_do, tags)):
            raise HttpProblem("forbidden")
        results: list[Reply | HttpProblem] = []
        for command, one in zip(commands, self.writer.attempt(commands), strict=True):
            if isinstance(one, EquipoiseError):
                results.append(as_problem(one, command, tell_all=self.caller.may_know))
            elif self.caller.may_know:
                results.append(one)
            else:  # writers learn what is wanted, no more
                results.append(Reply(one.person, one.state, one.want, repeated=one.repeated))
        return results

    def hand_out_checkpoint(self) -> tuple[Checkpoint, Mark]:
        """Return the present end of the chain, and remember that it was handed out."""
        point, who = self.reader.checkpoint(), self.caller.name
        return point, self.store.add_mark(point.audit, "checkpoint", point.seq, point.hash, who)

    def begin_verification(self) -> Mark:
        """Verify against every checkpoint handed out, in a thread and by a handle of its own.

        What came of it is in the store, where every server of the ledger finds it. Whoever asks
        again meanwhile is told of the one that is under way.
        """
        uid, store, ledger = self.audit.uid, self.store, self.audits.settings.ledger
        if running := store.marks(uid, "running", limit=1):
            return running[0]
        head = self.reader.checkpoint()
        mark = store.add_mark(uid, "running", head.seq, head.hash, self.caller.name)
        threading.Thread(target=_verify, args=(ledger, mark, store), daemon=True).start()
        return mark


def _verify(ledger: str, mark: Mark, store: TokenStore) -> None:
    try:
        known = [(one.seq, one.hash) for one in store.marks(mark.audit, "checkpoint", limit=1000)]
        proof = LiveAudit.open(ledger, mark.audit).verify(known)
        words = f"against {len(known)} checkpoints" if known else ""
        done = replace(mark, kind="verified", seq=proof.seq, hash=proof.hash, note=words)
    except EquipoiseError as error:
        unread = isinstance(error.__cause__, driver_errors())  # the database, not what is in it
        done = replace(mark, kind="lost" if unread else "broken", note=str(error))
    store.end_verification(done)


def context(
    roles: Sequence[Role],
    request: Request,
    audit: Annotated[str, Path(min_length=1, description="The audit's name or id.")],
) -> AuditContext:
    """Let these roles in, and say the same to everybody else."""
    caller, state, wanted = caller_in(roles, request), request.app.state, decoded(audit)
    try:
        found = state.audits.open(inputs.name("audit", wanted))
    except InvalidInput:  # whether others exist is not said
        raise HttpProblem("unknown-audit" if caller.audit is None else "forbidden") from None
    if not caller.may_see(found.name, found.uid):
        raise HttpProblem("forbidden")
    return AuditContext(caller, found, state.audits, state.store)


WRITERS = (Role.WRITER, Role.AUDITOR, Role.APPROVER)
Auditing = Annotated[AuditContext, Depends(partial(context, (Role.AUDITOR,)))]
Commanding = Annotated[AuditContext, Depends(partial(context, WRITERS))]
Reading = Annotated[AuditContext, Depends(partial(context, READERS))]
