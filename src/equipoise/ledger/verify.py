"""Check an exported audit ledger with nothing but Python's standard library.

    python verify.py audit.jsonl --head HASH [--checkpoint SEQ:HASH] [--people FILE] [--seed HEX]

One line of the export is one event, written as canonical JSON (keys sorted, no spaces, ASCII). The
line's SHA-256 is its hash, and every line holds the hash of the line before it: whoever knows the
last hash (the head) knows that no byte of the file was changed, dropped, moved or added. On top of
that this program keeps the books anew: who was asked, what was held and paid, who did it and who
approved, and that the cap was respected after every single event.

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
from typing import Any

__all__ = [
    "APPROVABLE",
    "FIRST_STATES",
    "FORMAT",
    "GENESIS",
    "OBSERVATION",
    "OPEN",
    "Books",
    "Broken",
    "Person",
    "Summary",
    "canonical",
    "digest",
    "draw",
    "draw_of_look",
    "keyed",
    "main",
    "verify",
]

FORMAT = 3
GENESIS = "0" * 64  # what the first event names as the hash before it
OPEN = ("RESERVED", "EXECUTED", "OVERDUE")  # states in which money is held
APPROVABLE = ("budget", "concluded", "corrected", "erased", "limits", "resumed")
OBSERVATION = ("score", "version", "price", "m", "pi", "range", "draw")  # seen before asking
FIRST_STATES = {"NOTHING": "SKIPPED", "SCORE_ONLY": "SCORE_ONLY"}  # everybody else is RESERVED
REASONS = (
    *("approved", "budget", "concluded", "decided", "in_flight", "lottery"),
    *("not_wanted", "paused"),
)

_ENVELOPE = {"actor", "audit", "data", "prev", "seq", "time", "type"}
_WRITER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_FACTS = "person group decision want was request"
# What each kind of event holds; a question mark says that it may be missing.
FIELDS = {
    "asked": "person who group decision want hold request why place? drawn? ended? closed? "
    "observation?",
    "executed": f"{_FACTS} place? moved",
    "revealed": f"{_FACTS} place? before? cost overrun late after_verdict outcome features?",
    "described": f"{_FACTS} place? before? cost overrun features",
    "noted": f"{_FACTS} place? outcome",
    "withdrawn": f"{_FACTS} place? cost overrun",
    "overdue": f"{_FACTS} place?",
    "written_off": f"{_FACTS} place? before? cost overrun",
    "corrected": f"{_FACTS} place? before? cost? overrun? outcome reason proposal?",
    "conflict": f"{_FACTS} place? told stored",
    "erased": f"{_FACTS} place? proposal?",
    "features_erased": "",
    "concluded": "why proposal?",
    "paused": "why",
    "resumed": "why proposal?",
    "budget": "budget before why proposal?",
    "limits": "max_in_flight max_in_flight_groups why proposal?",
    "proposed": "command arguments",
    "rejected": "proposal why",
    "verdict": "finding supersedes",
}
_KEYS = {
    kind: (
        {name for name in names.split() if not name.endswith("?")},
        {name.rstrip("?") for name in names.split()},
    )
    for kind, names in FIELDS.items()
}


class Broken(Exception):
    """The export is not what the ledger wrote; the message names the line."""


@dataclass(slots=True)
class Person:
    """What the events so far say about one person."""

    who: str
    group: str
    decision: int
    want: str
    state: str
    why: str
    request: int | None
    place: int | None
    hold: int
    asked: str
    drawn: bool | None
    paid: int = 0
    overrun: int = 0
    outcome: int | None = None
    executed: int = 0
    conflicted: int = 0
    erased: int = 0
    features: str | None = None
    look: int | None = None  # the number drawn for an audit that looks before it asks


@dataclass
class Summary:
    """What was checked."""

    audit: str = ""
    name: str = ""
    events: int = 0
    head: str = GENESIS
    time: str = ""
    cap: int | None = None
    spent: int = 0
    reserved: int = 0
    overrun: int = 0
    verdict: str | None = None
    erased: int = 0
    currency: str = ""
    decimals: int = 0
    states: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        cap = "no cap" if self.cap is None else f"cap {self._money(self.cap)}"
        states = ", ".join(f"{n} {s.lower()}" for s, n in sorted(self.states.items()) if n)
        return (
            f"OK: audit {self.name!r} ({self.audit}), {self.events} events, head {self.head}\n"
            f"    people: {states or 'none'}; {self.erased} of them erased\n"
            f"    money: {self._money(self.spent)} spent + {self._money(self.reserved)} reserved, "
            f"{cap}, {self._money(self.overrun)} beyond it after corrections\n"
            f"    verdict: {self.verdict or 'none yet'}"
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
    books: Books | None = None,
    also: Callable[[Mapping[str, Any], str], None] | None = None,
) -> Summary:
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
        The seed from the final report.
    books
        Where to keep the state of every person; new books if left out.
    also
        Called with every event, and its hash, that passed.

    Raises
    ------
    Broken
        At the first line that is not as it should be.
    """
    books = Books() if books is None else books
    wanted = dict(checkpoints)
    for number, line in enumerate(lines, start=1):
        try:
            event, own = _read(line)
            books.take(event, own)
            if also is not None:
                also(event, own)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            what = f"missing {error}" if isinstance(error, KeyError) else str(error)
            raise Broken(f"line {number}: {what}") from error
        expected = wanted.pop(number, None)
        if expected is not None and expected != own:
            raise Broken(f"line {number}: the checkpoint says hash {expected}")
    summary = books.summary
    if not summary.events:
        raise Broken("the export is empty")
    if wanted:
        raise Broken(
            f"a checkpoint covers {max(wanted)} events; the export has {summary.events}: "
            "it was cut, or belongs to another audit"
        )
    if head is not None and head != summary.head:
        raise Broken(
            f"the export ends at {summary.head}, not at the given head {head}: it was cut, "
            "extended, or belongs to another moment"
        )
    try:
        if seed is not None:
            books.require_seed(seed)
        if people is not None:
            books.check_people(people, seed)
    except (LookupError, TypeError, ValueError) as error:
        raise Broken(f"the seed or the table of keys is none: {error}") from error
    return summary


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


def draw_of_look(seed: bytes, number: int, pseudonym: str) -> int:
    """Return the number that says whether somebody who was looked at is asked, as a lottery's.

    It depends on the person's number, too: who is erased and asked about again is drawn anew.
    """
    return draw(seed, f"look\n{number}\n{pseudonym}")


def keyed(salt: str, audit: str, pseudonym: str) -> str:
    """Return what stands for a person in the chain; without the salt it says nothing of them."""
    message = f"{audit}\n{pseudonym}".encode()
    return hmac.digest(bytes.fromhex(salt), message, "sha256").hex()[:32]


class Books:
    """The state of every person and of the money, kept anew from the events alone."""

    def __init__(self) -> None:
        self.summary = Summary()
        self.people: list[Person] = []  # person number n is people[n - 1]
        self.proposals: dict[int, tuple[str, Mapping[str, Any], str]] = {}
        self.paused = False
        self.concluded = False
        self.features_erased = False
        self._settings: dict[str, Any] = {}
        self._limits: Mapping[str, Any] = {}
        self._in_flight: Counter[str] = Counter()
        self._places: Counter[str] = Counter()
        self._request = -1
        self._verdict_seq: int | None = None
        self._rules: dict[str, Callable[[dict[str, Any], Mapping[str, Any]], None]] = {
            "asked": self._asked,
            "executed": self._executed,
            "revealed": self._revealed,
            "described": self._described,
            "noted": self._noted,
            "withdrawn": self._withdrawn,
            "overdue": self._overdue,
            "written_off": self._written_off,
            "corrected": self._corrected,
            "conflict": self._conflict,
            "erased": self._erased,
            "features_erased": self._features_erased,
            "concluded": self._concluded,
            "paused": self._paused,
            "resumed": self._resumed,
            "budget": self._budget,
            "limits": self._change_limits,
            "proposed": self._proposed,
            "rejected": self._rejected,
            "verdict": self._verdict,
        }

    def take(self, event: Mapping[str, Any], own: str) -> None:
        """Check one event against all before it; raise ValueError if it cannot follow them."""
        summary, kind, data = self.summary, event["type"], event["data"]
        if set(event) != _ENVELOPE:
            raise ValueError(f"an event has the fields {sorted(_ENVELOPE)}")
        if event["seq"] != summary.events + 1:
            raise ValueError(f"event {event['seq']} where {summary.events + 1} should be")
        if event["prev"] != summary.head:
            raise ValueError(f"the event before has hash {summary.head}, not {event['prev']}")
        if not isinstance(event["actor"], str) or not event["actor"]:
            raise ValueError("nobody is named who did it")
        if event["seq"] == 1:
            self._created(event)
        else:
            if event["audit"] != summary.audit:
                raise ValueError(f"an event of another audit, {event['audit']}")
            rule = self._rules.get(kind)
            if rule is None:
                raise ValueError(f"unknown type of event {kind!r}")
            needed, allowed = _KEYS[kind]
            if not needed <= set(data) <= allowed:
                wrong = sorted((needed - set(data)) | (set(data) - allowed))
                raise ValueError(f"{kind!r} must not lack or add {', '.join(wrong)}")
            if kind in self._settings["approvals"]:
                self._check_approval(kind, data, event["actor"])
            elif "proposal" in data and kind != "rejected":
                raise ValueError(f"{kind!r} needs no approval in this audit")
            rule(data, event)
        summary.events, summary.head, summary.time = event["seq"], own, event["time"]
        self._require_cap()

    def require_seed(self, seed: str) -> None:
        """Raise unless this is the seed whose hash the first event holds."""
        if hashlib.sha256(bytes.fromhex(seed)).hexdigest() != self._settings["seed_hash"]:
            raise Broken("the given seed is not the one whose hash the first event holds")

    def check_people(self, keys: Iterable[Mapping[str, Any]], seed: str | None) -> None:
        """Check the key table: each key opens its person, nobody twice, the lottery as drawn."""
        names, opened = set(), set()
        for key in keys:
            number, name = key["person"], key["pseudonym"]
            person = self.people[number - 1] if 0 < number <= len(self.people) else None
            if person is None or person.erased or number in opened:
                raise Broken(f"a key of person {number}, who has none or another")
            if keyed(key["salt"], self.summary.audit, name) != person.who:
                raise Broken(f"the key of person {number} does not open what the chain holds")
            if name in names:
                raise Broken(f"person {number} was asked about before under the same pseudonym")
            names.add(name)
            opened.add(number)
            chance = self._settings["lottery"]
            if seed is not None and person.drawn is not None:
                won = draw(bytes.fromhex(seed), name) < chance * 2**53
                if won != person.drawn:
                    raise Broken(f"the lottery said otherwise about person {number}")
            if seed is None or person.look is None:
                continue
            if draw_of_look(bytes.fromhex(seed), number, name) != person.look:
                raise Broken(f"another number was drawn for person {number}")
        if len(opened) + self.summary.erased != len(self.people):
            raise Broken("keys of people are missing who were not erased")

    # -- people -----------------------------------------------------------------------------------

    def _created(self, event: Mapping[str, Any]) -> None:
        data = event["data"]
        if event["type"] != "created":
            raise ValueError("the first event, and no other, creates the audit")
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']} is not this program's ({FORMAT})")
        self._settings = self._limits = data
        self.summary.audit, self.summary.name = event["audit"], data["name"]
        self.summary.cap = data["budget"]
        self.summary.currency, self.summary.decimals = data["currency"], data["decimals"]

    def _asked(self, data: dict[str, Any], event: Mapping[str, Any]) -> None:
        group, decision, want, why = data["group"], data["decision"], data["want"], data["why"]
        self._require("person", data["person"], len(self.people) + 1)
        if group not in self._settings["groups"]:
            raise ValueError(f"unknown group {group!r}")
        if type(decision) is not int or decision not in (0, 1):
            raise ValueError(f"decision {decision!r} is not 0 or 1")
        if decision == 1:
            self._require("place", data["place"], self._places[group])
            self._places[group] += 1
        elif "place" in data:
            raise ValueError("only the approved have a place")
        look = data.get("observation")
        self._check_look(want, look)
        self._require("hold", data["hold"], self._worst(group, decision, want, look))
        self._check_reason(data, want, why)
        state = FIRST_STATES.get(want, "RESERVED")
        self.people.append(
            Person(
                *(data["who"], group, decision, want, state, why, data["request"]),
                *(data.get("place"), data["hold"], event["time"], data.get("drawn")),
                paid=data["hold"] if state == "SCORE_ONLY" else 0,
                look=None if look is None else look["draw"],
            )
        )
        self.summary.spent += self.people[-1].paid
        self.summary.states[state] += 1
        if state == "RESERVED":
            self.summary.reserved += data["hold"]
            if decision == 0:
                self._in_flight[group] += 1
                self._check_in_flight(group)

    def _check_reason(self, data: Mapping[str, Any], want: str, why: str) -> None:
        if (want == "NOTHING") != (why in REASONS):
            raise ValueError(f"{want} because of {why!r}")
        request, drawn, lottery = data["request"], data.get("drawn"), self._settings["lottery"]
        if request is not None:
            if request <= self._request:
                raise ValueError(f"request {request} after request {self._request}")
            self._request = request
        if want != "NOTHING":
            if request is None or self.paused or self.concluded:
                raise ValueError("somebody was asked while the audit asked nobody")
            self._require("drawn", drawn, True if lottery < 1 else None)
        if (drawn is False) != (why == "lottery"):
            raise ValueError(f"drawn is {drawn} and the reason {why!r}")
        assist = self._settings["options"].get("assist") or {}
        if "closed" in data and (why != "budget" or assist.get("max_price") is None):
            raise ValueError("a group is closed for good where nothing of that kind was declared")
        if (why == "paused" and not self.paused) or (why == "concluded" and not self.concluded):
            raise ValueError(f"nobody was asked for being {why}, and the audit is not")

    def _executed(self, data: dict[str, Any], _: Mapping[str, Any]) -> None:
        person = self._person(data)
        if person.want in FIRST_STATES or person.executed or person.state == "WITHDRAWN":
            raise ValueError("nothing was to be carried out")
        self._require("moved", data["moved"], person.state == "RESERVED")
        person.executed = 1
        if data["moved"]:
            self._move(person, "EXECUTED")

    def _revealed(self, data: dict[str, Any], _: Mapping[str, Any]) -> None:
        person = self._person(data, *OPEN, "WRITTEN_OFF")
        if person.want != "LABEL":
            raise ValueError("an outcome is revealed that was not asked for")
        self._require("late", data["late"], person.state == "WRITTEN_OFF")
        self._require("after_verdict", data["after_verdict"], self.summary.verdict is not None)
        person.outcome = _binary(data["outcome"])
        person.features = data.get("features")
        self._settle(person, "REVEALED", self._price(person, person.outcome), data)

    def _described(self, data: dict[str, Any], _: Mapping[str, Any]) -> None:
        person = self._person(data, *OPEN)
        if person.want != "FEATURES":
            raise ValueError("features are described that were not asked for")
        person.features = data["features"]
        self._settle(person, "DESCRIBED", person.hold, data)

    def _noted(self, data: dict[str, Any], _: Mapping[str, Any]) -> None:
        person = self._person(data, "SKIPPED", "SCORE_ONLY", "WITHDRAWN")
        if person.outcome is not None:
            raise ValueError("an outcome is noted twice")
        person.outcome = _binary(data["outcome"])

    def _withdrawn(self, data: dict[str, Any], _: Mapping[str, Any]) -> None:
        self._settle(self._person(data, "RESERVED"), "WITHDRAWN", 0, data)

    def _overdue(self, data: dict[str, Any], _: Mapping[str, Any]) -> None:
        self._move(self._person(data, "RESERVED", "EXECUTED"), "OVERDUE")

    def _written_off(self, data: dict[str, Any], _: Mapping[str, Any]) -> None:
        person = self._person(data, "OVERDUE")
        self._settle(person, "WRITTEN_OFF", person.hold, data)

    def _corrected(self, data: dict[str, Any], _: Mapping[str, Any]) -> None:
        person = self._person(data, "REVEALED", "CORRECTED", "SKIPPED", "SCORE_ONLY", "WITHDRAWN")
        if person.outcome is None or data["outcome"] == person.outcome:
            raise ValueError("a correction must change an outcome that is known")
        person.outcome = _binary(data["outcome"])
        if person.state in ("REVEALED", "CORRECTED"):
            self._settle(person, "CORRECTED", self._price(person, person.outcome), data)

    def _conflict(self, data: dict[str, Any], _: Mapping[str, Any]) -> None:
        person = self._person(data)
        self._require("stored", data["stored"], person.outcome)
        if _binary(data["told"]) == person.outcome or person.conflicted:
            raise ValueError("a conflict is reported where there is none, or again")
        person.conflicted = 1

    def _erased(self, data: dict[str, Any], _: Mapping[str, Any]) -> None:
        person = self._person(data)
        if person.state in OPEN:
            raise ValueError("somebody was erased whose request was open")
        person.erased = 1
        self.summary.erased += 1

    # -- the audit --------------------------------------------------------------------------------

    def _features_erased(self, data: dict[str, Any], _: Mapping[str, Any]) -> None:
        if self.summary.verdict is None or self.features_erased:
            raise ValueError("features are erased once, after the verdict")
        self.features_erased = self.concluded = True

    def _concluded(self, data: dict[str, Any], _: Mapping[str, Any]) -> None:
        self._require("concluded before", self.concluded and not self.features_erased, False)
        self.concluded = True

    def _paused(self, data: dict[str, Any], _: Mapping[str, Any]) -> None:
        self._require("paused before", self.paused, False)
        self.paused = True

    def _resumed(self, data: dict[str, Any], _: Mapping[str, Any]) -> None:
        self._require("paused before", self.paused, True)
        self.paused = False

    def _budget(self, data: dict[str, Any], _: Mapping[str, Any]) -> None:
        self._require("before", data["before"], self.summary.cap)
        self.summary.cap = data["budget"]

    def _change_limits(self, data: dict[str, Any], _: Mapping[str, Any]) -> None:
        self._limits = data

    def _proposed(self, data: dict[str, Any], event: Mapping[str, Any]) -> None:
        if data["command"] not in self._settings["approvals"]:
            raise ValueError(f"{data['command']!r} needs no approval in this audit")
        self.proposals[event["seq"]] = (data["command"], data["arguments"], event["actor"])

    def _rejected(self, data: dict[str, Any], _: Mapping[str, Any]) -> None:
        if self.proposals.pop(data["proposal"], None) is None:
            raise ValueError(f"there is no open proposal {data['proposal']}")

    def _check_approval(self, kind: str, data: Mapping[str, Any], actor: str) -> None:
        command, arguments, proposer = self.proposals.pop(data.get("proposal", 0), ("", {}, ""))
        if command != kind:
            raise ValueError(f"{kind!r} needs the approval of a proposal, and has none")
        if actor == proposer:
            raise ValueError(f"{actor!r} approved their own proposal")
        for name, value in arguments.items():
            self._require(name, data[name], value)

    def _verdict(self, data: dict[str, Any], event: Mapping[str, Any]) -> None:
        self._require("supersedes", data["supersedes"], self._verdict_seq)
        finding = data["finding"]
        self.summary.verdict = None if finding is None else finding["verdict"]
        if self.summary.verdict not in (None, "FAIR", "UNFAIR", "INCONCLUSIVE"):
            raise ValueError(f"unknown verdict {self.summary.verdict!r}")
        self._verdict_seq = event["seq"]

    # -- people and money -------------------------------------------------------------------------

    def _person(self, data: Mapping[str, Any], *states: str) -> Person:
        number = data["person"]
        if type(number) is not int or not 0 < number <= len(self.people):
            raise ValueError(f"nobody asked about person {number!r} before")
        person = self.people[number - 1]
        if person.erased:
            raise ValueError(f"person {number} was erased before")
        if states and person.state not in states:
            raise ValueError(f"person {number} is {person.state}; must be {' or '.join(states)}")
        self._require("state before", data["was"], person.state)
        self._require("group", data["group"], person.group)
        self._require("decision", data["decision"], person.decision)
        self._require("want", data["want"], person.want)
        self._require("request", data["request"], person.request)
        self._require("place", data.get("place"), person.place)
        return person

    def _move(self, person: Person, state: str) -> None:
        self.summary.states[person.state] -= 1
        self.summary.states[state] += 1
        person.state = state

    def _settle(self, person: Person, state: str, cost: int, data: Mapping[str, Any]) -> None:
        summary = self.summary
        if person.state in OPEN:
            summary.reserved -= person.hold
            if person.decision == 0:
                self._in_flight[person.group] -= 1
        self._require("before", data.get("before", [0, 0]), [person.paid, person.overrun])
        summary.spent -= person.paid
        summary.overrun -= person.overrun
        room = cost if summary.cap is None else summary.cap - summary.spent - summary.reserved
        person.paid = min(cost, room)
        person.overrun = cost - person.paid
        self._require("cost", data["cost"], person.paid)
        self._require("overrun", data["overrun"], person.overrun)
        summary.spent += person.paid
        summary.overrun += person.overrun
        self._move(person, state)

    def _price(self, person: Person, outcome: int) -> int:
        if person.decision == 1:
            return 0
        return person.hold if outcome == 0 else self._costs(person.group)["feature"]

    def _worst(self, group: str, decision: int, want: str, look: Mapping[str, Any] | None) -> int:
        if want not in ("NOTHING", "SCORE_ONLY", "FEATURES", "LABEL"):
            raise ValueError(f"unknown request {want!r}")
        if decision == 1 or want == "NOTHING":
            return 0
        costs = self._costs(group)
        price: int = costs["label"] if look is None else look["price"]
        return costs["feature"] + (price if want == "LABEL" else 0)

    def _check_look(self, want: str, look: Mapping[str, Any] | None) -> None:
        """Check that somebody was asked by the number drawn, at a price that was declared."""
        assist = self._settings["options"].get("assist")
        if (look is not None) != (assist is not None and want in ("SCORE_ONLY", "LABEL")):
            raise ValueError("only an audit that looks before it asks observes, and it always does")
        if look is None:
            return
        if set(look) != set(OBSERVATION):
            raise ValueError(f"an observation holds {', '.join(OBSERVATION)}")
        (low, high), price, m, pi = look["range"], look["price"], look["m"], look["pi"]
        if type(price) is not int or not 0 <= price <= (assist["max_price"] or price):
            raise ValueError(f"price {price!r} is beyond what was declared")
        if not 0 <= m <= 1 or not 0 < pi <= 1 or type(look["draw"]) is not int:
            raise ValueError("a guess, a chance or a draw is none")
        if not low - 1e-9 <= m - m / pi <= m + (1 - m) / pi <= high + 1e-9:
            raise ValueError("the observation leaves the range that was declared")
        self._require("want", want, "LABEL" if look["draw"] < pi * 2**53 else "SCORE_ONLY")

    def _costs(self, group: str) -> dict[str, int]:
        costs: dict[str, Any] = self._settings["costs"]
        chosen: dict[str, int] = costs["groups"].get(group, costs)
        return chosen

    def _require_cap(self) -> None:
        summary = self.summary
        if summary.cap is not None and summary.spent + summary.reserved > summary.cap:
            raise ValueError(
                f"{summary.spent} spent + {summary.reserved} reserved exceed cap {summary.cap}"
            )

    def _check_in_flight(self, group: str) -> None:
        limit, limits = self._limits["max_in_flight"], self._limits["max_in_flight_groups"]
        total = sum(self._in_flight.values())
        if limit is not None and total > limit:
            raise ValueError(f"{total} requests in flight; at most {limit} are allowed")
        if group in limits and self._in_flight[group] > limits[group]:
            raise ValueError(f"{self._in_flight[group]} requests in flight in {group!r}")

    @staticmethod
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
        raise ValueError(f"outcome {value!r} is not 0 or 1")
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
    parser.add_argument("--seed", help="the seed from the final report: checks the lottery")
    options = parser.parse_args(arguments)
    try:
        pairs = [(int(n), h) for n, _, h in (c.partition(":") for c in options.checkpoint)]
        people = None
        if options.people is not None:
            with open(options.people, encoding="ascii") as file:
                people = [json.loads(line) for line in file]
        with open(options.export, "rb") as export:
            summary = verify(
                export, head=options.head, checkpoints=pairs, people=people, seed=options.seed
            )
    except (Broken, LookupError, OSError, ValueError) as error:
        print(f"BROKEN: {error}", file=sys.stderr)
        return 2
    print(summary)
    if options.head is None:
        print("    no --head given: a file cut at the end of a line would pass as well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
