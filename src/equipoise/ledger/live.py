"""An audit that lives for months: many programs ask and tell, nothing is lost or paid twice."""

from __future__ import annotations

import hashlib
import secrets
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from equipoise._version import __version__
from equipoise.assist import Assist
from equipoise.errors import EquipoiseError, InvalidInput, require_non_negative
from equipoise.finding import Finding, Interval
from equipoise.history.past import Past, require_past
from equipoise.ledger import commands as do
from equipoise.ledger import inputs
from equipoise.ledger.commands import Command, Reply
from equipoise.ledger.driver import Driver
from equipoise.ledger.memory import EvidencePoint
from equipoise.ledger.pen import stamp
from equipoise.ledger.proofs import Proofs
from equipoise.ledger.schema import PersonRow
from equipoise.ledger.settings import Settings, rehearse
from equipoise.ledger.status import Status, good_shares_of, status_of
from equipoise.ledger.store import AuditRow, Store
from equipoise.ledger.verbs import Verbs
from equipoise.ledger.verify import GENESIS, canonical, digest
from equipoise.question import Costs, Question, require_asked

__all__ = ["LiveAudit", "list_audits"]

LONG_AGO = 300_000.0  # days; the calendar ends before a million

Clock = Callable[[], datetime]


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


class LiveAudit(Proofs, Verbs):
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
        self, store: Store, row: AuditRow, clock: Clock, actor: str, driver: Driver | None = None
    ) -> None:
        super().__init__(store, row, Driver(store, row) if driver is None else driver)
        self.actor = actor
        self._clock = clock

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
        clock_skew: float = 300.0,
        seed: str | None = None,
        options: Mapping[str, Any] | None = None,
        actor: str | None = None,
        clock: Clock | None = None,
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
        now = clock or (lambda: datetime.now(UTC))
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
            clock_skew=clock_skew,
            options=_plain_options(options or {}),
            coding={} if getattr(history, "coding", None) is None else history.coding.to_dict(),  # type: ignore[attr-defined]
        )
        _ = settings.group_names  # refuses names that would be one
        data = settings.to_data()
        rehearse(settings)
        uid, time = uuid.uuid4().hex, stamp(now())
        event = {"actor": who, "audit": uid, "data": data, "prev": GENESIS, "seq": 1}
        body = _canonical({**event, "time": time, "type": "created"})
        store = Store(ledger, create=True)
        row = store.add_audit(
            uid=uid,
            name=settings.name,
            seed=secret,
            cap=settings.budget,
            time=time,
            own=digest(body),
            body=body,
        )
        live = cls(store, row, now, who)
        live.results([])  # past data alone may give the verdict
        return live

    @classmethod
    def open(
        cls,
        ledger: str,
        name: str,
        *,
        actor: str | None = None,
        clock: Clock | None = None,
        timeout: float = 60.0,
    ) -> LiveAudit:
        """Return the audit of this name; writes wait ``timeout`` seconds for other writers."""
        who = inputs.system_user() if actor is None else inputs.name("actor", actor)
        store = Store(ledger, timeout=timeout)
        return cls(store, store.audit(name), clock or (lambda: datetime.now(UTC)), who)

    def acting_as(self, actor: str) -> LiveAudit:
        """Return the same audit in the hands of somebody whom the caller has authenticated."""
        who = inputs.name("actor", actor)
        return LiveAudit(self._store, self.row, self._clock, who, self._driver)

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
        before = stamp(self._clock() - timedelta(days=min(limit, LONG_AGO)))
        open_requests = self._store.people(self.row.id, states=("RESERVED", "EXECUTED"))
        late = [
            do.MarkOverdue(row.person)
            for row in open_requests
            if row.person is not None and row.asked < before
        ]
        return self.run(late)

    def erase(self, person: str, *, scrub: bool = True) -> Reply:
        """Forget a person: pseudonym, key and features are gone, chain and money stay provable.

        Nothing is left that could tell whether somebody was erased before or never known, so a
        name that nobody has is answered as ``repeated``: look there for a mistyped one.

        ``scrub`` also rewrites the database's files, so that no copy stays in unused space; do it
        once after many.
        """
        reply = self.do(do.Erase(person))
        if scrub and reply.state == "ERASED":
            self.scrub()
        return reply

    def scrub(self) -> None:
        """Rewrite the database's files, so that no copy of what was erased stays in them."""
        self._store.scrub()

    # -- the audit --------------------------------------------------------------------------------

    def approve(self, proposal: int, *, key: str = "") -> Reply:
        """Carry out what somebody else proposed, where the audit asks for a second person."""
        reply = super().approve(proposal, key=key)
        if reply.state == "ERASED":
            self.scrub()
        return reply

    def settle(self, work: Sequence[tuple[str, Command]]) -> list[Reply | EquipoiseError]:
        """Carry out what several actors want in one commit; each gets a reply, or why not.

        Examples
        --------
        >>> from equipoise.worlds import CellWorld
        >>> past = CellWorld.from_shares({"A": (0.7, 0.05, 0.25, 0.5), "B": (0.3, 0.05, 0.65, 0.5)})
        >>> live = LiveAudit.create("sqlite://", "loans", past.past(), Question(), Costs(),
        ...                         audit="rs", options={"tau": 40})
        >>> anna, ben = live.settle([("anna", do.Ask("p1", "A", 0)), ("ben", do.Execute("p2"))])
        >>> anna.state, str(ben)
        ('RESERVED', "person 'p2' is unknown to audit 'loans': nobody has asked about them yet")
        """
        found: list[Reply | EquipoiseError | None] = []
        by_actor: dict[str, list[tuple[int, Command]]] = {}
        for at, (actor, given) in enumerate(work):
            command = do.checked_or_refused(given)
            found.append(command if isinstance(command, EquipoiseError) else None)
            if not isinstance(command, EquipoiseError):
                by_actor.setdefault(actor, []).append((at, command))
        jobs = [([c for _, c in own], actor) for actor, own in by_actor.items()]
        done = self._driver.run_together(jobs, self._clock())
        for own, (results, error) in zip(by_actor.values(), done, strict=True):
            if error is not None and not isinstance(error, EquipoiseError):
                raise error
            for index, (at, _) in enumerate(own):
                found[at] = results[index] if error is None else error
        return [one for one in found if one is not None]

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
        return self.finding or self._driver.read(
            lambda state: replace(
                state.memory.concluded("the audit goes on"),
                cost=float(state.spent + state.overrun),
                currency=state.settings.currency,
                decimals=state.settings.decimals,
            )
        )

    def status(self) -> Status:
        """Return people, money, evidence and drift as of now."""
        return self._driver.read(status_of)

    def good_shares(self) -> dict[str, Interval]:
        """Return each group's share of good outcomes among the denied, as far as is known.

        The best guess, and what it comes out as if all unknown outcomes are bad, or good. It is
        no interval that holds the truth: see :meth:`so_far` for those.
        """
        return self._driver.read(good_shares_of)

    def person(self, person: str) -> PersonRow | None:
        """Return what is stored about a person, None if nobody asked about them."""
        return self._store.person(self.row.id, inputs.name("person", person))

    def people(
        self,
        *,
        states: Sequence[str] = (),
        conflicted: bool = False,
        after: int = 0,
        limit: int | None = None,
    ) -> list[PersonRow]:
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
        return self._driver.read(lambda state: state.memory.trace(points))

    def results(self, commands: Sequence[Command]) -> list[Reply | EquipoiseError]:
        """Carry out checked commands; return, once stored, a result for each."""
        return self._driver.run(commands, self.actor, self._clock())


def _canonical(event: dict[str, Any]) -> str:
    try:
        return canonical(event)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"'options' must hold what JSON can hold: {error}") from error


def _checked_seed(seed: str) -> str:
    try:
        raw = bytes.fromhex(seed)
    except (TypeError, ValueError):
        raw = b""
    if len(raw) != 32:
        raise InvalidInput(f"'seed' must be 64 hexadecimal digits; got {seed!r}")
    return raw.hex()


def _plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as the first event holds them."""
    assist = options.get("assist")
    if isinstance(assist, Mapping):
        assist = Assist.from_dict(assist)
    return {**options, "assist": assist.to_dict()} if isinstance(assist, Assist) else dict(options)
