"""Carries out commands: catch up with other programs, decide, store, and only then answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TypeVar

from equipoise.errors import EquipoiseError, LedgerError
from equipoise.ledger.commands import Approve, Command, Reply, Scrubbed, person_of
from equipoise.ledger.state import AuditState, replay
from equipoise.ledger.store import AuditRow, Store, WriteTransaction
from equipoise.ledger.verify import Event, Head, digest
from equipoise.ledger.writer import TransactionWriter, stamp

__all__ = ["Driver"]

Result = Reply | EquipoiseError
Deed = Command | Scrubbed
T = TypeVar("T")


@dataclass
class _Job:
    commands: Sequence[Deed]
    actor: str
    answer: Future[list[Result]] = field(default_factory=Future)


class Driver:
    """Holds the state and keeps it equal to the ledger.

    Threads that come while one is storing wait, and the next one stores for all of them: one
    ``fsync`` then serves many calls (group commit).
    """

    def __init__(self, store: Store, row: AuditRow) -> None:
        self._store = store
        self._row = row
        self._state: AuditState | None = None
        self._queue: SimpleQueue[_Job] = SimpleQueue()
        self._seen = (0, "")  # the last event that this handle knows of

    def run(self, commands: Sequence[Deed], actor: str) -> list[Result]:
        """Carry out commands; return, once stored, a result for each."""
        mine = _Job(commands, actor)
        self._queue.put(mine)
        with self._store.turn:
            if not mine.answer.done():
                self._serve([self._queue.get() for _ in range(self._queue.qsize())])
        return mine.answer.result()

    def read(self, look: Callable[[AuditState], T]) -> T:
        """Look at the state as of the latest event; statistics are rebuilt if it needs them."""
        with self._store.turn:
            return look(self._current(self._store.head(self._row.id)))

    def replay(self, *, strict: bool = False) -> AuditState:
        """Return the state that follows from the events alone."""
        head = self._store.head(self._row.id)
        return replay(self._store.events(self._row.id, upto=head.seq), AuditState(strict=strict))

    def _serve(self, jobs: list[_Job]) -> None:
        """Answer jobs in one transaction; if it fails, all of them may be repeated."""
        try:
            # What takes long is done before others have to wait for their turn to write.
            self.read(AuditState.check_books)
            with self._store.write(self._row.id) as turn:
                state, now = self._current(turn.head), stamp(turn.now)
                writer = self._writer(state, turn, [c for job in jobs for c in job.commands])
                results = [
                    [writer.run(command, job.actor, now) for command in job.commands]
                    for job in jobs
                ]
                writer.record_verdict(jobs[-1].actor, now)
                state.check_books()
                if writer.events:
                    people = list(writer.touched.values())
                    turn.append(state.books.head, writer.events, writer.keys, people)
            state.books.people = None
            self._seen = (state.books.head.seq, state.books.head.hash)
        except BaseException as error:
            self._state = None  # it may have seen what was not stored
            for job in jobs:
                job.answer.set_exception(error)
        else:
            for job, found in zip(jobs, results, strict=True):
                job.answer.set_result(found)

    def _writer(
        self, state: AuditState, turn: WriteTransaction, todo: Sequence[Deed]
    ) -> TransactionWriter:
        """Return a writer who has at hand whom the commands are about."""
        keyed, proposals = turn.events_of([c.key for c in todo if c.key]), state.books.proposals
        approved = [c.proposal for c in todo if isinstance(c, Approve)]
        proposed = ({"data": proposals[p]["arguments"]} for p in approved if p in proposals)
        names = [name for command in todo if (name := person_of(command))]
        people = turn.people(names, [*_people_of(proposed), *_people_of(keyed.values())])
        seed = bytes.fromhex(self._row.seed)
        return TransactionWriter(state, seed=seed, people=people, keyed_events=keyed)

    # -- the state --------------------------------------------------------------------------------

    def _current(self, head: Head) -> AuditState:
        """Return the state at this head: what is in memory, and what others have appended."""
        self._require_known(head)
        state, self._state = self._state or AuditState(), None
        after = state.books.head.seq
        replay(self._store.events(self._row.id, after=after, upto=head.seq), state)
        if state.books.head != head:
            raise LedgerError(
                f"the events of {self._row.name!r} do not lead to its head: damaged; run verify"
            )
        self._state, self._seen = state, (head.seq, head.hash)
        return state

    def _require_known(self, head: Head) -> None:
        """Refuse a ledger in which events are gone that this handle has seen."""
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


def _people_of(events: Iterable[Event]) -> list[int]:
    about = (event["data"].get("arguments", event["data"]) for event in events)
    return [own["person"] for own in about if "person" in own]
