"""Check an exported audit ledger with nothing but Python's standard library.

    python verify.py audit.jsonl --head HASH [--checkpoint SEQ:HASH] [--people FILE] [--seed HEX]

One line of the export is one event, written as canonical JSON (keys sorted, no spaces, ASCII). The
line's SHA-256 is its hash, and every line holds the hash of the line before it: whoever knows the
last hash (the head) knows that no byte of the file was changed, dropped, moved or added. On top of
that this program keeps the books anew: who was asked, what was held and paid, who did it and who
approved, and that the cap was respected after every single event.

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
from typing import Any

FORMAT = 3
GENESIS = "0" * 64  # what the first event names as the hash before it
SCORE_RECORD = ("score", "version", "price", "m", "pi", "range", "draw")  # known before asking
REASONS = (  # why nothing is wanted of somebody
    *("approved", "budget", "concluded", "decided", "in_flight", "left_out", "lottery"),
    *("not_wanted", "paused"),
)


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
MOVES = {  # kind of event -> the states that it may find a person in, and the one that follows
    "withdrawn": ((_S.RESERVED,), _S.WITHDRAWN),
    "overdue": ((_S.RESERVED, _S.EXECUTED), _S.OVERDUE),
    "written_off": ((_S.OVERDUE,), _S.WRITTEN_OFF),
}
TOLD = {  # kind of event that brings an outcome -> the states that it may find a person in
    "revealed": (*OPEN, _S.WRITTEN_OFF),
    "noted": UNASKED,
    "corrected": (*COUNTED, *UNASKED),
}
SWITCHES = {  # kind of event -> what of the books it turns on or off; a reason says why it is on
    "concluded": ("concluded", True),
    "paused": ("paused", True),
    "resumed": ("paused", False),
}
FIRST_STATES = {"NOTHING": _S.SKIPPED, "SCORE_ONLY": _S.SCORE_ONLY, "LABEL": _S.RESERVED}

_ENVELOPE = {"actor", "audit", "data", "prev", "seq", "time", "type"}
_WRITER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
# What an event says of a person -> the field of their record.
FACTS = {name: name for name in ("decision", "want", "request", "hold", "place")}
FACTS |= {"person": "number", "group": "group_name", "was": "state", "known": "outcome"}
_FACTS = "person group decision want was request hold place? before? known?"
Data = Mapping[str, Any]
Event = Mapping[str, Any]
# What data that somebody changed can do to whoever reads them.
MISREAD = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class Broken(Exception):
    """The export is not what the ledger wrote; the message names the line."""


@dataclass(slots=True)
class PersonRecord:
    """One person as of now: a row of the ledger's table, and what events change."""

    number: int  # in order of arrival, from 1; stands for the person in the chain
    group_name: str
    decision: int
    want: str
    state: str
    request: int | None  # place in request order, None if the audit was not consulted
    hold: int
    place: int | None = None  # place among the group's approved people
    person: str | None = None  # the pseudonym; None once erased, and where only events are known
    salt: str | None = None
    who: str = ""
    why: str = ""
    asked: str = ""
    drawn: int | None = None  # whether the lottery drew them, where there is one
    draw: int | None = None  # the number drawn for an audit that uses scores
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
        gone = self.states.get(_S.WITHDRAWN, 0) + self.states.get(_S.WRITTEN_OFF, 0)
        return self.in_flight + gone

    @property
    def scored(self) -> int:
        """People whose score was used, asked or not, by an audit that uses scores."""
        return sum(self.states.values()) - self.states.get(_S.SKIPPED, 0)


def people_by_state(groups: Iterable[GroupTally]) -> dict[str, int]:
    """Return state -> people, over all groups."""
    return dict(sum((Counter(group.states) for group in groups), Counter[str]()))


@dataclass
class Head:
    """Where an audit's chain ends and what its balance is."""

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
    books
        Where to keep the state of every person; new books if left out.
    apply
        Called with every event and its hash, to let it happen in the books; their own
        :meth:`LedgerRules.apply` if left out.

    Raises
    ------
    Broken
        At the first line that is not as it should be.
    """
    rules = LedgerRules({}) if rules is None else rules
    apply = rules.apply if apply is None else apply
    wanted = dict(checkpoints)
    for number, line in enumerate(lines, start=1):
        try:
            event, own = _read(line)
            apply(event, own)
            if "key" in event:
                _require("known key", event["key"] in rules.keys, False)
                rules.keys[event["key"]] = number
        except MISREAD as error:
            what = f"missing {error}" if isinstance(error, KeyError) else str(error)
            raise Broken(f"line {number}: {what}") from error
        expected = wanted.pop(number, None)
        if expected is not None and expected != own:
            raise Broken(f"line {number}: the checkpoint says hash {expected}")
    end = rules.head
    if not end.seq:
        raise Broken("the export is empty")
    if wanted:
        raise Broken(
            f"a checkpoint covers {max(wanted)} events; the export has {end.seq}: "
            "it was cut, or belongs to another audit"
        )
    if head is not None and head != end.hash:
        raise Broken(
            f"the export ends at {end.hash}, not at the given head {head}: it was cut, "
            "extended, or belongs to another moment"
        )
    try:
        if seed is not None:
            hashed = hashlib.sha256(bytes.fromhex(seed)).hexdigest()
            if hashed != rules.settings["seed_hash"]:
                raise Broken("the given seed is not the one whose hash the first event holds")
        if people is not None:
            rules.check_people(people, seed)
    except (LookupError, TypeError, ValueError) as error:
        raise Broken(f"the seed or the table of keys is none: {error}") from error
    return rules.proof()


def canonical(value: Mapping[str, Any]) -> str:
    r"""Write JSON in the one way that is hashed.

    Examples
    --------
    >>> canonical({"b": 1, "a": "é"})
    '{"a":"\\u00e9","b":1}'
    """
    return _WRITER.encode(value)


def digest(body: str) -> str:
    """Return the SHA-256 of an event's canonical JSON."""
    return hashlib.sha256(body.encode("ascii")).hexdigest()


def draw(seed: bytes, pseudonym: str) -> int:
    """Return a lottery number, 0 to 2**53 - 1: HMAC-SHA-256 of seed and pseudonym."""
    mac = hmac.digest(seed, pseudonym.encode("utf-8"), "sha256")
    return int.from_bytes(mac[:8], "big") >> 11


def draw_of_score(seed: bytes, number: int, pseudonym: str) -> int:
    """Return the number that says whether somebody with a score is asked, as a lottery's.

    It depends on the person's number, too: who is erased and asked about again is drawn anew.
    """
    return draw(seed, f"look\n{number}\n{pseudonym}")


def keyed(salt: str, audit: str, pseudonym: str) -> str:
    """Return what stands for a person in the chain; without the salt it says nothing of them."""
    message = f"{audit}\n{pseudonym}".encode()
    return hmac.digest(bytes.fromhex(salt), message, "sha256").hex()[:32]


def facts_of(person: PersonRecord) -> dict[str, Any]:
    """Return what every event about a person says of them, as they were before it."""
    facts = {name: getattr(person, own) for name, own in FACTS.items()} | {"was": str(person.state)}
    if person.paid or person.overrun:
        facts["before"] = [person.paid, person.overrun]
    return {name: own for name, own in facts.items() if own is not None or name == "request"}


class LedgerRules:
    """The rule book, and where its events have led: every person, all money, the audit.

    Parameters
    ----------
    people
        Number -> person: everybody for who verifies, those whom a transaction touches for who
        writes. None for who only follows events that were checked when they were written: each
        event holds the facts that its rule needs.
    """

    def __init__(self, people: dict[int, PersonRecord] | None = None) -> None:
        self.people = people
        self.uid = ""
        self.settings: Data = {}
        self.head = Head()
        self.groups: dict[str, GroupTally] = {}
        self.arrived = 0  # people
        self.requests = 0  # how often the audit was consulted
        self.max_in_flight: int | None = None
        self.max_in_flight_groups: dict[str, int] = {}
        self.random_accepts: dict[str, list[int]] = {}  # good, bad and unknown, of the last file
        self.concluded: str | None = None
        self.paused: str | None = None
        self.edition = 0  # of the statistics, by which requests are weighed
        self.recorded: dict[str, Any] | None = None  # the finding in the last verdict event
        self.verdict_seq: int | None = None
        self.taken_back: list[str] = []  # verdicts that later events undid, oldest first
        self.unsettled = False  # an answer or the cap changed and no verdict event has come since
        self.contradicted: set[int] = set()  # people whose conflict no correction has settled
        self.late = 0
        self.erased = 0
        self.scrubbed = 0  # how many of the erased are out of the database's files as well
        self.proposals: dict[int, dict[str, Any]] = {}  # that are open
        self.decided: dict[int, list[Any]] = {}  # kind of event, its person and reason
        self.acts: dict[str, dict[str, int]] = {}  # actor -> kind of event -> how many
        self.keys: dict[str, int] = {}  # client's key -> event, of an export that is verified

    def apply(self, event: Event, event_hash: str) -> PersonRecord | None:
        """Let the next event happen; return the person whom it changed.

        Raises
        ------
        ValueError
            If the event cannot follow those before it.
        """
        head, kind, data = self.head, event["type"], event["data"]
        if not _ENVELOPE <= set(event) <= _ENVELOPE | {"key"}:
            raise ValueError(f"an event has the fields {sorted(_ENVELOPE)}")
        _require("the event's number", event["seq"], head.seq + 1)
        _require("the hash of the event before", event["prev"], head.hash)
        for name in ("actor", "key") if "key" in event else ("actor",):
            if not isinstance(event[name], str) or not event[name]:
                raise ValueError("nobody is named who did it" if name == "actor" else "no key")
        person = None
        if event["seq"] == 1:
            self._created(event)
        else:
            _require("audit", event["audit"], self.uid)
            if kind not in RULES:
                raise ValueError(f"unknown type of event {kind!r}")
            rule, needed, allowed = RULES[kind]
            if not needed <= set(data) <= allowed:
                wrong = sorted((needed - set(data)) | (set(data) - allowed))
                raise ValueError(f"{kind!r} must not lack or add {', '.join(wrong)}")
            if kind in self.settings["approvals"]:
                self._check_approval(kind, data, event["actor"])
            elif "proposal" in data and kind != "rejected":
                raise ValueError(f"{kind!r} needs no approval in this audit")
            person = rule(self, data, event)
            if "proposal" in data:
                self.proposals.pop(data["proposal"])
                about = [kind, data.get("person"), data.get("why", "")]
                self.decided[data["proposal"]] = about
        head.seq, head.hash, head.time = event["seq"], event_hash, event["time"]
        acts = self.acts.setdefault(event["actor"], {})
        acts[kind] = acts.get(kind, 0) + 1
        if head.cap is not None and head.spent + head.reserved > head.cap:
            raise ValueError(f"{head.spent} spent + {head.reserved} reserved exceed cap {head.cap}")
        return person

    # -- what else can be asked -------------------------------------------------------------------

    @property
    def verdict(self) -> str | None:
        """The verdict that was recorded last."""
        return None if self.recorded is None else str(self.recorded["verdict"])

    def is_full(self, groups: Iterable[str]) -> bool:
        """Whether the limits of what is in flight forbid another request in one of the groups."""
        limit, limits = self.max_in_flight, self.max_in_flight_groups
        if limit is not None and sum(tally.in_flight for tally in self.groups.values()) >= limit:
            return True
        return any(g in limits and self.groups[g].in_flight >= limits[g] for g in groups)

    def price(self, person: PersonRecord, outcome: int) -> int:
        """Return what a person costs with this outcome."""
        if person.decision == 1:
            return 0
        return person.hold if outcome == 0 else int(self._costs(person.group_name)["feature"])

    def bill(self, person: PersonRecord, cost: int) -> tuple[int, int]:
        """Return what a cost comes to now: paid, and what the cap cannot hold (overrun)."""
        head, room = self.head, cost
        if head.cap is not None:
            reserved = head.reserved - (person.hold if person.open else 0)
            room = head.cap - (head.spent - person.paid) - reserved
        paid = min(cost, room)
        return paid, cost - paid

    def proof(self) -> Proof:
        """Return what these books say."""
        told = {name: self.settings[name] for name in ("name", "currency", "decimals")}
        states = people_by_state(self.groups.values())
        known: dict[str, Any] = {n: getattr(self, n) for n in ("erased", "verdict", "edition")}
        return Proof(**vars(self.head), **told, **known, audit=self.uid, states=states)

    def check_people(self, keys: Iterable[Mapping[str, Any]], seed: str | None) -> None:
        """Check the key table: each key opens its person, nobody twice, the lottery as drawn."""
        names, opened, people = set(), set(), self.people or {}
        secret = None if seed is None else bytes.fromhex(seed)
        for key in keys:
            number, name = key["person"], key["pseudonym"]
            person = people.get(number)
            if person is None or person.erased or number in opened:
                raise Broken(f"a key of person {number}, who has none or another")
            if keyed(key["salt"], self.uid, name) != person.who:
                raise Broken(f"the key of person {number} does not open what the chain holds")
            if name in names:
                raise Broken(f"person {number} was asked about before under the same pseudonym")
            names.add(name)
            opened.add(number)
            if secret is None:
                continue
            won = draw(secret, name) < self.settings["lottery"] * 2**53
            if person.drawn not in (None, won):
                raise Broken(f"the lottery said otherwise about person {number}")
            if person.draw not in (None, draw_of_score(secret, number, name)):
                raise Broken(f"another number was drawn for person {number}")
        if len(opened) + self.erased != len(people):
            raise Broken("keys of people are missing who were not erased")

    # -- people -----------------------------------------------------------------------------------

    def _created(self, event: Event) -> None:
        data = event["data"]
        _require("the first event's type", event["type"], "created")
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']} is not this program's ({FORMAT})")
        self.settings, self.uid, self.edition = data, event["audit"], data["edition"]
        self.head.cap = data["budget"]
        self.groups = {group: GroupTally() for group in data["groups"]}
        self.max_in_flight = data["max_in_flight"]
        self.max_in_flight_groups = dict(data["max_in_flight_groups"])
        cells = data["past"]["cells"]
        self.random_accepts = {g: cells[g].get("random_accepts") or [0, 0, 0] for g in self.groups}

    def _asked(self, data: Data, event: Event) -> PersonRecord:
        group, decision, want = data["group"], _binary(data["decision"]), data["want"]
        _require("person", data["person"], self.arrived + 1)
        if group not in self.groups:
            raise ValueError(f"unknown group {group!r}")
        if want not in FIRST_STATES:
            raise ValueError(f"unknown request {want!r}")
        tally = self.groups[group]
        if decision == 1:
            _require("place", data["place"], tally.approved)
        elif "place" in data:
            raise ValueError("only the approved have a place")
        record = data.get("observation")
        self._check_score(want, record)
        most = 0  # that this can cost
        if decision == 0 and want != "NOTHING":
            costs = self._costs(group)
            price = costs["label"] if record is None else record["price"]
            most = costs["feature"] + (price if want == "LABEL" else 0)
        _require("hold", data["hold"], most)
        self._check_reason(data)
        state, drawn = FIRST_STATES[want], data.get("drawn")
        person = PersonRecord(
            *(self.arrived + 1, group, decision, want, state, data["request"], data["hold"]),
            data.get("place"),
            who=data["who"],
            why=data["why"],
            asked=event["time"],
            drawn=None if drawn is None else int(drawn),
            draw=None if record is None else record["draw"],
        )
        self.arrived += 1
        tally.approved += decision
        tally.denied += 1 - decision
        tally.states[state] = tally.states.get(state, 0) + 1
        if state == _S.SCORE_ONLY:
            person.paid = person.hold
            self._record_spending(tally, spent=person.hold)
        elif state == _S.RESERVED:
            if decision == 0 and self.is_full([group]):
                raise ValueError(f"too many requests in flight for another one in {group!r}")
            self._record_spending(tally, reserved=person.hold)
            tally.in_flight += 1 - decision
        if self.people is not None:
            self.people[person.number] = person
        return person

    def _check_reason(self, data: Data) -> None:
        want, why, request, drawn = data["want"], data["why"], data["request"], data.get("drawn")
        if (want == "NOTHING") != (why in REASONS):
            raise ValueError(f"{want} because of {why!r}")
        if request is not None:
            if request < self.requests:
                raise ValueError(f"request {request} after request {self.requests - 1}")
            self.requests = request + 1
        paused, concluded = self.paused is not None, self.concluded is not None
        if want != "NOTHING":
            if request is None or paused or concluded:
                raise ValueError("somebody was asked while the audit asked nobody")
            _require("drawn", drawn, True if self.settings["lottery"] < 1 else None)
        if (drawn is False) != (why == "lottery"):
            raise ValueError(f"drawn is {drawn} and the reason {why!r}")
        assist = self.settings["options"].get("assist") or {}
        if "closed" in data and (why != "budget" or assist.get("max_price") is None):
            raise ValueError("a group is closed for good where nothing of that kind was declared")
        if (why == "paused" and not paused) or (why == "concluded" and not concluded):
            raise ValueError(f"nobody was asked for being {why}, and the audit is not")

    def _executed(self, data: Data, _: Event) -> PersonRecord:
        person = self._person(data)
        if person.want != "LABEL" or person.executed or person.state == _S.WITHDRAWN:
            raise ValueError("nothing was to be carried out")
        person.executed = 1
        if person.state == _S.RESERVED:  # the message may come after the outcome
            self._move(person, _S.EXECUTED)
        return person

    def _told(self, data: Data, event: Event) -> PersonRecord:
        """Take an outcome: revealed as asked for, noted although nobody asked, or corrected."""
        kind, outcome = event["type"], _binary(data["outcome"])
        person = self._person(data, *TOLD[kind])
        if (person.outcome is None) == (kind == "corrected") or outcome == person.outcome:
            raise ValueError("a correction, and nothing else, changes an outcome that is known")
        if person.state not in UNASKED:
            late = person.state == _S.WRITTEN_OFF
            self.late += kind == "revealed" and (late or self.recorded is not None)
            self.unsettled = self.unsettled or late or kind == "corrected"
            target = _S.CORRECTED if kind == "corrected" else _S.REVEALED
            self._settle(person, target, self.price(person, outcome), data)
            if person.decision == 0:
                tally = self.groups[person.group_name]
                tally.positive += (outcome == 1) - (person.outcome == 1)
                tally.negative += (outcome == 0) - (person.outcome == 0)
        elif "cost" in data or "overrun" in data:
            raise ValueError("an outcome that nobody asked for costs nothing")
        if kind == "corrected":
            self.contradicted.discard(person.number)
        person.outcome = outcome
        return person

    def _moved(self, data: Data, event: Event) -> PersonRecord:
        sources, target = MOVES[event["type"]]
        person = self._person(data, *sources)
        if target == _S.OVERDUE:
            self._move(person, target)
        elif target == _S.WITHDRAWN:
            self._settle(person, target, 0, {"cost": 0, "overrun": 0})
        else:
            self._settle(person, target, person.hold, data)
        return person

    def _conflict(self, data: Data, _: Event) -> PersonRecord:
        person = self._person(data)
        if person.outcome is None or person.conflicted or _binary(data["told"]) == person.outcome:
            raise ValueError("a conflict is reported where there is none, or again")
        person.conflicted = 1
        self.contradicted.add(person.number)
        return person

    def _erased(self, data: Data, _: Event) -> PersonRecord:
        person = self._person(data)
        if person.open:
            raise ValueError("somebody was erased whose request was open")
        person.erased, person.person, person.salt = 1, None, None
        self.erased += 1
        return person

    # -- the audit --------------------------------------------------------------------------------

    def _scrubbed(self, data: Data, _: Event) -> None:
        if type(data["erased"]) is not int or not self.scrubbed < data["erased"] <= self.erased:
            raise ValueError(f"{data['erased']!r} people are said to be out of the files")
        self.scrubbed = data["erased"]

    def _switched(self, data: Data, event: Event) -> None:
        name, on = SWITCHES[event["type"]]
        _require(f"{name} before", getattr(self, name) is not None, not on)
        setattr(self, name, data["why"] if on else None)

    def _budget(self, data: Data, _: Event) -> None:
        _require("before", data["before"], self.head.cap)
        self.head.cap = data["budget"]
        self.unsettled = True

    def _change_limits(self, data: Data, _: Event) -> None:
        self.max_in_flight = data["max_in_flight"]
        self.max_in_flight_groups = dict(data["max_in_flight_groups"])

    def _change_random_accepts(self, data: Data, _: Event) -> None:
        """Take in a later file of a test programme, in which nobody of the last one is missing."""
        _require("groups", sorted(data["random_accepts"]), sorted(self.groups))
        _require("groups beside them", sorted(set(data["corrected"]) - set(self.groups)), [])
        for group, now in data["random_accepts"].items():
            before, changed = self.random_accepts[group], data["corrected"].get(group, 0)
            counts = (*now, changed)
            if len(counts) != 4 or any(type(n) is not int or not 0 <= n < 2**53 for n in counts):
                raise ValueError(f"random accepts {now!r} of {group!r}, {changed!r} corrected")
            fewer = max(old - new for old, new in zip(before[:2], now[:2], strict=True))
            if sum(now) < sum(before) or fewer > changed:
                raise ValueError(f"of {before} random accepts of {group!r} some miss in {now}")
        self.random_accepts, self.unsettled = dict(data["random_accepts"]), True

    def _upgraded(self, data: Data, _: Event) -> None:
        _require("before", data["before"], self.edition)
        if type(data["edition"]) is not int or data["edition"] == self.edition:
            raise ValueError(f"edition {data['edition']!r} after edition {self.edition}")
        self.edition, self.unsettled = data["edition"], True

    def _proposed(self, data: Data, event: Event) -> None:
        if data["command"] not in self.settings["approvals"]:
            raise ValueError(f"{data['command']!r} needs no approval in this audit")
        self.proposals[event["seq"]] = {**data, "actor": event["actor"], "time": event["time"]}

    def _rejected(self, data: Data, _: Event) -> None:
        if data["proposal"] not in self.proposals:
            raise ValueError(f"there is no open proposal {data['proposal']}")

    def _check_approval(self, kind: str, data: Data, actor: str) -> None:
        proposal = self.proposals.get(data.get("proposal", 0), {"command": ""})
        if proposal["command"] != kind:
            raise ValueError(f"{kind!r} needs the approval of a proposal, and has none")
        if actor == proposal["actor"]:
            raise ValueError(f"{actor!r} approved their own proposal")
        for name, value in proposal["arguments"].items():
            _require(name, data[name], value)

    def _verdict(self, data: Data, event: Event) -> None:
        _require("supersedes", data["supersedes"], self.verdict_seq)
        before, self.recorded = self.verdict, data["finding"]
        if self.verdict not in (None, "FAIR", "UNFAIR", "INCONCLUSIVE"):
            raise ValueError(f"unknown verdict {self.verdict!r}")
        if before in ("FAIR", "UNFAIR") and self.verdict != before:
            self.taken_back.append(before)
        self.verdict_seq, self.unsettled = event["seq"], False

    # -- people and money -------------------------------------------------------------------------

    def _person(self, data: Data, *states: PersonState) -> PersonRecord:
        """Return the person as they were before the event, which must say the same of them."""
        number = data["person"]
        if type(number) is not int or not 0 < number <= self.arrived:
            raise ValueError(f"nobody asked about person {number!r} before")
        person = self._by_facts(data) if self.people is None else self.people[number]
        if person.erased:
            raise ValueError(f"person {number} was erased before")
        if states and person.state not in states:
            raise ValueError(f"person {number} is {person.state}; must be {' or '.join(states)}")
        facts = facts_of(person)
        for name in (*FACTS, "before"):
            _require(name, data.get(name), facts.get(name))
        return person

    def _by_facts(self, data: Data) -> PersonRecord:
        """Return a person as an event describes them: enough for its rule."""
        paid, overrun = data.get("before", (0, 0))
        known: dict[str, Any] = {own: data.get(name) for name, own in FACTS.items()}
        return PersonRecord(**known, paid=paid, overrun=overrun)

    def _move(self, person: PersonRecord, state: PersonState) -> None:
        states = self.groups[person.group_name].states
        states[person.state] -= 1
        states[state] = states.get(state, 0) + 1
        person.state = state

    def _settle(self, person: PersonRecord, state: PersonState, cost: int, data: Data) -> None:
        """Post what a person costs now in place of what was held or posted before."""
        tally, (paid, overrun) = self.groups[person.group_name], self.bill(person, cost)
        _require("cost", data["cost"], paid)
        _require("overrun", data["overrun"], overrun)
        held = person.hold if person.open else 0
        tally.in_flight -= 1 - person.decision if person.open else 0
        self._record_spending(tally, paid - person.paid, -held, overrun - person.overrun)
        person.paid, person.overrun = paid, overrun
        self._move(person, state)

    def _record_spending(
        self, tally: GroupTally, spent: int = 0, reserved: int = 0, overrun: int = 0
    ) -> None:
        for account in (self.head, tally):
            account.spent += spent
            account.reserved += reserved
            account.overrun += overrun

    def _check_score(self, want: str, record: Data | None) -> None:
        """Check that somebody was asked by the number drawn, at a price that was declared."""
        assist = self.settings["options"].get("assist")
        if (record is not None) != (assist is not None and want in ("SCORE_ONLY", "LABEL")):
            raise ValueError("only an audit that uses scores observes, and it always does")
        if record is None:
            return
        if set(record) != set(SCORE_RECORD):
            raise ValueError(f"an observation holds {', '.join(SCORE_RECORD)}")
        (low, high), price, m, pi = record["range"], record["price"], record["m"], record["pi"]
        if type(price) is not int or not 0 <= price <= (assist["max_price"] or price):
            raise ValueError(f"price {price!r} is beyond what was declared")
        if not 0 <= m <= 1 or not 0 < pi <= 1 or type(record["draw"]) is not int:
            raise ValueError("a guess, a chance or a draw is none")
        if not low - 1e-9 <= m - m / pi <= m + (1 - m) / pi <= high + 1e-9:
            raise ValueError("the observation leaves the range that was declared")
        _require("want", want, "LABEL" if record["draw"] < pi * 2**53 else "SCORE_ONLY")

    def _costs(self, group: str) -> dict[str, int]:
        costs = self.settings["costs"]
        return costs["groups"].get(group, costs)  # type: ignore[no-any-return]


Rule = Callable[[LedgerRules, Data, Event], PersonRecord | None]
# What each kind of event does, and what it holds; a question mark says that it may be missing.
_TABLE: dict[str, tuple[Rule, str]] = {
    "asked": (
        LedgerRules._asked,
        "person who group decision want hold request why place? drawn? ended? closed? observation?",
    ),
    "executed": (LedgerRules._executed, _FACTS),
    "revealed": (LedgerRules._told, f"{_FACTS} cost overrun outcome"),
    "noted": (LedgerRules._told, f"{_FACTS} outcome"),
    "withdrawn": (LedgerRules._moved, _FACTS),
    "overdue": (LedgerRules._moved, _FACTS),
    "written_off": (LedgerRules._moved, f"{_FACTS} cost overrun"),
    "corrected": (LedgerRules._told, f"{_FACTS} cost? overrun? outcome why proposal?"),
    "conflict": (LedgerRules._conflict, f"{_FACTS} told"),
    "erased": (LedgerRules._erased, f"{_FACTS} proposal?"),
    "scrubbed": (LedgerRules._scrubbed, "erased"),
    "concluded": (LedgerRules._switched, "why proposal?"),
    "paused": (LedgerRules._switched, "why"),
    "resumed": (LedgerRules._switched, "why proposal?"),
    "budget": (LedgerRules._budget, "budget before why proposal?"),
    "limits": (LedgerRules._change_limits, "max_in_flight max_in_flight_groups why proposal?"),
    "random_accepts": (
        LedgerRules._change_random_accepts,
        "random_accepts corrected why proposal?",
    ),
    "upgraded": (LedgerRules._upgraded, "edition before software why proposal?"),
    "proposed": (LedgerRules._proposed, "command arguments"),
    "rejected": (LedgerRules._rejected, "proposal why"),
    "verdict": (LedgerRules._verdict, "finding supersedes"),
}
RULES: dict[str, tuple[Rule, set[str], set[str]]] = {
    kind: (rule, {n for n in names.split() if "?" not in n}, set(names.replace("?", "").split()))
    for kind, (rule, names) in _TABLE.items()
}
"""Kind of event -> its rule, what it must hold, and what it may hold."""
APPROVABLE = tuple(sorted(kind for kind, (_, n) in _TABLE.items() if "proposal?" in n))
"""Kinds of events for which an audit may ask for a second person."""


def _require(what: str, found: object, right: object) -> None:
    if found != right or type(found) is not type(right):
        raise ValueError(f"{what} is {found!r}; by the events before it must be {right!r}")


def _read(line: bytes) -> tuple[dict[str, Any], str]:
    if not line.endswith(b"\n"):
        raise ValueError("the line does not end: the file was cut")
    body = line[:-1].decode("ascii")
    event = json.loads(body)
    if not isinstance(event, dict) or canonical(event) != body:
        raise ValueError("not canonical JSON: the line was changed after it was written")
    return event, digest(body)


def _binary(value: object) -> int:
    if type(value) is not int or value not in (0, 1):
        raise ValueError(f"decision or outcome {value!r} is not 0 or 1")
    return value


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
        pairs = [(int(n), h) for n, _, h in (c.partition(":") for c in options.checkpoint)]
        people = None
        if options.people is not None:
            with open(options.people, encoding="ascii") as file:
                people = [json.loads(line) for line in file]
        with open(options.export, "rb") as export:
            proof = verify(
                export, head=options.head, checkpoints=pairs, people=people, seed=options.seed
            )
    except (Broken, LookupError, OSError, ValueError) as error:
        print(f"BROKEN: {error}", file=sys.stderr)
        return 2
    print(proof)
    if options.head is None:
        print("    no --head given: a file cut at the end of a line would pass as well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
