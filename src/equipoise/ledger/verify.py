"""Check an exported audit ledger with nothing but Python's standard library.

    python verify.py audit.jsonl --head HASH [--checkpoint SEQ:HASH] [--people FILE] [--seed HEX]

One line of the export is one event, written as canonical JSON (keys sorted, no spaces, ASCII). The
line's SHA-256 is its hash, and every line holds the hash of the line before it. So anyone who knows
the last hash (the head) knows that no byte of the file was changed, dropped, moved or added. On top
of that this program applies every event again: who was asked, what was held and paid, who did it
and who approved, and that the cap was respected after every single event.

:class:`LedgerRules` is the rule book: the only code that says what an event does to a person, to
money and to the audit. The ledger itself builds an event, lets the rule book apply it, and stores
what comes out. So a reader of this file knows what a ledger does.

It does not repeat the statistics; ``equipoise audit verify`` does, with the same events.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

FORMAT = 3  # of the events; another format is refused
GENESIS = "0" * 64  # what the first event names as the hash before it
DRAW_RANGE = 2**53  # numbers are drawn from 0 to this, which a float holds exactly
ROUNDING = 1e-9  # by which computed numbers may leave their range
SCORE_RECORD_FIELDS = ("score", "version", "price", "m", "pi", "range", "draw")
REASONS = (  # why nothing is wanted of a person
    "approved",
    "budget",
    "concluded",
    "decided",
    "in_flight",
    "left_out",
    "lottery",
    "not_wanted",
    "paused",
)
FORGED_DATA_ERRORS = (
    *(ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError),
)
"""Errors that code may raise when it reads data that were forged or damaged."""

Data = Mapping[str, Any]
Event = Mapping[str, Any]


class PersonState(StrEnum):
    """Where a person is; money is held in the states of :data:`OPEN`."""

    SKIPPED = "SKIPPED"
    SCORE_ONLY = "SCORE_ONLY"
    RESERVED = "RESERVED"
    EXECUTED = "EXECUTED"
    OVERDUE = "OVERDUE"
    REVEALED = "REVEALED"
    CORRECTED = "CORRECTED"
    WITHDRAWN = "WITHDRAWN"
    WRITTEN_OFF = "WRITTEN_OFF"


_S = PersonState
OPEN = (_S.RESERVED, _S.EXECUTED, _S.OVERDUE)
COUNTED = (_S.REVEALED, _S.CORRECTED)  # the outcome was asked for and is known
UNASKED = (_S.SKIPPED, _S.SCORE_ONLY, _S.WITHDRAWN)  # an outcome is noted, and costs nothing
MOVES = {  # type of event -> the states in which it may find a person, and the one that follows
    "withdrawn": ((_S.RESERVED,), _S.WITHDRAWN),
    "overdue": ((_S.RESERVED, _S.EXECUTED), _S.OVERDUE),
    "written_off": ((_S.OVERDUE,), _S.WRITTEN_OFF),
}
STATES_BEFORE_OUTCOME = {  # type of event that brings an outcome -> states of the person before it
    "revealed": (*OPEN, _S.WRITTEN_OFF),
    "noted": UNASKED,
    "corrected": (*COUNTED, *UNASKED),
}
FIRST_STATES = {"NOTHING": _S.SKIPPED, "SCORE_ONLY": _S.SCORE_ONLY, "LABEL": _S.RESERVED}

# Field of an event about a person -> field of the person's record that it repeats.
PERSON_FACTS = {
    "person": "number",
    "group": "group_name",
    "decision": "decision",
    "want": "want",
    "was": "state",
    "request": "request",
    "hold": "hold",
    "place": "place",
    "known": "outcome",
}

_ENVELOPE = {"actor", "audit", "data", "prev", "seq", "time", "type"}
_WRITER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


class Broken(Exception):
    """The export is not what the ledger wrote; the message names the line."""


# -- what is counted ------------------------------------------------------------------------------


@dataclass(slots=True)
class PersonRecord:
    """One person as of now: a row of the ledger's table, and what events change.

    Attributes
    ----------
    number
        In order of arrival, from 1; it stands for the person in the chain.
    request
        Place in request order; None if the audit was not consulted.
    place
        Place among the group's approved people; None for denied people.
    person, salt
        The pseudonym and the key that ties it to the chain; None once the person is erased, and
        where only events are known.
    who
        The keyed hash of the pseudonym, as the chain holds it.
    drawn
        Whether the lottery drew the person (0 or 1); None where there is no lottery.
    draw
        The number drawn for an audit that uses scores.
    hold, paid, overrun
        Money in minor units: held at most, paid, and beyond the cap.
    """

    number: int
    group_name: str
    decision: int
    want: str
    state: str
    request: int | None
    hold: int
    place: int | None = None
    person: str | None = None
    salt: str | None = None
    who: str = ""
    why: str = ""
    asked: str = ""
    drawn: int | None = None
    draw: int | None = None
    paid: int = 0
    overrun: int = 0
    outcome: int | None = None
    executed: int = 0
    conflicted: int = 0
    erased: int = 0

    @property
    def open(self) -> bool:
        """Whether money is held for this person."""
        return self.state in OPEN


@dataclass(slots=True)
class GroupTally:
    """What happened in one group, as counts and minor units; ``states`` counts by state."""

    approved: int = 0
    denied: int = 0
    states: dict[str, int] = field(default_factory=dict)
    in_flight: int = 0
    positive: int = 0  # outcome 1 among the denied people whose label was asked for and told
    negative: int = 0
    spent: int = 0
    reserved: int = 0
    overrun: int = 0

    @property
    def unknown(self) -> int:
        """Denied people who were asked and whose outcome is not known, or never will be."""
        given_up = self.states.get(_S.WITHDRAWN, 0) + self.states.get(_S.WRITTEN_OFF, 0)
        return self.in_flight + given_up

    @property
    def scored(self) -> int:
        """People whose score was used, asked or not, by an audit that uses scores."""
        return sum(self.states.values()) - self.states.get(_S.SKIPPED, 0)


def people_by_state(groups: Iterable[GroupTally]) -> dict[str, int]:
    """Return state -> people, over all groups."""
    totals: Counter[str] = Counter()
    for group in groups:
        totals.update(group.states)
    return dict(totals)


@dataclass
class Head:
    """Where an audit's chain ends and what its balance is, in minor units."""

    seq: int = 0
    hash: str = GENESIS
    time: str = ""
    cap: int | None = None
    spent: int = 0  # money gone
    reserved: int = 0  # money held for requests without an answer
    overrun: int = 0  # money beyond the cap, possible only through corrections


@dataclass
class Proof(Head):
    """What a verification has shown: where the chain ends, and what it says."""

    audit: str = ""
    name: str = ""
    currency: str = ""
    decimals: int = 0
    states: Mapping[str, int] = field(default_factory=dict)
    erased: int = 0
    verdict: str | None = None
    edition: int = 0
    statistics: str = "not repeated: only 'equipoise audit verify' does"

    def __str__(self) -> str:
        cap = "no cap" if self.cap is None else f"cap {self._money(self.cap)}"
        states = ", ".join(f"{n} {s.lower()}" for s, n in sorted(self.states.items()) if n)
        return (
            f"OK: audit {self.name!r} ({self.audit}), {self.seq} events, head {self.hash}\n"
            f"    people: {states or 'none'}; {self.erased} of them erased\n"
            f"    money: {self._money(self.spent)} spent + {self._money(self.reserved)} reserved, "
            f"{cap}, {self._money(self.overrun)} beyond it after corrections\n"
            f"    verdict: {self.verdict or 'none yet'}\n"
            f"    verified: chain, books and money; statistics (edition {self.edition}) "
            f"{self.statistics}"
        )

    def _money(self, amount: int) -> str:
        return f"{amount / 10**self.decimals:,.{self.decimals}f} {self.currency}".rstrip()


# -- the check of an export -----------------------------------------------------------------------


def verify(
    lines: Iterable[bytes],
    *,
    head: str | None = None,
    checkpoints: Sequence[tuple[int, str]] = (),
    people: Iterable[Mapping[str, Any]] | None = None,
    seed: str | None = None,
    rules: LedgerRules | None = None,
    apply: Callable[[Event, str], object] | None = None,
) -> Proof:
    """Check an export line by line and return what it says.

    Parameters
    ----------
    lines
        The file's lines as bytes, each with its line feed.
    head
        The hash of the last event, as handed out by the ledger. Without it a file that was cut
        at the end of a line still passes.
    checkpoints
        Earlier (number of events, hash) pairs that must be a prefix of this file.
    people
        The key table, ``{"person", "pseudonym", "salt"}`` each: shows that nobody was asked twice
        and, with ``seed``, that the lottery was held as promised. Erased people have no key.
    seed
        The seed, from the report of the concluded audit.
    rules
        Where the state of every person is kept; new rules if left out.
    apply
        Called with every event and its hash, to apply it; the rules' own
        :meth:`LedgerRules.apply` if left out.

    Raises
    ------
    Broken
        At the first line that is not as it should be.
    """
    rules = LedgerRules({}) if rules is None else rules
    apply = rules.apply if apply is None else apply
    expected_hashes = dict(checkpoints)
    for number, line in enumerate(lines, start=1):
        event_hash = _apply_line(number, line, rules, apply)
        # Taken out, so that at the end the checkpoints are left that the file does not reach.
        expected_hash = expected_hashes.pop(number, None)
        if expected_hash not in (None, event_hash):
            raise Broken(f"line {number}: the checkpoint says hash {expected_hash}")
    _check_end(rules.head, head, expected_hashes)
    try:
        if seed is not None:
            _check_seed(seed, rules.settings["seed_hash"])
        if people is not None:
            check_keys(rules, people, seed)
    except (LookupError, TypeError, ValueError) as error:
        raise Broken(f"the seed or the table of keys cannot be read: {error}") from error
    return rules.proof()


def _apply_line(
    number: int, line: bytes, rules: LedgerRules, apply: Callable[[Event, str], object]
) -> str:
    """Apply the event of one line; return its hash."""
    try:
        event, event_hash = _parse_line(line)
        apply(event, event_hash)
        # A key stands for one command. A second event under it would be that command, twice.
        if "key" in event:
            _require_equal("known key", event["key"] in rules.keys, False)
            rules.keys[event["key"]] = number
    except FORGED_DATA_ERRORS as error:
        # The text of a KeyError is the key alone.
        reason = f"missing {error}" if isinstance(error, KeyError) else str(error)
        raise Broken(f"line {number}: {reason}") from error
    return event_hash


def _check_end(end: Head, head: str | None, unreached: Mapping[int, str]) -> None:
    """Refuse an export that is empty, too short for a checkpoint, or ends at another hash."""
    if not end.seq:
        raise Broken("the export is empty")
    if unreached:
        raise Broken(
            f"a checkpoint covers {max(unreached)} events; the export has {end.seq}: "
            "it was cut, or belongs to another audit"
        )
    if head is not None and head != end.hash:
        raise Broken(
            f"the export ends at {end.hash}, not at the given head {head}: it was cut, "
            "extended, or belongs to another moment"
        )


def _check_seed(seed: str, seed_hash: str) -> None:
    if hashlib.sha256(bytes.fromhex(seed)).hexdigest() != seed_hash:
        raise Broken("the given seed is not the one whose hash the first event holds")


def canonical(value: Mapping[str, Any]) -> str:
    r"""Write JSON in the one way that is hashed.

    Examples
    --------
    >>> canonical({"b": 1, "a": "\xe9"})
    '{"a":"\\u00e9","b":1}'
    """
    return _WRITER.encode(value)


def digest(body: str) -> str:
    """Return the SHA-256 of an event's canonical JSON."""
    return hashlib.sha256(body.encode("ascii")).hexdigest()


def draw(seed: bytes, pseudonym: str) -> int:
    """Draw a person's lottery number, 0 to 2**53 - 1: HMAC-SHA-256 of seed and pseudonym."""
    # Nobody can predict it without the seed, and everybody can check it with the seed.
    mac = hmac.digest(seed, pseudonym.encode("utf-8"), "sha256")
    return int.from_bytes(mac[:8], "big") >> 11  # 53 of 64 bits, which a float holds exactly


def draw_of_score(seed: bytes, number: int, pseudonym: str) -> int:
    """Draw the number that decides whether a person with a score is asked.

    It depends on the person's number, too: a person who is erased and asked about again gets
    another number.
    """
    return draw(seed, f"look\n{number}\n{pseudonym}")


def hash_pseudonym(salt: str, audit: str, pseudonym: str) -> str:
    """Return what stands for a person in the chain; it reveals nothing without the salt."""
    message = f"{audit}\n{pseudonym}".encode()
    return hmac.digest(bytes.fromhex(salt), message, "sha256").hex()[:32]


def person_facts(person: PersonRecord) -> dict[str, Any]:
    """Return what every event about a person repeats of them, as they were before it."""
    facts: dict[str, Any] = {}
    for fact, record_field in PERSON_FACTS.items():
        value = getattr(person, record_field)
        # A request of None is written down: the audit was not consulted about this person.
        if value is not None or fact == "request":
            facts[fact] = value
    facts["was"] = str(person.state)
    if person.paid or person.overrun:
        facts["before"] = [person.paid, person.overrun]
    return facts


def _parse_line(line: bytes) -> tuple[dict[str, Any], str]:
    """Return the event of a line and its hash."""
    if not line.endswith(b"\n"):
        raise ValueError("the line does not end: the file was cut")
    body = line[:-1].decode("ascii")
    event = json.loads(body)
    # The hash covers bytes, so there must be one way only to write an event.
    if not isinstance(event, dict) or canonical(event) != body:
        raise ValueError("not canonical JSON: the line was changed after it was written")
    return event, digest(body)


def _parse_bit(value: object) -> int:
    """Return a decision or an outcome."""
    if type(value) is not int or value not in (0, 1):
        raise ValueError(f"decision or outcome {value!r} is not 0 or 1")
    return value


def _require_equal(label: str, recorded: object, expected: object) -> None:
    """Refuse a value, or a type, that differs from what the events before it lead to."""
    # Types as well: True equals 1 and 1.0 equals 1, and their JSON differs.
    if recorded != expected or type(recorded) is not type(expected):
        raise ValueError(f"{label} is {recorded!r}; by the events before it must be {expected!r}")


# -- people, money and approvals ------------------------------------------------------------------


class PeopleRegister:
    """Every person that an audit was asked about, and counts of them by group and state.

    Parameters
    ----------
    records
        Number -> person. A verifier keeps everybody, a writer those whom its transaction touches.
        None for a reader of events that were checked when they were written: each event holds the
        facts that its rule needs.
    """

    def __init__(self, records: dict[int, PersonRecord] | None) -> None:
        self.records = records
        self.groups: dict[str, GroupTally] = {}
        self.arrived = 0
        self.erased = 0
        self.scrubbed = 0  # how many of the erased are out of the database's files as well
        self.contradicted: set[int] = set()  # people whose conflict no correction has settled
        self.late = 0  # outcomes that came after a write-off or a verdict

    def add(self, person: PersonRecord) -> None:
        """Count a person who has just arrived."""
        tally = self.groups[person.group_name]
        tally.approved += person.decision
        tally.denied += 1 - person.decision
        tally.states[person.state] = tally.states.get(person.state, 0) + 1
        self.arrived += 1
        if self.records is not None:
            self.records[person.number] = person

    def find(self, data: Data, states: Sequence[PersonState] = ()) -> PersonRecord:
        """Return the person of an event as they were before it, which the event must repeat.

        Raises
        ------
        ValueError
            If the person never arrived, was erased, is in none of the ``states``, or if the event
            describes them otherwise.
        """
        number = data["person"]
        # Not isinstance: True is a whole number to Python.
        if type(number) is not int or not 0 < number <= self.arrived:
            raise ValueError(f"nobody asked about person {number!r} before")
        person = self._from_facts(data) if self.records is None else self.records[number]
        if person.erased:
            raise ValueError(f"person {number} was erased before")
        if states and person.state not in states:
            raise ValueError(f"person {number} is {person.state}; must be {' or '.join(states)}")
        # A reader that keeps no people relies on these facts, so they are checked here for it.
        facts = person_facts(person)
        for fact in (*PERSON_FACTS, "before"):
            _require_equal(fact, data.get(fact), facts.get(fact))
        return person

    @staticmethod
    def _from_facts(data: Data) -> PersonRecord:
        """Return a person as an event describes them: enough for its rule."""
        paid, overrun = data.get("before", (0, 0))
        return PersonRecord(
            number=data["person"],
            group_name=data["group"],
            decision=data["decision"],
            want=data["want"],
            state=data["was"],
            request=data["request"],
            hold=data["hold"],
            place=data.get("place"),
            outcome=data.get("known"),
            paid=paid,
            overrun=overrun,
        )

    def move(self, person: PersonRecord, state: PersonState) -> None:
        """Bring a person into another state."""
        states = self.groups[person.group_name].states
        states[person.state] -= 1
        states[state] = states.get(state, 0) + 1
        person.state = state

    def in_flight(self) -> int:
        """Return how many denied people were asked and have no outcome yet."""
        return sum(tally.in_flight for tally in self.groups.values())


class MoneyAccount:
    """What is spent, held and capped, over all (``head``) and by group; in minor units."""

    def __init__(self, head: Head) -> None:
        self.head = head
        self.costs: Data = {}

    def costs_of(self, group: str) -> Data:
        """Return a group's own costs, or the common ones."""
        group_costs: Data = self.costs["groups"].get(group, self.costs)
        return group_costs

    def largest_cost(self, group: str, want: str, observation: Data | None) -> int:
        """Return the most that a request to a denied person can cost.

        Where scores are used, ``observation`` has the price of this person's label.
        """
        if want == "NOTHING":
            return 0
        costs = self.costs_of(group)
        label_price = costs["label"] if observation is None else observation["price"]
        total: int = costs["feature"] + (label_price if want == "LABEL" else 0)
        return total

    def price(self, person: PersonRecord, outcome: int) -> int:
        """Return what a person costs with this outcome."""
        if person.decision == 1:
            return 0
        return person.hold if outcome == 0 else int(self.costs_of(person.group_name)["feature"])

    def bill(self, person: PersonRecord, cost: int) -> tuple[int, int]:
        """Return what a cost comes to now: paid, and what the cap cannot hold (overrun)."""
        if self.head.cap is None:
            return cost, 0
        # A correction may cost more than was held for it. It is paid from what was neither spent on
        # others nor is held for them, and the rest is its overrun.
        spent_on_others = self.head.spent - person.paid
        held_for_others = self.head.reserved - (person.hold if person.open else 0)
        paid = min(cost, self.head.cap - spent_on_others - held_for_others)
        return paid, cost - paid

    def record_spending(
        self, tally: GroupTally, spent: int = 0, reserved: int = 0, overrun: int = 0
    ) -> None:
        """Add to the balance of all and of a group."""
        for account in (self.head, tally):
            account.spent += spent
            account.reserved += reserved
            account.overrun += overrun

    def check_cap(self) -> None:
        """Refuse more money spent and held than the cap allows."""
        head = self.head
        if head.cap is not None and head.spent + head.reserved > head.cap:
            raise ValueError(f"{head.spent} spent + {head.reserved} reserved exceed cap {head.cap}")


class Approvals:
    """Proposals that a second person must approve, by the number of their event."""

    def __init__(self) -> None:
        self.required: Sequence[str] = ()  # types of events that need an approval
        self.proposals: dict[int, dict[str, Any]] = {}  # that are open
        self.decided: dict[int, list[Any]] = {}  # type of event, its person and reason

    def propose(self, event: Event) -> None:
        """Open a proposal."""
        data = event["data"]
        if data["command"] not in self.required:
            raise ValueError(f"{data['command']!r} needs no approval in this audit")
        proposal = {**data, "actor": event["actor"], "time": event["time"]}
        self.proposals[event["seq"]] = proposal

    def check(self, kind: str, data: Data, actor: str) -> None:
        """Refuse an event that lacks the approval it needs, or has one that it does not need."""
        if kind not in self.required:
            if "proposal" in data and kind != "rejected":
                raise ValueError(f"{kind!r} needs no approval in this audit")
            return
        proposal = self.proposals.get(data.get("proposal", 0))
        if proposal is None or proposal["command"] != kind:
            raise ValueError(f"{kind!r} needs the approval of a proposal, and has none")
        # Two different people: this is what an approval is for.
        if actor == proposal["actor"]:
            raise ValueError(f"{actor!r} approved their own proposal")
        # What is carried out is what was proposed, word for word.
        for name, value in proposal["arguments"].items():
            _require_equal(name, data[name], value)

    def require_open(self, number: int) -> None:
        """Refuse a proposal that is not open."""
        if number not in self.proposals:
            raise ValueError(f"there is no open proposal {number}")

    def close(self, kind: str, data: Data) -> None:
        """Close the proposal that an event carries out or rejects, if it names one."""
        if "proposal" in data:
            self.proposals.pop(data["proposal"])
            self.decided[data["proposal"]] = [kind, data.get("person"), data.get("why", "")]


# -- the rules ------------------------------------------------------------------------------------


class LedgerRules:
    """The rule book, and where its events have led: every person, all money, the audit.

    Parameters
    ----------
    people
        The records of :class:`PeopleRegister`: number -> person, or None.

    Attributes
    ----------
    requests
        How often the audit was consulted.
    random_accepts
        Group -> good, bad and unknown outcomes of the last file of a test programme.
    concluded, paused
        The reason why the audit ended or asks nobody for now; None if it does not.
    edition
        Of the statistics, by which requests are weighed.
    recorded
        The finding in the last verdict event.
    verdict_seq
        The number of that event; None before the first.
    taken_back
        Verdicts that later events undid, oldest first.
    unsettled
        Whether an answer, the cap, the random accepts or the edition changed since the last verdict
        event.
    acts
        Actor -> type of event -> how many.
    keys
        Client's key -> number of its event, of an export that is verified.
    """

    def __init__(self, people: dict[int, PersonRecord] | None = None) -> None:
        self.uid = ""
        self.settings: Data = {}
        self.head = Head()
        self.people = PeopleRegister(people)
        self.money = MoneyAccount(self.head)
        self.approvals = Approvals()
        self.requests = 0
        self.max_in_flight: int | None = None
        self.max_in_flight_groups: dict[str, int] = {}
        self.random_accepts: dict[str, list[int]] = {}
        self.concluded: str | None = None
        self.paused: str | None = None
        self.edition = 0
        self.recorded: dict[str, Any] | None = None
        self.verdict_seq: int | None = None
        self.taken_back: list[str] = []
        self.unsettled = False
        self.acts: dict[str, dict[str, int]] = {}
        self.keys: dict[str, int] = {}

    def apply(self, event: Event, event_hash: str) -> PersonRecord | None:
        """Let the next event happen; return the person whom it changed.

        Raises
        ------
        ValueError
            If the event cannot follow those before it.
        """
        self._check_envelope(event)
        person = None
        if event["seq"] == 1:
            self.begin(event)
        else:
            person = self._apply_rule(event)
        self.head.seq = event["seq"]
        self.head.hash = event_hash
        self.head.time = event["time"]
        acts_of_actor = self.acts.setdefault(event["actor"], {})
        acts_of_actor[event["type"]] = acts_of_actor.get(event["type"], 0) + 1
        # After every single event, so that no later one can hide money spent beyond the cap.
        self.money.check_cap()
        return person

    def _check_envelope(self, event: Event) -> None:
        """Refuse an event that is not the next link of the chain."""
        if not _ENVELOPE <= set(event) <= _ENVELOPE | {"key"}:
            raise ValueError(f"an event has the fields {sorted(_ENVELOPE)}")
        _require_equal("the event's number", event["seq"], self.head.seq + 1)
        _require_equal("the hash of the event before", event["prev"], self.head.hash)
        if not isinstance(event["actor"], str) or not event["actor"]:
            raise ValueError("nobody is named who did it")
        if "key" in event and (not isinstance(event["key"], str) or not event["key"]):
            raise ValueError("the key is empty or no text")

    def begin(self, event: Event) -> None:
        """Apply the first event, which holds the settings."""
        settings = event["data"]
        _require_equal("the first event's type", event["type"], "created")
        if settings["format"] != FORMAT:
            raise ValueError(f"format {settings['format']} is not this program's ({FORMAT})")
        self.settings = settings
        self.uid = event["audit"]
        self.edition = settings["edition"]
        self.head.cap = settings["budget"]
        self.money.costs = settings["costs"]
        self.approvals.required = settings["approvals"]
        self.max_in_flight = settings["max_in_flight"]
        self.max_in_flight_groups = dict(settings["max_in_flight_groups"])
        # In the order of the list: canonical JSON has sorted the cells.
        cells = settings["past"]["cells"]
        for group in settings["groups"]:
            self.people.groups[group] = GroupTally()
            self.random_accepts[group] = cells[group].get("random_accepts") or [0, 0, 0]

    def _apply_rule(self, event: Event) -> PersonRecord | None:
        """Apply an event after the first by the rule of its type."""
        kind = event["type"]
        data = event["data"]
        # An event of another audit may fit the chain of hashes, if somebody built it to.
        _require_equal("audit", event["audit"], self.uid)
        if kind not in RULES:
            raise ValueError(f"unknown type of event {kind!r}")
        rule = RULES[kind]
        if not rule.needed <= set(data) <= rule.allowed:
            wrong_fields = sorted((rule.needed - set(data)) | (set(data) - rule.allowed))
            raise ValueError(f"{kind!r} must not lack or add {', '.join(wrong_fields)}")
        self.approvals.check(kind, data, event["actor"])
        person = rule.apply(self, data, event)
        self.approvals.close(kind, data)
        return person

    # -- questions to the rules -------------------------------------------------------------------

    @property
    def verdict(self) -> str | None:
        """The verdict that was recorded last."""
        return None if self.recorded is None else str(self.recorded["verdict"])

    @property
    def _assist(self) -> Data | None:
        """How scores are used, as declared in the first event; None if they are not."""
        assist: Data | None = self.settings["options"].get("assist")
        return assist

    def is_full(self, groups: Iterable[str]) -> bool:
        """Whether the limits of what is in flight forbid another request in one of the groups."""
        if self.max_in_flight is not None and self.people.in_flight() >= self.max_in_flight:
            return True
        for group in groups:
            limit = self.max_in_flight_groups.get(group)
            if limit is not None and self.people.groups[group].in_flight >= limit:
                return True
        return False

    def proof(self) -> Proof:
        """Return what the events have led to."""
        return Proof(
            seq=self.head.seq,
            hash=self.head.hash,
            time=self.head.time,
            cap=self.head.cap,
            spent=self.head.spent,
            reserved=self.head.reserved,
            overrun=self.head.overrun,
            audit=self.uid,
            name=self.settings["name"],
            currency=self.settings["currency"],
            decimals=self.settings["decimals"],
            states=people_by_state(self.people.groups.values()),
            erased=self.people.erased,
            verdict=self.verdict,
            edition=self.edition,
        )

    # -- events about people ----------------------------------------------------------------------

    def _apply_arrival(self, data: Data, event: Event) -> PersonRecord:
        """Apply that a person arrived, and what the audit decided to want of them."""
        person = self._check_arrival(data, event)
        self._check_reason(data)
        tally = self.people.groups[person.group_name]
        if person.state == _S.SCORE_ONLY:
            # Looking at a score is paid at once, since nothing else will be asked.
            person.paid = person.hold
            self.money.record_spending(tally, spent=person.hold)
        elif person.state == _S.RESERVED:
            if person.decision == 0 and self.is_full([person.group_name]):
                raise ValueError(
                    f"too many requests in flight for another one in {person.group_name!r}"
                )
            # The worst case is held now, so that no outcome can exceed the cap.
            self.money.record_spending(tally, reserved=person.hold)
            tally.in_flight += 1 - person.decision
        self.people.add(person)
        return person

    def _check_arrival(self, data: Data, event: Event) -> PersonRecord:
        """Return the person who arrived; refuse a wrong number, place, hold or score."""
        number = self.people.arrived + 1
        group = data["group"]
        decision = _parse_bit(data["decision"])
        want = data["want"]
        # Numbers without gaps: nobody can be left out of the chain later.
        _require_equal("person", data["person"], number)
        if group not in self.people.groups:
            raise ValueError(f"unknown group {group!r}")
        if want not in FIRST_STATES:
            raise ValueError(f"unknown request {want!r}")
        if decision == 1:
            _require_equal("place", data["place"], self.people.groups[group].approved)
        elif "place" in data:
            raise ValueError("only the approved have a place")
        observation = data.get("observation")
        _check_score(want, observation, self._assist)
        # An approved person's outcome comes by itself: nothing is overridden, nothing is paid.
        hold = self.money.largest_cost(group, want, observation) if decision == 0 else 0
        _require_equal("hold", data["hold"], hold)
        won_lottery = data.get("drawn")
        return PersonRecord(
            number=number,
            group_name=group,
            decision=decision,
            want=want,
            state=FIRST_STATES[want],
            request=data["request"],
            hold=hold,
            place=data.get("place"),
            who=data["who"],
            why=data["why"],
            asked=event["time"],
            drawn=None if won_lottery is None else int(won_lottery),
            draw=None if observation is None else observation["draw"],
        )

    def _check_reason(self, data: Data) -> None:
        """Check request number, lottery and reason of an arrival against the audit's state."""
        want = data["want"]
        why = data["why"]
        won_lottery = data.get("drawn")
        if (want == "NOTHING") != (why in REASONS):
            raise ValueError(f"{want} because of {why!r}")
        self._count_request(data["request"])
        if want != "NOTHING":
            if data["request"] is None or self.paused is not None or self.concluded is not None:
                raise ValueError("somebody was asked while the audit asked nobody")
            # Whoever is asked has won the lottery, if there is one.
            _require_equal("drawn", won_lottery, True if self.settings["lottery"] < 1 else None)
        if (won_lottery is False) != (why == "lottery"):
            raise ValueError(f"drawn is {won_lottery} and the reason {why!r}")
        if "closed" in data:
            _check_closing(why, self._assist)
        if (why == "paused" and self.paused is None) or (
            why == "concluded" and self.concluded is None
        ):
            raise ValueError(f"nobody was asked for being {why}, and the audit is not")

    def _count_request(self, request: int | None) -> None:
        """Count that the audit was consulted; numbers of requests only grow."""
        if request is None:
            return
        if request < self.requests:
            raise ValueError(f"request {request} after request {self.requests - 1}")
        self.requests = request + 1

    def _apply_execution(self, data: Data, _: Event) -> PersonRecord:
        """Apply that an override was carried out."""
        person = self.people.find(data)
        if person.want != "LABEL" or person.executed or person.state == _S.WITHDRAWN:
            raise ValueError("nothing was to be carried out")
        person.executed = 1
        if person.state == _S.RESERVED:  # the message may come after the outcome
            self.people.move(person, _S.EXECUTED)
        return person

    def _apply_outcome(self, data: Data, event: Event) -> PersonRecord:
        """Apply an outcome: revealed as asked for, noted although nobody asked, or corrected."""
        is_correction = event["type"] == "corrected"
        outcome = _parse_bit(data["outcome"])
        person = self.people.find(data, STATES_BEFORE_OUTCOME[event["type"]])
        if (person.outcome is None) == is_correction or outcome == person.outcome:
            raise ValueError("a correction, and nothing else, changes an outcome that is known")
        if person.state in UNASKED:
            if "cost" in data or "overrun" in data:
                raise ValueError("an outcome that nobody asked for costs nothing")
        else:
            self._count_outcome(person, outcome, data, is_correction=is_correction)
        if is_correction:
            self.people.contradicted.discard(person.number)
        person.outcome = outcome
        return person

    def _count_outcome(
        self, person: PersonRecord, outcome: int, data: Data, *, is_correction: bool
    ) -> None:
        """Count and pay for an outcome that was asked for."""
        was_written_off = person.state == _S.WRITTEN_OFF
        if not is_correction and (was_written_off or self.recorded is not None):
            self.people.late += 1
        # Both change an answer that the verdict may rest on, so the verdict is recorded anew.
        if was_written_off or is_correction:
            self.unsettled = True
        state = _S.CORRECTED if is_correction else _S.REVEALED
        self._settle(person, state, self.money.price(person, outcome), data)
        if person.decision == 0:
            tally = self.people.groups[person.group_name]
            # A corrected outcome was counted before and is taken out again.
            tally.positive += (outcome == 1) - (person.outcome == 1)
            tally.negative += (outcome == 0) - (person.outcome == 0)

    def _apply_move(self, data: Data, event: Event) -> PersonRecord:
        """Apply that a request was withdrawn, is overdue, or was written off."""
        states_before, state = MOVES[event["type"]]
        person = self.people.find(data, states_before)
        if state == _S.OVERDUE:
            self.people.move(person, state)
        elif state == _S.WITHDRAWN:
            # A refusal before the override costs nothing, and its event names no cost to compare.
            self._settle(person, state, 0, {"cost": 0, "overrun": 0})
        else:
            # An outcome that is given up counts at its worst cost.
            self._settle(person, state, person.hold, data)
        return person

    def _settle(self, person: PersonRecord, state: PersonState, cost: int, recorded: Data) -> None:
        """Post what a person costs now in place of what was held or posted before.

        The ``cost`` and ``overrun`` that the event has, in ``recorded``, must be what the rules
        give.
        """
        tally = self.people.groups[person.group_name]
        paid, overrun = self.money.bill(person, cost)
        _require_equal("cost", recorded["cost"], paid)
        _require_equal("overrun", recorded["overrun"], overrun)
        released = 0
        if person.open:
            released = person.hold
            tally.in_flight -= 1 - person.decision
        # The difference to what was posted before: a correction replaces it.
        self.money.record_spending(tally, paid - person.paid, -released, overrun - person.overrun)
        person.paid = paid
        person.overrun = overrun
        self.people.move(person, state)

    def _apply_conflict(self, data: Data, _: Event) -> PersonRecord:
        """Apply that a second, different outcome was told; the stored one stands."""
        person = self.people.find(data)
        told_outcome = _parse_bit(data["told"])
        if person.outcome is None or person.conflicted or told_outcome == person.outcome:
            raise ValueError("a conflict is reported where there is none, or again")
        # One event per person: a client that repeats a wrong outcome must not fill the chain.
        person.conflicted = 1
        self.people.contradicted.add(person.number)
        return person

    def _apply_erasure(self, data: Data, _: Event) -> PersonRecord:
        """Apply that a person's pseudonym and key left the tables."""
        person = self.people.find(data)
        # Without the pseudonym nobody could bring the outcome, and the money would stay held.
        if person.open:
            raise ValueError("somebody was erased whose request was open")
        person.erased = 1
        person.person = None
        person.salt = None
        self.people.erased += 1
        return person

    # -- events about the audit -------------------------------------------------------------------

    def _apply_scrubbing(self, data: Data, _: Event) -> None:
        """Apply that erased people are out of the database's files, too."""
        erased = data["erased"]
        if type(erased) is not int or not self.people.scrubbed < erased <= self.people.erased:
            raise ValueError(f"{erased!r} people are said to be out of the files")
        self.people.scrubbed = erased

    def _apply_conclusion(self, data: Data, _: Event) -> None:
        """Apply that nobody else will come."""
        _require_equal("concluded before", self.concluded is not None, False)
        self.concluded = data["why"]

    def _apply_pause(self, data: Data, _: Event) -> None:
        """Apply that nobody is asked for now."""
        _require_equal("paused before", self.paused is not None, False)
        self.paused = data["why"]

    def _apply_resumption(self, data: Data, _: Event) -> None:
        """Apply that people are asked again."""
        _require_equal("paused before", self.paused is not None, True)
        self.paused = None

    def _apply_budget(self, data: Data, _: Event) -> None:
        _require_equal("before", data["before"], self.head.cap)
        # With another cap an audit may go on, or have to end.
        self.head.cap = data["budget"]
        self.unsettled = True

    def _apply_limits(self, data: Data, _: Event) -> None:
        self.max_in_flight = data["max_in_flight"]
        self.max_in_flight_groups = dict(data["max_in_flight_groups"])

    def _apply_random_accepts(self, data: Data, _: Event) -> None:
        """Apply a later file of a test programme, in which nobody of the last one is missing."""
        groups = self.people.groups
        counts_by_group = data["random_accepts"]
        corrected_by_group = data["corrected"]
        _require_equal("groups", sorted(counts_by_group), sorted(groups))
        _require_equal("groups beside them", sorted(set(corrected_by_group) - set(groups)), [])
        for group, counts in counts_by_group.items():
            corrected = corrected_by_group.get(group, 0)
            _check_random_accepts(group, self.random_accepts[group], counts, corrected)
        self.random_accepts = dict(counts_by_group)
        self.unsettled = True

    def _apply_upgrade(self, data: Data, _: Event) -> None:
        """Apply that the audit goes on under another edition of the statistics."""
        _require_equal("before", data["before"], self.edition)
        if type(data["edition"]) is not int or data["edition"] == self.edition:
            raise ValueError(f"edition {data['edition']!r} after edition {self.edition}")
        self.edition = data["edition"]
        self.unsettled = True

    def _apply_proposal(self, _: Data, event: Event) -> None:
        self.approvals.propose(event)

    def _apply_rejection(self, data: Data, _: Event) -> None:
        self.approvals.require_open(data["proposal"])

    def _apply_verdict(self, data: Data, event: Event) -> None:
        """Apply that the evidence supports another finding than the one recorded last."""
        _require_equal("supersedes", data["supersedes"], self.verdict_seq)
        verdict_before = self.verdict
        self.recorded = data["finding"]
        if self.verdict not in (None, "FAIR", "UNFAIR", "INCONCLUSIVE"):
            raise ValueError(f"unknown verdict {self.verdict!r}")
        # INCONCLUSIVE is no verdict that could be taken back.
        if verdict_before in ("FAIR", "UNFAIR") and self.verdict != verdict_before:
            self.taken_back.append(verdict_before)
        self.verdict_seq = event["seq"]
        self.unsettled = False


# -- checks that need no state --------------------------------------------------------------------


def _check_score(want: str, observation: Data | None, assist: Data | None) -> None:
    """Check that a person was asked by the number drawn, at a price that was declared.

    ``m`` is the model's prediction, ``pi`` the probability of being asked. The observation is
    ``m - m / pi`` if the outcome is 0 and ``m + (1 - m) / pi`` if it is 1, which must lie in
    the declared range. ``assist`` has what was declared; None if the audit uses no scores.
    """
    is_scored = assist is not None and want in ("SCORE_ONLY", "LABEL")
    if (observation is not None) != is_scored:
        raise ValueError(
            "only an audit that uses scores records an observation, and it records one of "
            "everybody whose score it used"
        )
    if observation is None or assist is None:
        return
    if set(observation) != set(SCORE_RECORD_FIELDS):
        raise ValueError(f"an observation holds {', '.join(SCORE_RECORD_FIELDS)}")
    low, high = observation["range"]
    price = observation["price"]
    m = observation["m"]
    pi = observation["pi"]
    if type(price) is not int or not 0 <= price <= (assist["max_price"] or price):
        raise ValueError(f"price {price!r} is beyond what was declared")
    if not 0 <= m <= 1 or not 0 < pi <= 1 or type(observation["draw"]) is not int:
        raise ValueError("m must lie in [0, 1], pi in (0, 1], and draw must be an integer")
    if not low - ROUNDING <= m - m / pi <= m + (1 - m) / pi <= high + ROUNDING:
        raise ValueError("the observation leaves the range that was declared")
    wants_label = observation["draw"] < pi * DRAW_RANGE
    _require_equal("want", want, "LABEL" if wants_label else "SCORE_ONLY")


def _check_closing(why: str, assist: Data | None) -> None:
    """Refuse that a group is closed for good where no largest price was declared."""
    has_max_price = assist is not None and assist.get("max_price") is not None
    if why != "budget" or not has_max_price:
        raise ValueError("a group is closed for good where nothing of that kind was declared")


def _check_random_accepts(group: str, before: list[int], counts: list[int], corrected: int) -> None:
    """Refuse counts in which more people are missing than outcomes were corrected."""
    numbers = (*counts, corrected)
    if len(numbers) != 4 or any(type(n) is not int or not 0 <= n < 2**53 for n in numbers):
        raise ValueError(f"random accepts {counts!r} of {group!r}, {corrected!r} corrected")
    good_before, bad_before, _ = before
    good, bad, _ = counts
    # The file grows: people stay in it, and an unknown outcome may become known. So a good or a bad
    # one is gone only if it was corrected.
    missing = max(good_before - good, bad_before - bad)
    if sum(counts) < sum(before) or missing > corrected:
        raise ValueError(f"of {before} random accepts of {group!r} some miss in {counts}")


def check_keys(rules: LedgerRules, keys: Iterable[Mapping[str, Any]], seed: str | None) -> None:
    """Check the key table: each key opens its person, nobody twice, the lottery as drawn.

    Parameters
    ----------
    rules
        All events of the export, applied.
    keys
        ``{"person", "pseudonym", "salt"}`` of everybody who was not erased.
    seed
        The seed in hexadecimal digits; without it draws are not checked.

    Raises
    ------
    Broken
        If a key is missing, or is not what the chain holds.
    """
    records = rules.people.records or {}
    pseudonyms: set[str] = set()
    opened: set[int] = set()
    secret = None if seed is None else bytes.fromhex(seed)
    for key in keys:
        number = key["person"]
        pseudonym = key["pseudonym"]
        person = records.get(number)
        if person is None or person.erased or number in opened:
            raise Broken(f"a key of person {number}, who has none or another")
        if hash_pseudonym(key["salt"], rules.uid, pseudonym) != person.who:
            raise Broken(f"the key of person {number} does not open what the chain holds")
        if pseudonym in pseudonyms:
            raise Broken(f"person {number} was asked about before under the same pseudonym")
        pseudonyms.add(pseudonym)
        opened.add(number)
        if secret is not None:
            _check_draws(secret, rules.settings["lottery"], person, pseudonym)
    if len(opened) + rules.people.erased != len(records):
        raise Broken("keys of people are missing who were not erased")


def _check_draws(secret: bytes, lottery: float, person: PersonRecord, pseudonym: str) -> None:
    """Repeat a person's draws, of the lottery and of an audit that uses scores."""
    won_lottery = draw(secret, pseudonym) < lottery * DRAW_RANGE
    if person.drawn not in (None, won_lottery):  # None: the lottery was not held for this person
        raise Broken(f"the lottery said otherwise about person {person.number}")
    if person.draw not in (None, draw_of_score(secret, person.number, pseudonym)):
        raise Broken(f"another number was drawn for person {person.number}")


# -- the table of rules ---------------------------------------------------------------------------

Rule = Callable[[LedgerRules, Data, Event], PersonRecord | None]
_FACTS = "person group decision want was request hold place? before? known?"
# What each type of event does, and its fields; a question mark says that one may be missing.
_TABLE: dict[str, tuple[Rule, str]] = {
    "asked": (
        LedgerRules._apply_arrival,
        "person who group decision want hold request why place? drawn? ended? closed? observation?",
    ),
    "executed": (LedgerRules._apply_execution, _FACTS),
    "revealed": (LedgerRules._apply_outcome, f"{_FACTS} cost overrun outcome"),
    "noted": (LedgerRules._apply_outcome, f"{_FACTS} outcome"),
    "withdrawn": (LedgerRules._apply_move, _FACTS),
    "overdue": (LedgerRules._apply_move, _FACTS),
    "written_off": (LedgerRules._apply_move, f"{_FACTS} cost overrun"),
    "corrected": (LedgerRules._apply_outcome, f"{_FACTS} cost? overrun? outcome why proposal?"),
    "conflict": (LedgerRules._apply_conflict, f"{_FACTS} told"),
    "erased": (LedgerRules._apply_erasure, f"{_FACTS} proposal?"),
    "scrubbed": (LedgerRules._apply_scrubbing, "erased"),
    "concluded": (LedgerRules._apply_conclusion, "why proposal?"),
    "paused": (LedgerRules._apply_pause, "why"),
    "resumed": (LedgerRules._apply_resumption, "why proposal?"),
    "budget": (LedgerRules._apply_budget, "budget before why proposal?"),
    "limits": (LedgerRules._apply_limits, "max_in_flight max_in_flight_groups why proposal?"),
    "random_accepts": (
        LedgerRules._apply_random_accepts,
        "random_accepts corrected why proposal?",
    ),
    "upgraded": (LedgerRules._apply_upgrade, "edition before software why proposal?"),
    "proposed": (LedgerRules._apply_proposal, "command arguments"),
    "rejected": (LedgerRules._apply_rejection, "proposal why"),
    "verdict": (LedgerRules._apply_verdict, "finding supersedes"),
}


def _needed_and_allowed(fields: str) -> tuple[set[str], set[str]]:
    """Return the fields that an event must have, and those that it may have."""
    needed = {name for name in fields.split() if not name.endswith("?")}
    allowed = set(fields.replace("?", "").split())
    return needed, allowed


class EventRule(NamedTuple):
    """What a type of event does, the fields that it must have, and those that it may have."""

    apply: Rule
    needed: set[str]
    allowed: set[str]


RULES = {
    kind: EventRule(rule, *_needed_and_allowed(fields)) for kind, (rule, fields) in _TABLE.items()
}
APPROVABLE = tuple(sorted(kind for kind, (_, fields) in _TABLE.items() if "proposal?" in fields))
"""Types of events for which an audit may ask for a second person."""


# -- the command line -----------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; return 0 if everything holds and 2 if not."""
    parser = argparse.ArgumentParser(description="Check an exported audit ledger.")
    parser.add_argument("export", help="the exported file, JSON lines")
    parser.add_argument("--head", help="hash of the last event, as handed out")
    parser.add_argument(
        "--checkpoint", action="append", default=[], metavar="SEQ:HASH", help="an earlier head"
    )
    parser.add_argument("--people", help="the key table, JSON lines: nobody was asked twice")
    parser.add_argument("--seed", help="the seed from the report once concluded: checks draws")
    options = parser.parse_args(arguments)
    try:
        checkpoints = [_parse_checkpoint(text) for text in options.checkpoint]
        people = None
        if options.people is not None:
            with open(options.people, encoding="ascii") as key_table:
                people = [json.loads(line) for line in key_table]
        with open(options.export, "rb") as export:
            proof = verify(
                export,
                head=options.head,
                checkpoints=checkpoints,
                people=people,
                seed=options.seed,
            )
    except (Broken, LookupError, OSError, ValueError) as error:
        print(f"BROKEN: {error}", file=sys.stderr)
        return 2
    print(proof)
    if options.head is None:
        print("    no --head given: a file cut at the end of a line would pass as well")
    return 0


def _parse_checkpoint(text: str) -> tuple[int, str]:
    """Return the number of events and the hash of ``SEQ:HASH``."""
    events, _, head = text.partition(":")
    return int(events), head


if __name__ == "__main__":
    sys.exit(main())
