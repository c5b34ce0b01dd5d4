"""An audit that lives for months: many programs ask and tell, nothing is lost or paid twice."""

from __future__ import annotations

import hashlib
import json
import secrets
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from equipoise._version import __version__
from equipoise.errors import EquipoiseError, InvalidInput, require_non_negative
from equipoise.evidence import EDITION
from equipoise.finding import Finding, Interval
from equipoise.history.past import Past, require_past
from equipoise.ledger import commands as do
from equipoise.ledger import inputs
from equipoise.ledger.commands import Command, Reply, Verbs
from equipoise.ledger.driver import Driver
from equipoise.ledger.proof import Checkpoint, verify_ledger, write_lines
from equipoise.ledger.settings import Settings, rehearse
from equipoise.ledger.state import AuditState, EvidencePoint
from equipoise.ledger.status import Status, good_shares_of, status_of
from equipoise.ledger.store import AuditRow, Store
from equipoise.ledger.verify import GENESIS, PersonRecord, Proof, canonical, digest
from equipoise.ledger.writer import stamp
from equipoise.question import Costs, Question, require_asked

__all__ = ["LiveAudit", "list_audits"]

PAGE = 1000  # keys read at once
LONG_AGO = 300_000.0  # days; the calendar ends before a million


def list_audits(ledger: str) -> list[AuditRow]:
    """Return the audits of a ledger, oldest first.

    Examples
    --------
    >>> import tempfile
    >>> from equipoise import Costs, History, LiveAudit, Question
    >>> counts = {"approved_positive": 60, "approved_negative": 20, "denied": 20}
    >>> past = History.from_cells({"A": counts, "B": counts})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     live = LiveAudit.create(f"{folder}/l.db", "loans", past, Question(), Costs(label=100))
    ...     [row.name for row in list_audits(f"{folder}/l.db")]
    ['loans']
    """
    store = Store(ledger)
    try:
        return store.audits()
    finally:
        store.close()


class LiveAudit(Verbs):
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
        actor: str | None = None,
    ) -> LiveAudit:
        """Begin an audit; see :class:`~equipoise.ledger.settings.Settings` for what is fixed now.

        Parameters
        ----------
        ledger
            A file name (SQLite) or ``postgresql://…``; made if it does not exist.
        costs, budget
            In whole minor units, cents for example.
        seed
            64 hexadecimal digits; drawn from the system if left out. It stays secret until the
            audit's final report, its hash is in the first event.
        actor
            Who does it, as the caller has made sure; the system's user if left out.
        """
        who = inputs.system_user() if actor is None else inputs.name("actor", actor)
        secret = secrets.token_hex(32) if seed is None else _checked_seed(seed)
        require_past(history)
        require_asked(question, costs)
        settings = Settings(
            name=name,
            audit=audit,
            question=question,
            costs=costs,
            past=history,
            seed_hash=hashlib.sha256(bytes.fromhex(secret)).hexdigest(),
            software=__version__,
            edition=EDITION,
            budget=None if budget is None else inputs.whole("budget", budget),
            max_in_flight=max_in_flight,
            max_in_flight_groups=max_in_flight_groups or {},
            lottery=lottery,
            overdue_after=overdue_after,
            stream=stream,
            currency=currency,
            decimals=decimals,
            simulated=simulated,
            approvals=tuple(dict.fromkeys(approvals)),
            options=options or {},
            coding={} if getattr(history, "coding", None) is None else history.coding.to_dict(),  # type: ignore[attr-defined]
        )
        _ = settings.group_names  # refuses names that would be one
        data = settings.to_data()
        rehearse(settings)
        store = Store(ledger, create=True)
        uid, time = uuid.uuid4().hex, stamp(store.now())
        event = {"actor": who, "audit": uid, "data": data, "prev": GENESIS, "seq": 1}
        body = canonical({**event, "time": time, "type": "created"})
        row = AuditRow(
            seq=1,
            hash=digest(body),
            time=time,
            cap=settings.budget,
            uid=uid,
            name=settings.name,
            seed=secret,
        )
        row = store.add_audit(row, body)
        live = cls(store, row, who)
        live.results([])  # past data alone may give the verdict
        return live

    @classmethod
    def open(
        cls,
        ledger: str,
        name: str,
        *,
        actor: str | None = None,
        timeout: float = 60.0,
    ) -> LiveAudit:
        """Return the audit of this name; writes wait ``timeout`` seconds for other writers."""
        who = inputs.system_user() if actor is None else inputs.name("actor", actor)
        store = Store(ledger, timeout=timeout)
        return cls(store, store.audit(name), who)

    def acting_as(self, actor: str) -> LiveAudit:
        """Return the same audit in the hands of somebody whom the caller has authenticated."""
        who = inputs.name("actor", actor)
        return LiveAudit(self._store, self.row, who, self._driver)

    def close_ledger(self) -> None:
        """Let go of the database."""
        self._store.close()

    # -- people -----------------------------------------------------------------------------------

    def overdue(self, *, days: float | None = None) -> list[Reply]:
        """Mark the requests that are older than ``days`` (the audit's ``overdue_after``)."""
        limit = self.settings.overdue_after if days is None else days
        if limit is None:
            raise InvalidInput("'days' is needed: the audit was made without 'overdue_after'")
        require_non_negative("days", limit)
        before = stamp(self._store.now() - timedelta(days=min(limit, LONG_AGO)))
        open_requests = self._store.people(self.row.id, states=("RESERVED", "EXECUTED"))
        late = [
            do.MarkOverdue(row.person)
            for row in open_requests
            if row.person is not None and row.asked < before
        ]
        return self.run(late)

    def scrub(self) -> Reply:
        """Rewrite the database's files, so that no copy of anybody who was erased stays in them.

        The answer is ERASED if they are gone, and that is an event; else UNLINKED, with what is
        still there and who must do what in ``why``. It takes as long as the ledger is large, and
        writers wait: do it once after many.
        """
        erased = self._driver.read(lambda state: state.books.erased)
        if still_there := self._store.scrub():
            return Reply("", state="UNLINKED", why=still_there)
        scrubbed = [do.Scrubbed(erased)]
        (reply,) = self._driver.run(scrubbed, self.actor)
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
        """Return what the evidence would support if nobody else came; the audit goes on."""
        return self.finding or self._driver.read(_so_far)

    def status(self) -> Status:
        """Return people, money, evidence and drift as of now."""
        return self._driver.read(status_of)

    def good_shares(self) -> dict[str, Interval]:
        """Return each group's share of good outcomes among the denied, as far as is known.

        The best guess, and what it comes out as if all unknown outcomes are bad, or good. It is
        no interval that holds the truth: see :meth:`so_far` for those.
        """
        return self._driver.read(good_shares_of)

    def person(self, person: str) -> PersonRecord | None:
        """Return what is stored about a person, None if nobody asked about them."""
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

        ``after`` and ``limit`` give them page by page: those with larger numbers, so many.
        """
        states = (states,) if isinstance(states, str) else states
        return self._store.people(
            self.row.id, states=states, conflicted=conflicted, after=after, limit=limit
        )

    def pending_by_day(self) -> list[tuple[str, str, int]]:
        """Return ``(state, day of the request, how many)`` of requests without an answer."""
        return self._store.open_by_day(self.row.id)

    def trace(self, points: int = 40) -> tuple[EvidencePoint, ...]:
        """Return how the evidence grew, at about so many moments, with answers as known now."""
        return self._driver.read(lambda state: state.trace(points))

    # -- proof ------------------------------------------------------------------------------------

    @property
    def seed(self) -> str:
        """The seed; secret until the final report."""
        return self.row.seed

    def checkpoint(self) -> Checkpoint:
        """Return the chain's present end, to hand out; later exports can be proved to extend it."""
        head = self._store.head(self.row.id)
        return Checkpoint(self.row.name, self.row.uid, head.seq, head.hash, head.time)

    def events(self, *, after: int = 0, limit: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield what happened, event by event."""
        upto = self._store.head(self.row.id).seq
        upto = upto if limit is None else min(upto, after + limit)
        yield from map(json.loads, self._store.events(self.row.id, after=after, upto=upto))

    def lines(self, upto: int | None = None) -> Iterator[str]:
        """Yield the export line by line, without line feeds."""
        upto = self._store.head(self.row.id).seq if upto is None else upto
        return self._store.events(self.row.id, upto=upto)

    def export(self, path: str | Path, *, people: str | Path | None = None) -> Checkpoint:
        """Write every event to a file, whole or not at all; return the checkpoint to keep.

        ``people`` names a second file for the key table: pseudonyms, for those who may see them.
        """
        checkpoint = self.checkpoint()
        write_lines(path, self.lines(checkpoint.seq))
        if people is not None:
            with Path(path).open("rb") as file:
                asked = sum(b'"type":"asked"' in line for line in file)
            write_lines(people, self._keys(asked), secret=True)
        return checkpoint

    def verify(self, checkpoints: Sequence[tuple[int, str]] = ()) -> Proof:
        """Check chain, money, tables and statistics as of one moment, writers or not."""
        return verify_ledger(self._store, self.row.id, checkpoints)

    def replay(self) -> Status:
        """Return the status that follows from the events alone, every decision made anew."""
        return status_of(self._driver.replay(strict=True))

    def _keys(self, upto: int) -> Iterator[str]:
        after = 0
        while after < upto and (rows := self.people(after=after, limit=min(PAGE, upto - after))):
            for row in rows:
                if row.person is not None:
                    key = {"person": row.number, "pseudonym": row.person, "salt": row.salt}
                    yield canonical(key)
            after = rows[-1].number

    def results(self, commands: Sequence[Command]) -> list[Reply | EquipoiseError]:
        """Carry out checked commands; return, once stored, a result for each."""
        return self._driver.run(commands, self.actor)


def _so_far(state: AuditState) -> Finding:
    head, settings = state.books.head, state.settings
    return replace(
        state.audit.so_far("the audit goes on"),
        cost=float(head.spent + head.overrun),
        currency=settings.currency,
        decimals=settings.decimals,
    )


def _checked_seed(seed: str) -> str:
    try:
        raw = bytes.fromhex(seed)
    except (TypeError, ValueError):
        raw = b""
    if len(raw) != 32:
        raise InvalidInput(f"'seed' must be 64 hexadecimal digits; got {seed!r}")
    return raw.hex()
