"""Carries out commands: catch up with other programs, decide, store, and only then answer."""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from equipoise.errors import EquipoiseError, LedgerError
from equipoise.ledger.commands import Approve, Command, Correct, Reply, person_of
from equipoise.ledger.failures import driver_errors
from equipoise.ledger.memory import FeaturesOf
from equipoise.ledger.pen import NotReady, stamp
from equipoise.ledger.schema import Head
from equipoise.ledger.standing import SNAPSHOT_FORMAT
from equipoise.ledger.state import State, replay
from equipoise.ledger.store import AuditRow, Store, Turn
from equipoise.ledger.verify import digest
from equipoise.ledger.writer import Writer

__all__ = ["Driver"]

SNAPSHOT_EVERY = 1000  # events, and more where a snapshot is large
PATIENCE = 20  # times that others may revise answers while statistics are rebuilt

# What a snapshot that somebody changed can do to whoever reads it.
_MISREAD = (
    *(ArithmeticError, AttributeError, EquipoiseError, LookupError, RecursionError, TypeError),
    ValueError,
)

Result = Reply | EquipoiseError
T = TypeVar("T")


@dataclass
class _Job:
    commands: Sequence[Command]
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
        self._state: State | None = None
        self._from_snapshot = False
        self._snapshot_seq = 0
        self._snapshot_size = 0
        self._queue: list[_Job] = []
        self._queue_lock = threading.Lock()
        store.after_fork = weakref.WeakMethod(self._start_queue)

    def run(self, commands: Sequence[Command], actor: str, now: datetime) -> list[Result]:
        """Carry out commands; return, once stored, a result for each."""
        ((results, error),) = self.run_together([(commands, actor)], now)
        if error is not None:
            raise error
        return results

    def run_together(
        self, work: Sequence[tuple[Sequence[Command], str]], now: datetime
    ) -> list[tuple[list[Result], BaseException | None]]:
        """Carry out commands of several actors in one commit; each has results or an error."""
        mine = [_Job(commands, actor, now) for commands, actor in work]
        with self._queue_lock:
            self._queue += mine
        with self._store.turn:
            if not all(job.done for job in mine):
                with self._queue_lock:
                    jobs, self._queue = self._queue, []
                self._serve(jobs)
        return [(job.results, job.error) for job in mine]

    def read(self, look: Callable[[State], T]) -> T:
        """Look at the state as of the latest event; statistics are rebuilt if it needs them."""
        with self._store.turn:
            head = self._store.head(self._row.id)
            try:
                return look(self._current(head))
            except _MISREAD:
                return look(self._from_events(head))

    def peek(self, seq: int) -> State | None:
        """Return the state in memory if it is as of this event."""
        with self._store.turn:
            state = self._state
            return state if state is not None and state.seq == seq else None

    def replay(self, head: Head | None = None, *, strict: bool = False) -> State:
        """Return the state that follows from the events alone, all of them by default."""
        head = self._store.head(self._row.id) if head is None else head
        events = self._store.events(self._row.id, upto=head.seq)
        return replay(events, State(_features_of(self._store, self._row.id), strict=strict))

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

    def _transact(self, todo: list[tuple[_Job, Command]], last: _Job) -> int:
        """Carry out as many as can be in one transaction; return how many."""
        store, row = self._store, self._row
        # Corrections alone need no statistics now; they are rebuilt once, after all of them.
        self._ready(build=not todo or not all(isinstance(c, Correct) for _, c in todo))
        done = 0
        try:
            with store.write(row.id) as turn:
                state = self._current(turn.head)
                people = turn.people(
                    [name for _, command in todo if (name := person_of(command))],
                    self._proposed_people(state, todo),
                )
                seed = bytes.fromhex(row.seed)
                writer = Writer(state, turn.head, uid=row.uid, seed=seed, people=people)
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
                self._store_all(turn, writer)
        except BaseException:
            self._state = None  # it may have seen what was not stored
            for job, _ in todo[:done]:
                job.results.clear()
            raise
        return done

    def _store_all(self, turn: Turn, writer: Writer) -> None:
        if writer.events:
            new, changed = list(writer.new.values()), list(writer.changed.values())
            turn.append(writer.head, writer.events, new, changed)
        if writer.vectors:
            turn.add_features(writer.vectors)
        if writer.erased:
            turn.erase_features(writer.erased)
        if writer.erase_features:
            turn.erase_features()

    def _require_clock(self, turn: Turn, state: State, job: _Job) -> None:
        """Refuse a clock that is ahead: it would make requests look old, or never overdue."""
        if state.settings.simulated or job.results:
            return
        ahead, allowed = turn.clock_ahead(job.now.timestamp()), state.settings.clock_skew
        if ahead > allowed:
            raise LedgerError(
                f"this program's clock says {job.time}, {ahead:,.0f} s ahead of the "
                f"database's, and {allowed:g} s are allowed; nothing was stored, set it right"
            )

    def _proposed_people(self, state: State, todo: list[tuple[_Job, Command]]) -> list[int]:
        wanted = [c.proposal for _, c in todo if isinstance(c, Approve)]
        about = [state.proposals[p]["arguments"] for p in wanted if p in state.proposals]
        return [own["person"] for own in about if "person" in own]

    # -- the state --------------------------------------------------------------------------------

    def _ready(self, *, build: bool = True) -> State:
        """Return the state as of now with its statistics rebuilt, outside of any transaction."""
        head = self._store.head(self._row.id)
        try:
            state = self._current(head)
            if build and not state.ready:
                _ = state.memory.audit
                state.check_books()
        except _MISREAD:
            state = self._from_events(head)
            if not state.ready:
                _ = state.memory.audit
        return state

    def _from_events(self, head: Head) -> State:
        """Forget a snapshot that misled; raise again if it was none."""
        if not self._from_snapshot:
            raise
        self._from_snapshot = False
        self._store.drop_snapshot(self._row.id)
        self._state = self._checked(self.replay(head), head)
        return self._state

    def _current(self, head: Head) -> State:
        """Return the state at this head, from memory, from a snapshot, or from the events."""
        state = self._state
        if state is None or state.seq > head.seq:
            state = self._load(head) or self.replay(head)
        if state.seq < head.seq:
            replay(self._store.events(self._row.id, after=state.seq, upto=head.seq), state)
        self._state = self._checked(state, head)
        return state

    def _checked(self, state: State, head: Head) -> State:
        found = (state.seq, state.head, state.cap, state.spent, state.reserved, state.overrun)
        if found != (head.seq, head.hash, head.cap, head.spent, head.reserved, head.overrun):
            raise LedgerError(
                f"the events of {self._row.name!r} do not lead to its head: damaged; run verify"
            )
        state.check_tallies()
        return state

    def _load(self, head: Head) -> State | None:
        """Return the snapshot's state if it is bound to an event of this chain."""
        found = self._store.read_snapshot(self._row.id)
        self._from_snapshot = False
        if found is None or not 0 < found[0] <= head.seq:
            return None
        seq, own, text = found
        (created,) = self._store.events(self._row.id, upto=1)
        (body,) = self._store.events(self._row.id, after=seq - 1, upto=seq)
        state = State(_features_of(self._store, self._row.id))
        try:
            data = json.loads(text)
            bound = (data["format"], data["seq"], data["head"]) == (SNAPSHOT_FORMAT, seq, own)
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
        if state is None or state.seq < self._snapshot_seq + gap:
            return
        text = json.dumps(state.to_data(), separators=(",", ":"))
        self._snapshot_seq, self._snapshot_size = state.seq, len(text)
        # What the caller wants stored is stored: a shortcut that fails must not look like a loss.
        with suppress(LedgerError):
            self._store.keep_snapshot(self._row.id, state.seq, state.head, text)

    def _start_queue(self) -> None:
        self._queue = []
        self._queue_lock = threading.Lock()


def _features_of(store: Store, audit_id: int) -> FeaturesOf:
    def features_of(number: int) -> Sequence[float] | None:
        text = store.features(audit_id, number)
        vector: list[float] | None = None if text is None else json.loads(text)
        return vector

    return features_of
