"""Carries out commands: catch up with other programs, decide, store, and only then answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from equipoise.errors import EquipoiseError, LedgerError, ProtocolError
from equipoise.ledger.commands import Approve, Command, Correct, Reply, Scrubbed, person_of
from equipoise.ledger.database import driver_errors
from equipoise.ledger.state import SNAPSHOT_FORMAT, AuditState, replay
from equipoise.ledger.store import AuditRow, Store, WriteTransaction
from equipoise.ledger.verify import MISREAD, Event, Head, digest
from equipoise.ledger.writer import NotReady, TransactionWriter, stamp

__all__ = ["Driver"]

SNAPSHOT_EVERY = 1000  # events, and more where a snapshot is large
PATIENCE = 20  # times that others may revise answers while statistics are rebuilt

_MISREAD = (EquipoiseError, *MISREAD)  # what a snapshot that somebody changed can do

Result = Reply | EquipoiseError
Deed = Command | Scrubbed
T = TypeVar("T")


@dataclass
class _Job:
    commands: Sequence[Deed]
    actor: str
    now: datetime
    results: list[Result] = field(default_factory=list)
    error: BaseException | None = None
    done: bool = False

    def __post_init__(self) -> None:
        self.time = stamp(self.now)


class Driver:
    """Holds the state and keeps it equal to the ledger.

    Threads that come while one is storing wait, and the next one stores for all of them: one
    ``fsync`` then serves many calls (group commit). Statistics are rebuilt before the writing turn
    is taken, never while others wait for it.
    """

    def __init__(self, store: Store, row: AuditRow) -> None:
        self._store = store
        self._row = row
        self._state: AuditState | None = None
        self._from_snapshot = False
        self._snapshot_seq = 0
        self._snapshot_size = 0
        self._queue: list[_Job] = []
        self._queue_lock = threading.Lock()
        self._seen = (0, "")  # the last event that this handle knows of

    def run(self, commands: Sequence[Deed], actor: str, now: datetime) -> list[Result]:
        """Carry out commands; return, once stored, a result for each."""
        mine = _Job(commands, actor, now)
        with self._queue_lock:
            self._queue.append(mine)
        with self._store.turn:
            if not mine.done:
                with self._queue_lock:
                    jobs, self._queue = self._queue, []
                self._serve(jobs)
        if mine.error is not None:
            raise mine.error
        return mine.results

    def read(self, look: Callable[[AuditState], T]) -> T:
        """Look at the state as of the latest event; statistics are rebuilt if it needs them."""
        with self._store.turn:
            head = self._known(self._store.head(self._row.id))
            try:
                return look(self._current(head))
            except ProtocolError:
                raise
            except _MISREAD:
                return look(self._from_events(head))

    def peek(self, seq: int) -> AuditState | None:
        """Return the state in memory if it is as of this event."""
        with self._store.turn:
            state = self._state
            return state if state is not None and state.books.head.seq == seq else None

    def replay(self, head: Head | None = None, *, strict: bool = False) -> AuditState:
        """Return the state that follows from the events alone, all of them by default."""
        head = self._store.head(self._row.id) if head is None else head
        events = self._store.events(self._row.id, upto=head.seq)
        return replay(events, AuditState(strict=strict))

    # -- transactions -----------------------------------------------------------------------------

    def _serve(self, jobs: list[_Job]) -> None:
        try:
            self._carry_out(jobs)
        except BaseException as error:
            theirs = [job for job in jobs if not job.done]
            self_inflicted = not isinstance(error.__cause__, driver_errors())
            if len(theirs) > 1 and isinstance(error, Exception) and self_inflicted:
                for job in theirs:  # one of them is to blame; the others must not pay for it
                    job.results.clear()
                    self._serve([job])
            else:
                for job in theirs:
                    job.error = error
        for job in jobs:
            job.done = True

    def _carry_out(self, jobs: list[_Job]) -> None:
        todo, idle = [(job, command) for job in jobs for command in job.commands], 0
        while True:
            done = self._transact(todo, jobs[-1])
            todo, idle = todo[done:], 0 if done else idle + 1
            if not todo:
                break
            if idle > PATIENCE:
                raise LedgerError(
                    "other programs revise answers faster than statistics can be rebuilt; "
                    "repeating the call is safe"
                )
        if self._state is not None and not self._state.ready:
            self._transact([], jobs[-1])  # records the verdict that the revised answers support
        self._keep_snapshot()

    def _transact(self, todo: list[tuple[_Job, Deed]], last: _Job) -> int:
        """Carry out as many as can be in one transaction; return how many."""
        store, row = self._store, self._row
        # Corrections alone need no statistics now; they are rebuilt once, after all of them.
        corrections = todo and all(isinstance(command, Correct) for _, command in todo)
        self.read(lambda state: None if corrections else _rebuild(state))
        done = 0
        try:
            with store.write(row.id) as turn:
                state = self._current(self._known(turn.head))
                writer = self._writer(state, turn, todo)
                for job, command in todo:
                    self._require_clock(turn, state, job)
                    try:
                        result = writer.run(command, job.actor, job.time)
                    except NotReady:
                        break
                    job.results.append(result)
                    done += 1
                writer.record_verdict(last.actor, last.time)
                state.check_books()
                if writer.events:
                    new, changed = list(writer.new.values()), list(writer.changed.values())
                    turn.append(state.books.head, writer.events, writer.keys, new, changed)
            state.books.people = None
            self._seen = (state.books.head.seq, state.books.head.hash)
        except BaseException:
            self._state = None  # it may have seen what was not stored
            for job, _ in todo[:done]:
                job.results.clear()
            raise
        return done

    def _writer(
        self, state: AuditState, turn: WriteTransaction, todo: list[tuple[_Job, Deed]]
    ) -> TransactionWriter:
        """Return a writer who has at hand whom the commands are about."""
        keyed = turn.events_of([command.key for _, command in todo if command.key])
        names = [name for _, command in todo if (name := person_of(command))]
        people = turn.people(names, [*_proposed(state, todo), *_people_of(keyed.values())])
        seed = bytes.fromhex(self._row.seed)
        return TransactionWriter(state, seed=seed, people=people, keyed_events=keyed)

    def _require_clock(self, turn: WriteTransaction, state: AuditState, job: _Job) -> None:
        """Refuse a clock that is ahead: it would make requests look old, or never overdue."""
        if state.settings.simulated or job.results:
            return
        ahead, allowed = turn.clock_ahead(job.now.timestamp()), state.settings.clock_skew
        if ahead > allowed:
            raise LedgerError(
                f"this program's clock says {job.time}, {ahead:,.0f} s ahead of the "
                f"database's, and {allowed:g} s are allowed; nothing was stored, set it right"
            )

    # -- the state --------------------------------------------------------------------------------

    def _from_events(self, head: Head) -> AuditState:
        """Forget a snapshot that misled; raise again if it was none."""
        if not self._from_snapshot:
            raise
        self._from_snapshot = False
        self._store.drop_snapshot(self._row.id)
        self._state = self._checked(self.replay(head), head)
        return self._state

    def _current(self, head: Head) -> AuditState:
        """Return the state at this head, from memory, from a snapshot, or from the events."""
        state = self._state
        if state is None:
            state = self._load(head) or self.replay(head)
        if state.books.head.seq < head.seq:
            after = state.books.head.seq
            replay(self._store.events(self._row.id, after=after, upto=head.seq), state)
        self._state = self._checked(state, head)
        self._seen = (head.seq, head.hash)
        return state

    def _known(self, head: Head) -> Head:
        """Return the ledger's head; refuse it where events are gone that this handle has seen."""
        seen, own = self._seen
        found, where = head.hash if head.seq == seen else "", f"ends at event {head.seq}"
        if head.seq > seen:  # others went on, from what this handle has seen or from less
            bodies = self._store.events(self._row.id, after=max(0, seen - 1), upto=seen)
            found, where = "".join(map(digest, bodies)), f"has another event {seen}"
        if found != own:
            raise LedgerError(
                f"this program has seen event {seen} of {self._row.name!r} ({own[:12]}…) and the "
                f"ledger now {where} ({(found or head.hash)[:12]}…): events are gone, after "
                "a failover to a replica that was behind, or from an older backup. Nothing was "
                "stored. Bring back the database that has them; if it is lost for good, write "
                "down what is missing and open the audit anew (LiveAudit.open, or restart)"
            )
        return head

    def _checked(self, state: AuditState, head: Head) -> AuditState:
        if state.books.head != head:
            raise LedgerError(
                f"the events of {self._row.name!r} do not lead to its head: damaged; run verify"
            )
        state.check_tallies()
        return state

    def _load(self, head: Head) -> AuditState | None:
        """Return the snapshot's state if it is bound to an event of this chain."""
        self._from_snapshot = False
        try:
            found = self._store.read_snapshot(self._row.id)
            if found is None or not 0 < found[0] <= head.seq:
                return None
            seq, own, text = found
            (created,) = self._store.events(self._row.id, upto=1)
            (body,) = self._store.events(self._row.id, after=seq - 1, upto=seq)
            data, state = json.loads(text), AuditState()
            end = data["books"]["head"]
            bound = (data["format"], end["seq"], end["hash"]) == (SNAPSHOT_FORMAT, seq, own)
            if not bound or digest(body) != own:
                return None
            state.restore(data, json.loads(created))
        except _MISREAD:
            return None
        self._snapshot_seq, self._snapshot_size = seq, len(text)
        self._from_snapshot = True
        return state

    def _keep_snapshot(self) -> None:
        state = self._state
        # A snapshot costs as much as it holds, so large ones are made less often.
        gap = max(SNAPSHOT_EVERY, self._snapshot_size // 100)
        if state is None or state.books.head.seq < self._snapshot_seq + gap:
            return
        head, text = state.books.head, json.dumps(state.to_data(), separators=(",", ":"))
        self._snapshot_seq, self._snapshot_size = head.seq, len(text)
        # What the caller wants stored is stored: a shortcut that fails must not look like a loss.
        with suppress(LedgerError):
            self._store.keep_snapshot(self._row.id, head.seq, head.hash, text)


def _rebuild(state: AuditState) -> None:
    """Rebuild the statistics, which happens outside of any transaction."""
    if not state.ready:
        _ = state.log.audit
        state.check_books()


def _proposed(state: AuditState, todo: list[tuple[_Job, Deed]]) -> list[int]:
    """Return whom the proposals that are approved now are about."""
    proposals = state.books.proposals
    wanted = [c.proposal for _, c in todo if isinstance(c, Approve)]
    return _people_of({"data": proposals[p]["arguments"]} for p in wanted if p in proposals)


def _people_of(events: Iterable[Event]) -> list[int]:
    about = (event["data"].get("arguments", event["data"]) for event in events)
    return [own["person"] for own in about if "person" in own]
