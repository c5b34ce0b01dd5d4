"""Carries out commands: catch up with other programs, decide, store, and only then answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from equipoise.errors import EquipoiseError, LedgerError
from equipoise.ledger.batch import Batch
from equipoise.ledger.commands import Command, Reply
from equipoise.ledger.projection import Projection, answers_revised, replay
from equipoise.ledger.rows import Head
from equipoise.ledger.snapshots import fingerprint, made_by, pack, unpack
from equipoise.ledger.store import AuditRow, Store
from equipoise.ledger.trace import EvidencePoint, trace
from equipoise.ledger.verify import Books, Broken, Summary, verify

__all__ = ["Driver"]

SNAPSHOT_EVERY = 1000  # events

Result = Reply | EquipoiseError
T = TypeVar("T")


@dataclass
class _Job:
    commands: list[Command]
    now: datetime
    results: list[Result] = field(default_factory=list)
    error: BaseException | None = None
    done: bool = False


class Driver:
    """Holds the projection and keeps it equal to the ledger.

    Threads that come while one is storing wait, and the next one stores for all of them: one
    ``fsync`` then serves many calls (group commit).
    """

    def __init__(self, store: Store, row: AuditRow) -> None:
        self._store = store
        self._row = row
        self._projection: Projection | None = None
        self._snapshot_seq = 0
        self._snapshot_size = 0  # bytes
        self._turn = threading.RLock()
        self._queue: list[_Job] = []
        self._queue_lock = threading.Lock()

    def run(self, commands: list[Command], now: datetime) -> list[Result]:
        """Carry out commands in one transaction; return, once stored, a result for each."""
        job = _Job(commands, now)
        with self._queue_lock:
            self._queue.append(job)
        with self._turn:
            if not job.done:
                with self._queue_lock:
                    jobs, self._queue = self._queue, []
                self._serve(jobs)
        if job.error is not None:
            raise job.error
        return job.results

    def read(self, look: Callable[[Projection], T]) -> T:
        """Look at the projection as of the latest event."""
        with self._turn:
            return look(self._current(self._store.head(self._row.id)))

    def replay(self, head: Head | None = None, *, strict: bool = False) -> Projection:
        """Return the projection that follows from the events alone, all of them by default."""
        head = self._store.head(self._row.id) if head is None else head
        answers = answers_revised(self._bodies(head)) if head.revised else {}
        start = Projection(answers, head.seq, strict=strict)
        return replay(self._bodies(head), start=start, features_of=self._features_of)

    def trace(self, points: int) -> tuple[EvidencePoint, ...]:
        """Replay with about so many looks at the evidence on the way."""
        head = self._store.head(self._row.id)
        answered = self.read(lambda p: sum(g.answered for g in p.groups.values()))
        answers = answers_revised(self._bodies(head)) if head.revised else {}
        every = max(1, answered // points)
        start = Projection(answers, head.seq)
        return trace(self._bodies(head), start, every, self._features_of)

    def verify(self, lines: Iterable[bytes], checkpoints: Sequence[tuple[int, str]]) -> Summary:
        """Check everything that is stored against the events; raise at the first difference."""
        with self._turn:
            head, books = self._store.head(self._row.id), Books(self._row.seed)
            try:
                summary = verify(lines, head=head.hash, checkpoints=checkpoints, books=books)
            except Broken as error:
                raise LedgerError(f"the ledger is broken: {error}") from error
            balance = (head.spent, head.reserved, head.overrun, head.cap)
            _same("balance", balance, _money(summary))
            for row in self._store.people(self._row.id):
                person = books.people.pop(row.person, None)
                found = (row.group_name, row.decision, row.want, row.state, row.hold, row.paid)
                right = person and (
                    *(person.group, person.decision, person.want, person.state),
                    *(person.hold, person.paid),
                )
                _same(f"person {row.person!r}", found, right)
                _same(f"outcome of {row.person!r}", row.outcome, person and person.outcome)
            _same("number of people missing", len(books.people), 0)
            if not self._current(head).erased:
                again = self.replay(head, strict=True)
                _same("money", (again.spent, again.reserved, again.overrun, head.cap), balance)
                _same("state in memory", fingerprint(self._current(head)), fingerprint(again))
            return summary

    # -- one transaction --------------------------------------------------------------------------

    def _serve(self, jobs: list[_Job]) -> None:
        everything = [command for job in jobs for command in job.commands]
        try:
            results = self._transact(everything, jobs[0].now)
        except BaseException as error:
            for job in jobs:
                job.error, job.done = error, True
            return
        for job in jobs:
            job.results, results = results[: len(job.commands)], results[len(job.commands) :]
            job.done = True

    def _transact(self, commands: list[Command], now: datetime) -> list[Result]:
        store, row = self._store, self._row
        if self._projection is None:  # a long replay must not hold up other writers
            self._current(store.head(row.id))
        try:
            with store.write(row.id) as turn:
                projection = self._current(turn.head)
                people = turn.people([c.person for c in commands])
                batch = Batch(
                    projection,
                    turn.head,
                    people,
                    uid=row.uid,
                    seed=bytes.fromhex(row.seed),
                    now=now,
                )
                results = [batch.run(command) for command in commands]
                batch.record_verdict()
                projection.check_books()
                if batch.events:
                    turn.append(batch.head, batch.events, batch.new_people, batch.changed_people)
                if batch.vectors:
                    turn.add_features(batch.vectors)
                if batch.erase:
                    turn.erase_features()
        except BaseException:
            self._projection = None  # it may have seen what was not stored
            raise
        if projection.stale:
            self._projection = None
            self._transact([], now)  # records the verdict that the revised answers support
        self._keep_snapshot()
        return results

    def _current(self, head: Head) -> Projection:
        """Return the projection at this head, made from a snapshot or brought up to date."""
        projection = self._projection
        if projection is None or projection.seq > head.seq:
            projection = self._load(head)
        if projection.seq < head.seq:
            bodies = self._store.events(self._row.id, after=projection.seq, upto=head.seq)
            replay(bodies, start=projection, features_of=self._features_of)
        if projection.stale:
            projection = self.replay(head)
        if (projection.seq, projection.head) != (head.seq, head.hash):
            raise LedgerError(f"the events of {self._row.name!r} do not lead to its head: damaged")
        self._projection = projection
        return projection

    def _load(self, head: Head) -> Projection:
        found = self._store.snapshot(
            self._row.id, software=made_by(), since=max(head.revised, 1), upto=head.seq
        )
        loaded = None if found is None else unpack(found[1], found[2])
        if loaded is None:
            return self.replay(head)
        self._snapshot_seq = loaded.seq
        return loaded

    def _keep_snapshot(self) -> None:
        projection = self._projection
        if projection is None:
            return
        # A snapshot costs as much as it holds, so large ones are made less often.
        gap = max(SNAPSHOT_EVERY, projection.open_requests, self._snapshot_size // 100)
        if projection.seq < self._snapshot_seq + gap:
            return
        self._snapshot_seq = projection.seq
        digest, state = pack(projection)
        self._snapshot_size = len(state)
        # What the caller wants stored is stored: a shortcut that fails must not look like a loss.
        with suppress(LedgerError):
            self._store.add_snapshot(
                self._row.id, projection.seq, software=made_by(), digest=digest, state=state
            )

    def _bodies(self, head: Head) -> Iterable[tuple[str, str]]:
        return self._store.events(self._row.id, upto=head.seq)

    def _features_of(self, person: str) -> Sequence[float] | None:
        text = self._store.features(self._row.id, person)
        vector: list[float] | None = None if text is None else json.loads(text)
        return vector


def _money(summary: Summary) -> tuple[int, int, int, int | None]:
    return summary.spent, summary.reserved, summary.overrun, summary.cap


def _same(what: str, found: object, right: object) -> None:
    if found != right:
        raise LedgerError(f"{what} is stored as {found!r}; the events say {right!r}")
