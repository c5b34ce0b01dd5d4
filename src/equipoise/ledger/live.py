"""An audit that lives for months: many programs ask and tell, nothing is lost or paid twice."""

from __future__ import annotations

import json
import logging
import secrets
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from equipoise._output_files import refuse_overwriting, sqlite_files
from equipoise.errors import EquipoiseError, InvalidInput, LedgerError, require_non_negative
from equipoise.finding import Finding, Interval
from equipoise.history.past import Past
from equipoise.ledger import commands, inputs, state_cache
from equipoise.ledger.commands import AuditCommands, Command, Reply, Scrubbed
from equipoise.ledger.database import driver_errors
from equipoise.ledger.proof import Checkpoint, verify_ledger, write_lines
from equipoise.ledger.settings import Settings, new_settings
from equipoise.ledger.state import AuditState, EvidencePoint, SpendingPoint, replay
from equipoise.ledger.status import Status, describe_difference, good_shares_of, status_of
from equipoise.ledger.store import AuditRow, CacheRow, Store, WriteTransaction
from equipoise.ledger.timestamps import format_timestamp
from equipoise.ledger.verify import GENESIS, Head, PersonRecord, Proof, canonical, digest
from equipoise.ledger.waiting import WaitingGroup
from equipoise.ledger.writer import TransactionWriter
from equipoise.question import Costs, Question

NEVER_CACHED = -(2**53)  # in place of an event's number: the state is stored at once
COMMANDS_OF_A_SINGLE = 10  # a job of more commands is a batch
COMMANDS_PER_COMMIT = 1000  # of several jobs; one that has more is stored whole
MAX_DAYS = 300_000.0  # days; the calendar ends before a million

ReplyOrError = Reply | EquipoiseError
T = TypeVar("T")
log = logging.getLogger("equipoise.ledger")


class EventsLost(LedgerError):
    """The ledger lacks an event that a program has seen: it is older than it was."""


def list_audits(ledger: str) -> list[AuditRow]:
    """Return the audits of a ledger, oldest first.

    Examples
    --------
    >>> import tempfile
    >>> from equipoise import Costs, History, LiveAudit, Question
    >>> counts = {"approved_positive": 6000, "approved_negative": 2000, "denied": 2000}
    >>> past = History.from_cells({"A": counts, "B": counts})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     live = LiveAudit.create(f"{folder}/l.db", "loans", past, Question(), Costs(label=100))
    ...     [row.name for row in list_audits(f"{folder}/l.db")]
    ['loans']
    """
    with closing(Store(ledger)) as store:
        return store.audits()


class LiveAudit(AuditCommands):
    """One audit in a ledger; use :meth:`create` or :meth:`open`.

    Every method may be called from many threads and many processes at once, and repeated after a
    failure: what was carried out before is answered from the ledger and changes nothing. What a
    method returns is on disk.

    Examples
    --------
    >>> from equipoise.history import History
    >>> past = History.from_cells({
    ...     "A": {"approved_positive": 700, "approved_negative": 50, "denied": 250},
    ...     "B": {"approved_positive": 300, "approved_negative": 50, "denied": 650},
    ... })
    >>> live = LiveAudit.create("sqlite://", "loans", past, Question(), Costs(label=100),
    ...                         audit="rs", options={"tau": 40})
    >>> live.ask("p-17", "B", 0).want
    <Want.LABEL: 'LABEL'>
    >>> live.tell("p-17", 1).state
    'REVEALED'
    >>> live.tell("p-17", 1).repeated
    True
    """

    def __init__(
        self, store: Store, row: AuditRow, actor: str, driver: Driver | None = None
    ) -> None:
        self.row = row
        self.actor = actor
        self._store = store
        self._driver = Driver(store, row) if driver is None else driver

    def __repr__(self) -> str:
        return f"<LiveAudit {self.row.name!r}, written to as {self.actor!r}>"

    # -- making and finding -----------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        ledger: str,
        name: str,
        history: Past,
        question: Question,
        costs: Costs,
        *,
        audit: str = "adaptive",
        budget: int | None = None,
        max_in_flight: int | None = None,
        max_in_flight_groups: Mapping[str, int] | None = None,
        lottery: float = 1.0,
        overdue_after: float | None = None,
        stream: str = "everybody",
        currency: str = "",
        decimals: int = 0,
        simulated: bool = False,
        approvals: Sequence[str] = (),
        seed: str | None = None,
        options: Mapping[str, Any] | None = None,
        confirm: bool = False,
        actor: str | None = None,
    ) -> LiveAudit:
        """Begin an audit; see :class:`~equipoise.ledger.settings.Settings` for what is fixed now.

        Parameters
        ----------
        ledger
            A file name (SQLite) or ``postgresql://…``; created if it does not exist.
        costs, budget
            In whole minor units, cents for example.
        seed
            64 hexadecimal digits; the system draws them if left out. The seed stays secret until
            the audit is concluded. Its hash is in the first event, so nobody can replace it.
        confirm
            Begin even if the audit would probably not end. Without it, the forecast is run, and an
            audit is refused if these historical data cannot decide its usual case, or if a group
            is far too rare. The refusal names the groups, and what would help
            (:class:`equipoise.planning.feasibility.NotFeasible`).
        actor
            Who does it, as the caller has made sure; the system's user if left out.
        """
        secret = secrets.token_hex(32) if seed is None else seed
        settings = new_settings(
            name,
            history,
            question,
            costs,
            seed=secret,
            audit=audit,
            budget=budget,
            max_in_flight=max_in_flight,
            max_in_flight_groups=max_in_flight_groups,
            lottery=lottery,
            overdue_after=overdue_after,
            stream=stream,
            currency=currency,
            decimals=decimals,
            simulated=simulated,
            approvals=approvals,
            options=options,
            confirm=confirm,
        )
        return cls.begin(ledger, settings, seed=secret, actor=actor)

    @classmethod
    def begin(
        cls,
        ledger: str,
        settings: Settings,
        *,
        seed: str,
        actor: str | None = None,
        has_verdict: bool | None = None,
    ) -> LiveAudit:
        """Store the first event of an audit with settings that :func:`new_settings` made.

        ``seed`` is the one that the settings hold the hash of. ``has_verdict`` says whether the
        historical data alone give a verdict; if it is left out, they are examined.
        """
        actor_name = inputs.system_user() if actor is None else inputs.name("actor", actor)
        store = Store(ledger, create=True)
        uid = uuid.uuid4().hex
        time = format_timestamp(store.clock_time())
        event = {
            "actor": actor_name, "audit": uid, "data": settings.to_data(), "prev": GENESIS,
            "seq": 1, "time": time, "type": "created",
        }  # fmt: skip
        body = canonical(event)
        # The seed is in the table of audits only; the event has its hash.
        row = AuditRow(
            seq=1,
            hash=digest(body),
            time=time,
            cap=settings.budget,
            uid=uid,
            name=settings.name,
            seed=seed.lower(),
        )
        live = cls(store, store.add_audit(row, body), actor_name)
        if has_verdict is not False:
            live.results([])  # which finds the verdict and stores it
        return live

    @classmethod
    def open(
        cls, ledger: str, name: str, *, actor: str | None = None, timeout: float = 60.0
    ) -> LiveAudit:
        """Return the audit of this name; writes wait ``timeout`` seconds for other writers."""
        actor_name = inputs.system_user() if actor is None else inputs.name("actor", actor)
        store = Store(ledger, timeout=timeout)
        return cls(store, store.audit(name), actor_name)

    def acting_as(self, actor: str) -> LiveAudit:
        """Return the same audit for an actor whom the caller has authenticated."""
        return LiveAudit(self._store, self.row, inputs.name("actor", actor), self._driver)

    def close_ledger(self) -> None:
        """Close the database."""
        self._driver.wait_for_cache()
        self._store.close()

    # -- people -----------------------------------------------------------------------------------

    def overdue(self, *, days: float | None = None) -> list[Reply]:
        """Mark the requests that are older than ``days`` (the audit's ``overdue_after``)."""
        limit = self.settings.overdue_after if days is None else days
        if limit is None:
            raise InvalidInput("'days' is needed: the audit was made without 'overdue_after'")
        require_non_negative("days", limit)
        asked_before = format_timestamp(
            self._store.clock_time() - timedelta(days=min(limit, MAX_DAYS))
        )
        waiting = self.people(states=("RESERVED", "EXECUTED"))
        late = [person for person in waiting if person.asked < asked_before]
        return self.run(commands.MarkOverdue(str(person.person)) for person in late)

    def scrub(self) -> Reply:
        """Rewrite the database's files, so that no copy of an erased person stays in them.

        The answer is ERASED if they are gone, and that is an event; else UNLINKED, with what is
        still there and who must do what in ``why``. It takes as long as the ledger is large, and
        writers wait: do it once after many.
        """
        erased = self._driver.read(lambda state: state.rules.people.erased)
        remaining_copies = self._store.scrub()
        if remaining_copies:
            return Reply("", state="UNLINKED", why=remaining_copies)
        (reply,) = self._driver.run([Scrubbed(erased)], self.actor)
        assert isinstance(reply, Reply)
        return reply

    # -- where it stands --------------------------------------------------------------------------

    @property
    def settings(self) -> Settings:
        """What the audit was created with."""
        return self._driver.read(lambda state: state.settings)

    @property
    def finding(self) -> Finding | None:
        """The answer, None while the audit goes on; carries a warning if the stream drifted."""
        return self.status().finding

    def so_far(self) -> Finding:
        """Return what the evidence supports so far. The audit goes on."""
        return self.finding or self._driver.read(AuditState.so_far)

    def confirm(self) -> None:
        """Replay the chain, so that nothing of what this handle knows rests on the cache.

        A verdict is stored only then. A server does it in the background once it is up.
        """
        self._driver.confirm()

    def catch_up(self, *, wait: bool = True) -> None:
        """Read what others have appended; raise :class:`EventsLost` if what was seen is gone.

        Without ``wait`` nothing is done while another thread uses this handle.
        """
        self._driver.catch_up(wait=wait)

    def look_in_memory(self, look: Callable[[AuditState | None], T]) -> T | None:
        """Return what a look at the state shows; None if another thread uses it just now.

        Nothing is read and nobody waits, so the state may lack what others have just appended.
        ``look`` gets None if no state is in memory.
        """
        return self._driver.look_in_memory(look)

    def let_go(self) -> bool:
        """Forget the state, for the sake of memory; False if another thread uses it just now.

        It is read again when it is needed, and must have all that this handle has seen.
        """
        return self._driver.let_go()

    def status(self) -> Status:
        """Return people, money, evidence and drift as of now.

        A program that has just started may take them from a cache, but never the verdict: see
        :meth:`confirm`.
        """
        status = self._driver.read(status_of)
        if status.waiting:
            status = replace(status, waiting=self.waiting())
        if self._store.is_in_memory:
            return status
        return replace(status, cache_differs_at=self._store.event_of_cache_set_aside(self.row.id))

    def waiting(self) -> tuple[WaitingGroup, ...]:
        """Return the groups whose denied people are wanted and do not arrive, as of now."""
        waiting = self._driver.read(AuditState.waiting_for)
        if not waiting:  # as nearly always, and then it does not matter what time it is
            return ()
        time = format_timestamp(self._store.clock_time())
        return self._driver.read(lambda state: state.waiting_for(time))

    def good_shares(self) -> dict[str, Interval]:
        """Return each group's share of good outcomes among the denied, as far as is known.

        The best guess, and what it comes out as if all unknown outcomes are bad, or good. It is
        no interval that holds the truth: see :meth:`so_far` for those.
        """
        return self._driver.read(good_shares_of)

    def person(self, person: str) -> PersonRecord | None:
        """Return what is stored about a person, or None for an unknown person."""
        return self._store.person(self.row.id, inputs.name("person", person))

    def people(
        self,
        *,
        states: Sequence[str] = (),
        conflicted: bool = False,
        after: int = 0,
        limit: int | None = None,
    ) -> list[PersonRecord]:
        """Return people in order of arrival, in the given states or with conflicting outcomes.

        A correction settles a conflict. ``after`` and ``limit`` give them page by page: those with
        larger numbers, so many.
        """
        states = (states,) if isinstance(states, str) else states
        numbers = (
            sorted(self._driver.read(lambda s: s.rules.people.contradicted)) if conflicted else None
        )
        return self._store.people(self.row.id, states, numbers, after, limit)

    def pending_by_day(self) -> list[tuple[str, str, int]]:
        """Return ``(state, day of the request, how many)`` of requests without an answer."""
        return self._store.open_by_day(self.row.id)

    def evidence_history(self, points: int = 40) -> tuple[EvidencePoint, ...]:
        """Return how the evidence for both answers grew, with outcomes as known now.

        Parameters
        ----------
        points
            At about how many moments. The first is the beginning, the last is now.

        Examples
        --------
        >>> from equipoise import Costs, History, Question
        >>> counts = {"approved_positive": 6000, "approved_negative": 2000, "denied": 2000}
        >>> past = History.from_cells({"A": counts, "B": counts})
        >>> live = LiveAudit.create("sqlite://", "loans", past, Question(epsilon=0.4), Costs())
        >>> live.ask("p-17", "A", 0).state, live.tell("p-17", 1).state
        ('RESERVED', 'REVEALED')
        >>> start, now = live.evidence_history()
        >>> now.answers, now.people, now.for_unfair < now.unfair_needs
        (1, 1, True)
        """
        return self._driver.read(lambda state: state.evidence_history(points), from_chain=True)

    def spending_history(self, points: int = 200) -> tuple[SpendingPoint, ...]:
        """Return what was spent when so many people had arrived, at about so many moments."""
        return self._driver.read(lambda state: state.spending_history(points), from_chain=True)

    # -- proof ------------------------------------------------------------------------------------

    @property
    def seed(self) -> str:
        """The seed, which is secret until the audit is concluded, because draws depend on it."""
        return self.row.seed

    def checkpoint(self) -> Checkpoint:
        """Return the last hash of the chain. Later exports can be proved to extend it."""
        return self._checkpoint(self._store.head(self.row.id))

    def _checkpoint(self, head: Head) -> Checkpoint:
        return Checkpoint(self.row.name, self.row.uid, head.seq, head.hash, head.time)

    def events(self, *, after: int = 0, limit: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield what happened, event by event."""
        upto = inputs.LIMIT if limit is None else after + limit
        yield from map(json.loads, self._store.events(self.row.id, after=after, upto=upto))

    def lines(self, upto: int | None = None) -> Iterator[str]:
        """Yield the export line by line, without line feeds."""
        return self._store.events(self.row.id, upto=inputs.LIMIT if upto is None else upto)

    def export(self, path: str | Path, *, people: str | Path | None = None) -> Checkpoint:
        """Write every event to a file, whole or not at all; return the checkpoint to keep.

        ``people`` names a second file for the key table: pseudonyms, for those who may see them.
        """
        self.refuse_overwriting(path)
        if people is not None:
            self.refuse_overwriting(people)
            refuse_overwriting(people, [path], "the file of events")
        # Head and number of people belong to one moment, whatever others append meanwhile.
        head, arrived = self._driver.read(
            lambda state: (replace(state.rules.head), state.rules.people.arrived)
        )
        write_lines(path, self.lines(head.seq))
        if people is not None:
            keys = (
                canonical({"person": row.number, "pseudonym": row.person, "salt": row.salt})
                for row in self.people(limit=arrived)
                if row.person is not None
            )
            write_lines(people, keys, secret=True)
        return self._checkpoint(head)

    def refuse_overwriting(self, path: str | Path) -> None:
        """Raise :class:`InvalidInput` if a file that is to be written is the ledger itself."""
        if self._store.path is not None:
            refuse_overwriting(path, sqlite_files(self._store.path), "the ledger")

    def verify(self, checkpoints: Sequence[tuple[int, str]] = ()) -> Proof:
        """Check chain, money, tables and statistics as of one moment, writers or not."""
        return verify_ledger(self._store, self.row.id, checkpoints)

    def replay(self) -> Status:
        """Return the status that follows from the events alone, every decision made anew."""
        return status_of(self._driver.replay(strict=True))

    def results(self, commands: Sequence[Command]) -> list[Reply | EquipoiseError]:
        """Carry out checked commands; return, once stored, a result for each."""
        return self._driver.run(commands, self.actor)


# -- carrying out commands ----------------------------------------------------------------------


@dataclass(eq=False)
class _Job:
    commands: Sequence[Command]
    actor: str
    answer: Future[list[ReplyOrError]] = field(default_factory=Future)
    # set when the job has its answer, or when its thread is to serve the next commit
    is_next: threading.Event = field(default_factory=threading.Event)


class Driver:
    """Holds the state and keeps it equal to the ledger.

    Threads that come while one is storing wait, and the next one stores for all of them: one
    ``fsync`` then serves many calls (group commit).
    """

    def __init__(self, store: Store, row: AuditRow) -> None:
        self._store = store
        self._row = row
        self._state: AuditState | None = None
        self._queue: list[_Job] = []
        self._queue_lock = threading.Lock()
        self._is_serving = False  # whether a thread stores, and will pass on the next commit
        self._had_singles = False  # whether the last commit was one of single commands
        # number and hash of the last event that this handle knows of
        self._last_seq = 0
        self._last_hash = ""
        self._uses_cache = True
        self._can_save_cache = True
        self._cached_seq = 0  # the event whose state was taken from the cache or stored there last
        # of the row that this program began with, compared with the chain, or stored itself
        self._known_digest = ""
        self._is_state_cached = False
        self._cache_writer: threading.Thread | None = None

    def run(self, commands: Sequence[Command], actor: str) -> list[ReplyOrError]:
        """Carry out commands; return, once stored, a result for each."""
        self._store.require_own_process()
        job = _Job(commands, actor)
        # The thread that finds none serving leads. The others wait until a leader has served their
        # job, or has left and made one of them the leader.
        with self._queue_lock:
            self._queue.append(job)
            must_wait = self._is_serving
            self._is_serving = True
        leads = not must_wait
        try:
            if must_wait:
                job.is_next.wait()  # until another thread has stored it, or lets this one lead
            leads = not job.answer.done()
            # More than once, if the jobs of another kind have their turn first.
            while not job.answer.done():
                with self._store.turn:
                    self._serve(self._next_jobs())
        finally:
            self._leave(job, leads=leads)
        return job.answer.result()

    def _leave(self, job: _Job, *, leads: bool) -> None:
        """Take a job out of the queue, and let the thread of one that waits lead."""
        with self._queue_lock:
            if job in self._queue:  # the thread was interrupted
                self._queue.remove(job)
                leads = leads or job.is_next.is_set()
            if not leads:
                return
            self._is_serving = bool(self._queue)
            if self._queue:
                self._queue[0].is_next.set()

    def _next_jobs(self) -> list[_Job]:
        """Take the jobs of the next commit from the queue.

        Single commands go first, and after each commit of them one of the batches has its turn. So
        a single command waits for one batch at most, and batches are never kept waiting for good.
        """
        with self._queue_lock:
            singles = [job for job in self._queue if len(job.commands) <= COMMANDS_OF_A_SINGLE]
            batches = [job for job in self._queue if len(job.commands) > COMMANDS_OF_A_SINGLE]
            takes_batches = bool(batches) and (not singles or self._had_singles)
            self._had_singles = not takes_batches
            chosen: list[_Job] = []
            n_commands = 0
            for job in batches if takes_batches else singles:
                n_commands += len(job.commands)
                # The first job is taken whatever its size, or a large one would wait for good.
                if chosen and n_commands > COMMANDS_PER_COMMIT:
                    break
                chosen.append(job)
            for job in chosen:
                self._queue.remove(job)
        return chosen

    def read(self, look: Callable[[AuditState], T], *, from_chain: bool = False) -> T:
        """Look at the state as of the latest event; statistics are rebuilt if it needs them.

        ``from_chain`` asks for a state that does not rest on the cache.
        """
        with self._store.turn:
            if from_chain:
                self._require_chain()
            elif self._state is None:
                self._load_cache()
            try:
                answer = look(self._current(self._store.head(self._row.id)))
            except Exception as error:
                if not self._may_blame_cache(error):
                    raise
                self._require_chain()
                answer = look(self._current(self._store.head(self._row.id)))
            self._save_cache_if_due()
            return answer

    def catch_up(self, *, wait: bool) -> None:
        """Bring the state up to date, unless it is in use and nobody is to wait."""
        if not self._store.turn.acquire(blocking=wait):
            return
        try:
            if self._state is None and self._last_seq:
                # It was let go. What it has seen must be there, and nobody needs more of it now.
                self._require_known(self._store.head(self._row.id))
            else:
                self.read(lambda state: None)
        finally:
            self._store.turn.release()

    def look_in_memory(self, look: Callable[[AuditState | None], T]) -> T | None:
        """Return what a look at the state shows, None if it is in use."""
        if not self._store.turn.acquire(blocking=False):
            return None
        try:
            return look(self._state)
        finally:
            self._store.turn.release()

    def let_go(self) -> bool:
        """Forget the state and say so, unless it is in use."""
        if not self._store.turn.acquire(blocking=False):
            return False
        try:
            self._state = None
            # As in a program that starts. What was seen of the chain is remembered beside it.
            self._uses_cache = True
            self._is_state_cached = False
            return True
        finally:
            self._store.turn.release()

    def confirm(self) -> None:
        """Replay the chain beside the state, and put what it leads to in the state's place."""
        with self._store.turn:
            if self._state is not None and self._state.is_from_chain:
                return
        # Without the turn: others go on with the state from the cache meanwhile.
        replayed = self.replay()
        if not replayed.has_other_edition:
            replayed.check_books()
        with self._store.turn:
            # Another thread may have replayed it meanwhile, and gone on from there.
            if self._state is None or not self._state.is_from_chain:
                self._state = replayed
                self._uses_cache = False
                self._is_state_cached = False

    def replay(self, *, upto: int | None = None, strict: bool = False) -> AuditState:
        """Return the state that follows from the events alone, up to one or all of them.

        A cached state that differs is set aside, so that it does not vanish without a trace.
        """
        row = None
        if not self._store.is_in_memory:
            row = state_cache.read_row(self._store, self._row.id)
        comparison = state_cache.CacheComparison(row, may_be_ahead=upto is not None)
        last_seq = self._store.head(self._row.id).seq if upto is None else upto
        state = AuditState(strict=strict)
        events = self._store.events(self._row.id, upto=last_seq)
        replay(comparison.follow(events, state), state)
        differing = comparison.differing_row(state)
        if differing is not None:
            self._can_save_cache = False
            if not differing.is_set_aside:
                state_cache.set_aside(self._store, self._row.id, differing)
                log.warning("%s", describe_difference(differing.seq))
        elif row is not None and comparison.is_same:
            self._known_digest = row.digest
        return state

    def _serve(self, jobs: list[_Job]) -> None:
        """Answer jobs in one transaction; if it fails, all of them may be repeated."""
        try:
            try:
                answers = self._store_results(jobs)
            except Exception as error:
                if not self._may_blame_cache(error):
                    raise
                self._require_chain()
                answers = self._store_results(jobs)
        except BaseException as error:
            self._state = None  # it may have seen what was not stored
            for job in jobs:
                job.answer.set_exception(error)
        else:
            for job, job_answers in zip(jobs, answers, strict=True):
                job.answer.set_result(job_answers)
        for job in jobs:
            job.is_next.set()

    def _store_results(self, jobs: list[_Job]) -> list[list[ReplyOrError]]:
        """Carry out jobs in one transaction; return the answers of each job."""
        # What takes long is done before others have to wait for their turn to write.
        self.read(AuditState.check_books)
        with self._store.write(self._row.id) as transaction:
            state = self._current(transaction.head)
            batch = [command for job in jobs for command in job.commands]
            seed = bytes.fromhex(self._row.seed)
            writer = TransactionWriter(state, seed, transaction, batch)
            answers = self._write(jobs, state, writer, transaction)
            self._append(transaction, writer)
        self._after_storing()
        return answers

    def _write(
        self,
        jobs: list[_Job],
        state: AuditState,
        writer: TransactionWriter,
        transaction: WriteTransaction,
    ) -> list[list[ReplyOrError]]:
        """Let the writer make the events of all jobs; return the answers of each job."""
        event_time = format_timestamp(transaction.clock_time)
        answers = [
            [writer.run(command, job.actor, event_time) for command in job.commands] for job in jobs
        ]
        writer.record_verdict(jobs[-1].actor, event_time)
        state.check_books()
        return answers

    def _append(self, transaction: WriteTransaction, writer: TransactionWriter) -> None:
        if writer.events:
            people = list(writer.touched.values())
            transaction.append(writer.rules.head, writer.events, writer.keys, people)

    def _after_storing(self) -> None:
        state = self._state
        assert state is not None
        state.rules.people.records = None  # the next writer reads the people of its own commands
        self._remember(state.rules.head)
        self._save_cache_if_due()

    # -- the cache --------------------------------------------------------------------------------

    def _load_cache(self) -> None:
        """Take the state from the cache, if there is one that fits."""
        if not self._uses_cache or self._store.is_in_memory:
            return
        row = state_cache.read_row(self._store, self._row.id)
        self._state = state_cache.load(self._store, self._row.id, self._row.uid, row)
        self._is_state_cached = self._state is not None
        if self._state is not None and row is not None:
            self._cached_seq = row.seq
            self._known_digest = row.digest

    def _may_blame_cache(self, error: Exception) -> bool:
        """Whether a failure may come from the cache, so that the events should be replayed."""
        is_of_database = isinstance(error.__cause__, driver_errors())
        return self._is_state_cached and not is_of_database

    def _require_chain(self) -> None:
        """Forget a state that rests on the cache, and use the cache no more."""
        self._uses_cache = False
        if self._is_state_cached:
            self._state = None
            self._cached_seq = NEVER_CACHED  # what the events lead to is stored in its place
        self._is_state_cached = False

    def _save_cache_if_due(self) -> None:
        """Let the state be stored in the background if many events came since the last time."""
        state = self._state
        if state is None or self._store.is_in_memory or not self._can_save_cache:
            return
        if abs(state.rules.head.seq - self._cached_seq) < state_cache.EVENTS_BEFORE_CACHING:
            return
        self._cached_seq = state.rules.head.seq
        # The state is read now, since it may change. Only the storing is left to the background.
        row = state_cache.cache_row(state)
        self.wait_for_cache()
        self._cache_writer = threading.Thread(target=self._save_cache, args=(row,))
        self._cache_writer.start()

    def wait_for_cache(self) -> None:
        """Wait until the state is stored that is being stored in the background."""
        if self._cache_writer is not None:
            self._cache_writer.join()
            self._cache_writer = None

    def _save_cache(self, row: CacheRow) -> None:
        try:
            with closing(Store(self._store.url, timeout=state_cache.WAIT_SECONDS)) as store:
                stored = state_cache.read_row(store, self._row.id)
                if self._may_replace(stored, row):
                    store.save_cached_state(self._row.id, row, stored)
                    self._known_digest = row.digest
        except (LedgerError, OSError):
            self._can_save_cache = False  # no rights to, or no space: all goes on without it

    def _may_replace(self, stored: CacheRow | None, row: CacheRow) -> bool:
        """Whether a state may take the place of the one that is stored.

        One that this program does not know is compared first: a forged one must not vanish.
        """
        if stored is None or stored.digest == self._known_digest:
            return True
        if stored.is_set_aside:
            self._can_save_cache = False
            return False
        if not state_cache.is_bound(stored, self._row.uid):
            return True
        # Another program keeps the cache up to date. To compare each of its states would take long.
        if abs(row.seq - stored.seq) < 2 * state_cache.EVENTS_BEFORE_CACHING:
            self._cached_seq = stored.seq
            return False
        self.replay()
        return stored.digest == self._known_digest

    # -- the state --------------------------------------------------------------------------------

    def _current(self, head: Head) -> AuditState:
        """Return the state at this head: what is in memory, and what others have appended."""
        self._require_known(head)
        state = self._state or self.replay(upto=head.seq)
        self._state = None  # unless all goes well
        after = state.rules.head.seq
        replay(self._store.events(self._row.id, after=after, upto=head.seq), state)
        if state.rules.head != head:
            raise LedgerError(
                f"the events of {self._row.name!r} do not lead to its head: damaged; run verify"
            )
        self._state = state
        self._remember(head)
        return state

    def _remember(self, head: Head) -> None:
        self._last_seq = head.seq
        self._last_hash = head.hash

    def _require_known(self, head: Head) -> None:
        """Refuse a ledger in which events are gone that this handle has seen."""
        last_seq = self._last_seq
        stored_hash = ""
        difference = f"ends at event {head.seq}"
        if head.seq == last_seq:
            stored_hash = head.hash
        elif head.seq > last_seq:  # others went on, from what this handle has seen or from less
            bodies = self._store.events(self._row.id, after=max(0, last_seq - 1), upto=last_seq)
            stored_hash = "".join(map(digest, bodies))
            difference = f"has another event {last_seq}"
        if stored_hash != self._last_hash:
            raise EventsLost(
                f"this program has seen event {last_seq} of {self._row.name!r} "
                f"({self._last_hash[:12]}…) and the ledger now {difference} "
                f"({(stored_hash or head.hash)[:12]}…): events are gone, after "
                "a failover to a replica that was behind, or from an older backup. Nothing was "
                "stored. Bring back the database that has them; if it is lost for good, write "
                "down what is missing and open the audit anew (LiveAudit.open, or restart)"
            )
