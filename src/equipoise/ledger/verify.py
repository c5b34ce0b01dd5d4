"""Check an exported audit ledger with nothing but Python's standard library.

    python verify.py audit.jsonl --head HASH [--checkpoint SEQ:HASH ...] [--seed HEX]

One line of the export is one event, written as canonical JSON (keys sorted, no spaces, ASCII).
Its ``hash`` is the SHA-256 of the same line without the hash, and that line holds the hash of the
event before it: whoever knows the last hash (the head) knows that no byte of the file was changed,
dropped, moved or added. On top of that this program keeps the books anew: who was asked, what was
held and paid, and that the cap was respected after every single event.

It does not repeat the statistics; ``equipoise audit verify`` does, with the same events.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "FORMAT",
    "GENESIS",
    "Books",
    "Broken",
    "Person",
    "Summary",
    "canonical",
    "digest",
    "draw",
    "main",
    "verify",
]

FORMAT = 1
GENESIS = "0" * 64  # what the first event names as the hash before it
OPEN = ("RESERVED", "EXECUTED", "OVERDUE")

_WRITER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


class Broken(Exception):
    """The export is not what the ledger wrote; the message names the line."""


@dataclass
class Person:
    """What the events so far say about one person."""

    group: str
    decision: int
    want: str
    state: str
    hold: int = 0
    paid: int = 0
    overrun: int = 0
    outcome: int | None = None


@dataclass
class Summary:
    """What was checked."""

    audit: str = ""
    name: str = ""
    events: int = 0
    head: str = GENESIS
    cap: int | None = None
    spent: int = 0
    reserved: int = 0
    overrun: int = 0
    verdict: str | None = None
    states: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        cap = "no cap" if self.cap is None else f"cap {self.cap}"
        states = ", ".join(f"{n} {s.lower()}" for s, n in sorted(self.states.items()) if n)
        return (
            f"OK: audit {self.name!r} ({self.audit}), {self.events} events, head {self.head}\n"
            f"    people: {states or 'none'}\n"
            f"    money: {self.spent} spent + {self.reserved} reserved, {cap}, "
            f"{self.overrun} beyond it after corrections\n"
            f"    verdict: {self.verdict or 'none yet'}"
        )


def verify(
    lines: Iterable[bytes],
    *,
    head: str | None = None,
    checkpoints: Sequence[tuple[int, str]] = (),
    seed: str | None = None,
    books: Books | None = None,
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
    seed
        The seed from the final report, to check the lottery.
    books
        Where to keep the state of every person; new books if left out.

    Raises
    ------
    Broken
        At the first line that is not as it should be.
    """
    books = Books(seed) if books is None else books
    wanted = dict(checkpoints)
    for number, line in enumerate(lines, start=1):
        try:
            event = _read(line)
            books.take(event)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            what = f"missing {error}" if isinstance(error, KeyError) else str(error)
            raise Broken(f"line {number}: {what}") from error
        expected = wanted.pop(number, None)
        if expected is not None and expected != event["hash"]:
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


def draw(seed: bytes, person: str) -> int:
    """Return the person's lottery number, 0 to 2**53 - 1: HMAC-SHA-256 of seed and pseudonym."""
    mac = hmac.new(seed, person.encode("utf-8"), hashlib.sha256).digest()
    return int.from_bytes(mac[:8], "big") >> 11


class Books:
    """The state of every person and of the money, kept anew from the events alone."""

    def __init__(self, seed: str | None = None) -> None:
        self.summary = Summary()
        self._seed = None if seed is None else bytes.fromhex(seed)
        self._settings: dict[str, Any] = {}
        self.people: dict[str, Person] = {}
        self._in_flight: Counter[str] = Counter()
        self._places: Counter[str] = Counter()
        self._time = ""

    def take(self, event: Mapping[str, Any]) -> None:
        """Check one event against all before it; raise ValueError if it cannot follow them."""
        summary, kind, data = self.summary, event["type"], event["data"]
        if event["seq"] != summary.events + 1:
            raise ValueError(f"event {event['seq']} where {summary.events + 1} should be")
        if event["prev"] != summary.head:
            raise ValueError(f"the event before has hash {summary.head}, not {event['prev']}")
        if event["time"] < self._time:
            raise ValueError(f"time runs back from {self._time} to {event['time']}")
        if (kind == "created") != (event["seq"] == 1):
            raise ValueError("the first event, and no other, creates the audit")
        if event["seq"] > 1 and event["audit"] != summary.audit:
            raise ValueError(f"an event of another audit, {event['audit']}")
        rule = getattr(self, f"_{kind}", None)
        if rule is None:
            raise ValueError(f"unknown type of event {kind!r}")
        rule(event if kind == "created" else data)
        summary.events, summary.head, self._time = event["seq"], event["hash"], event["time"]
        self._require_cap()

    # -- one rule per type of event ---------------------------------------------------------------

    def _created(self, event: Mapping[str, Any]) -> None:
        data = event["data"]
        if data["format"] > FORMAT:
            raise ValueError(f"format {data['format']} is newer than this program ({FORMAT})")
        self._settings = data
        self.summary.audit, self.summary.name = event["audit"], data["name"]
        self.summary.cap = data["budget"]
        if self._seed is not None and hashlib.sha256(self._seed).hexdigest() != data["seed_hash"]:
            raise ValueError("the given seed is not the one whose hash the first event holds")

    def _asked(self, data: Mapping[str, Any]) -> None:
        name, group, decision, want = data["person"], data["group"], data["decision"], data["want"]
        if name in self.people:
            raise ValueError(f"person {name!r} was asked about before")
        if group not in self._settings["groups"]:
            raise ValueError(f"unknown group {group!r}")
        if decision not in (0, 1):
            raise ValueError(f"decision {decision!r} is not 0 or 1")
        if decision == 1:
            self._require("place", data["place"], self._places[group])
            self._places[group] += 1
        self._require("hold", data["hold"], self._worst(group, decision, want))
        state = "SKIPPED" if want == "NOTHING" else "RESERVED"
        self.people[name] = Person(group, decision, want, state, data["hold"])
        self.summary.states[state] += 1
        self._check_lottery(name, data)
        if state == "RESERVED":
            self.summary.reserved += data["hold"]
            if decision == 0:
                self._in_flight[group] += 1
                self._check_in_flight(group)

    def _executed(self, data: Mapping[str, Any]) -> None:
        person = self._person(data)
        self._require("moved", data["moved"], person.state == "RESERVED")
        if data["moved"]:
            self._move(person, "EXECUTED")

    def _revealed(self, data: Mapping[str, Any]) -> None:
        person = self._person(data, *OPEN, "WRITTEN_OFF")
        if person.want != "LABEL":
            raise ValueError("an outcome is revealed that was not asked for")
        self._settle(person, "REVEALED", self._price(person, data["outcome"]), data)
        person.outcome = data["outcome"]

    def _described(self, data: Mapping[str, Any]) -> None:
        person = self._person(data, *OPEN)
        self._settle(person, "DESCRIBED", person.hold, data)

    def _noted(self, data: Mapping[str, Any]) -> None:
        person = self._person(data, "SKIPPED", "WITHDRAWN")
        if person.outcome is not None:
            raise ValueError("an outcome is noted twice")
        person.outcome = _binary(data["outcome"])

    def _withdrawn(self, data: Mapping[str, Any]) -> None:
        self._settle(self._person(data, "RESERVED"), "WITHDRAWN", 0, data)

    def _overdue(self, data: Mapping[str, Any]) -> None:
        self._move(self._person(data, "RESERVED", "EXECUTED"), "OVERDUE")

    def _written_off(self, data: Mapping[str, Any]) -> None:
        person = self._person(data, "OVERDUE")
        self._settle(person, "WRITTEN_OFF", person.hold, data)

    def _corrected(self, data: Mapping[str, Any]) -> None:
        person = self._person(data, "REVEALED", "CORRECTED", "SKIPPED", "WITHDRAWN")
        if person.outcome is None or data["outcome"] == person.outcome:
            raise ValueError("a correction must change an outcome that is known")
        person.outcome = _binary(data["outcome"])
        if person.state in ("REVEALED", "CORRECTED"):
            self._settle(person, "CORRECTED", self._price(person, person.outcome), data)

    def _conflict(self, data: Mapping[str, Any]) -> None:
        if data["told"] == self._person(data).outcome:
            raise ValueError("a conflict is reported where both outcomes agree")

    def _closed(self, data: Mapping[str, Any]) -> None:
        data["why"]

    def _erased(self, data: Mapping[str, Any]) -> None:
        data["features"]

    def _verdict(self, data: Mapping[str, Any]) -> None:
        finding = data["finding"]
        self.summary.verdict = None if finding is None else finding["verdict"]

    # -- people and money -------------------------------------------------------------------------

    def _person(self, data: Mapping[str, Any], *states: str) -> Person:
        person = self.people.get(data["person"])
        if person is None:
            raise ValueError(f"nobody asked about {data['person']!r} before")
        if states and person.state not in states:
            raise ValueError(f"{data['person']!r} is {person.state}; must be {' or '.join(states)}")
        self._require("state before", data["was"], person.state)
        self._require("group", data["group"], person.group)
        self._require("decision", data["decision"], person.decision)
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
        costs = self._costs(person.group)
        return costs["feature"] + (costs["label"] if _binary(outcome) == 0 else 0)

    def _worst(self, group: str, decision: int, want: str) -> int:
        if decision == 1 or want == "NOTHING":
            return 0
        costs = self._costs(group)
        if want == "FEATURES":
            return costs["feature"]
        if want != "LABEL":
            raise ValueError(f"unknown request {want!r}")
        return costs["feature"] + costs["label"]

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
        limit, limits = self._settings["max_in_flight"], self._settings["max_in_flight_groups"]
        total = sum(self._in_flight.values())
        if limit is not None and total > limit:
            raise ValueError(f"{total} requests in flight; at most {limit} are allowed")
        if group in limits and self._in_flight[group] > limits[group]:
            raise ValueError(f"{self._in_flight[group]} requests in flight in {group!r}")

    def _check_lottery(self, name: str, data: Mapping[str, Any]) -> None:
        chance = self._settings["lottery"]
        if chance >= 1 or self._seed is None:
            return
        self._require("draw", data["draw"], draw(self._seed, name))
        if data["want"] != "NOTHING" and data["draw"] >= chance * 2**53:
            raise ValueError(f"person {name!r} was asked although the lottery said no")

    @staticmethod
    def _require(what: str, found: object, right: object) -> None:
        if found != right:
            raise ValueError(f"{what} is {found!r}; by the events before it must be {right!r}")


def _read(line: bytes) -> dict[str, Any]:
    if not line.endswith(b"\n"):
        raise ValueError("the line does not end: the file was cut")
    event = json.loads(line[:-1].decode("ascii"))
    if not isinstance(event, dict) or canonical(event).encode("ascii") + b"\n" != line:
        raise ValueError("not canonical JSON: the line was changed after it was written")
    stated = event["hash"]
    body = canonical({key: value for key, value in event.items() if key != "hash"})
    if digest(body) != stated:
        raise ValueError("the hash does not fit the line: it was changed after it was written")
    return event


def _binary(value: object) -> int:
    if value not in (0, 1) or isinstance(value, bool) or not isinstance(value, int):
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
    parser.add_argument("--seed", help="the seed from the final report, to check the lottery")
    options = parser.parse_args(arguments)
    try:
        pairs = [(int(n), h) for n, _, h in (c.partition(":") for c in options.checkpoint)]
        with open(options.export, "rb") as file:
            summary = verify(file, head=options.head, checkpoints=pairs, seed=options.seed)
    except (Broken, OSError, ValueError) as error:
        print(f"BROKEN: {error}", file=sys.stderr)
        return 2
    print(summary)
    if options.head is None:
        print("    no --head given: a file cut at the end of a line would pass as well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
