"""A cache beside the chain, so that a program that starts need not replay every event.

It is one row per audit: the state at an event, as JSON. Nobody trusts it:

* It is bound to the audit, to the number and hash of the event, to the edition of the statistics
  and to the version of this program. Whatever does not fit is ignored, and the events are replayed.
* It holds the log of requests and answers, the drift counts, when each group arrived last, and
  what ``status`` counts. The rest, on which the rule book relies, is read where ``verify`` checks
  it: settings, pauses, limits, proposals and verdicts from the chain, numbers of people and money
  from the tables.
* ``verify`` never uses it, and names a cache that differs from what the events lead to.
* A verdict is stored or taken back only by a state that was replayed from the chain
  (``ledger/live.py``). So are the numbers of a report.
* Whoever replays the chain compares the cache in passing (:class:`CacheComparison`). A row that
  differs is set aside: no program uses or replaces it, and ``verify`` and ``status`` name it until
  somebody empties the table.

So who can write to the cache can at most change whom the next ``ask`` wants, and what ``status``
shows of an audit in progress, and ``verify``, which makes every decision anew, shows it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

from equipoise import evidence
from equipoise._version import __version__
from equipoise.audits.base import Step
from equipoise.errors import EquipoiseError, LedgerError
from equipoise.ledger.drift import BLOCK, DriftCounts
from equipoise.ledger.settings import Settings
from equipoise.ledger.state import AuditState, replay
from equipoise.ledger.store import CacheRow, PeopleTotals, Store
from equipoise.ledger.verify import (
    FORGED_DATA_ERRORS,
    RULES,
    GroupTally,
    Head,
    LedgerRules,
    canonical,
    digest,
)
from equipoise.ledger.waiting import ArrivalRecord
from equipoise.protocol import ScoreRecord, Ticket, Want

CACHE_FORMAT = 3
EVENTS_BEFORE_CACHING = 2000  # events that a program may replay before it stores the state anew
WAIT_SECONDS = 5.0  # for which storing a state waits for writers
UNFIT_ERRORS = (EquipoiseError, AssertionError, *FORGED_DATA_ERRORS)
"""What reading a cache may raise that somebody forged or damaged."""
STEP_KINDS = ("asked", "told", "withdrawn", "corrected")


class Unfit(ValueError):
    """The cache does not fit the chain; it is ignored."""


# -- storing --------------------------------------------------------------------------------------


def cache_row(state: AuditState) -> CacheRow:
    """Return the row that holds a state, which must be that of the last event stored."""
    rules = state.rules
    body = canonical(_to_data(state))
    head = rules.head
    binding = _binding(rules.uid, head.seq, head.hash, body)
    return CacheRow(head.seq, head.hash, evidence.EDITION, digest(binding), body)


def _binding(uid: str, seq: int, event_hash: str, body: str) -> str:
    """Return the text whose digest ties a state to an event, an edition and a program."""
    facts = [uid, seq, event_hash, evidence.EDITION, __version__, CACHE_FORMAT]
    return json.dumps(facts) + body


def _to_data(state: AuditState) -> dict[str, Any]:
    """Return what of a state neither the chain's rare events nor the table of people tell."""
    rules = state.rules
    # A step refers to its ticket by place, which is shorter than the ticket.
    tickets = {number: index for index, number in enumerate(state.tickets)}
    return {
        "acts": rules.acts,
        "arrivals": [state.arrivals.last_arrival, state.arrivals.turned_away],
        "contradicted": sorted(rules.people.contradicted),
        "drift": {"arrivals": state.drift.arrivals, "outcomes": state.drift.outcomes},
        "groups": {name: _tally_data(tally) for name, tally in rules.people.groups.items()},
        "head": [rules.head.time, rules.head.spent, rules.head.reserved, rules.head.overrun],
        "late": rules.people.late,
        "requests": rules.requests,
        "steps": [_step_data(step, tickets[step.ticket.number]) for step in state.steps],
        "steps_before_files": [n_steps for n_steps, _, _ in state.random_accepts],
        "steps_before_verdict": state.steps_before_verdict,
        "tickets": [_ticket_data(ticket) for ticket in state.tickets.values()],
        "unsettled": rules.unsettled,
    }


def _tally_data(tally: GroupTally) -> list[Any]:
    states = {str(state): count for state, count in tally.states.items() if count}
    return [
        *(tally.approved, tally.denied, states, tally.in_flight, tally.positive, tally.negative),
        *(tally.spent, tally.reserved, tally.overrun),
    ]


def _step_data(step: Step, ticket: int) -> list[Any]:
    return [STEP_KINDS.index(step.kind), ticket, step.outcome, step.cost]


def _ticket_data(ticket: Ticket) -> list[Any]:
    data = [ticket.number, ticket.group, ticket.decision, ticket.want.value, ticket.hold]
    record = ticket.score_record
    if record is None:
        return data
    return [
        *data,
        *(record.score, record.version, record.price, record.m, record.pi),
        *(record.low, record.high, record.draw),
    ]


# -- reading --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _CachedAudit:
    """What one snapshot of the database says about an audit."""

    uid: str
    head: Head
    row: CacheRow
    event: str  # the body of the event at which the state was cached
    rare_events: Sequence[str]
    later_events: Iterable[str]
    totals: PeopleTotals


def read_row(store: Store, audit_id: int) -> CacheRow | None:
    """Return the row of the cache; None if there is none that the database can read."""
    try:
        with store.snapshot() as connection:
            return store.cached_state(connection, audit_id)
    except LedgerError:
        return None


def load(store: Store, audit_id: int, uid: str, row: CacheRow | None) -> AuditState | None:
    """Return the state at the audit's head by way of a cached one; None if that does not fit."""
    if row is None or not is_bound(row, uid):
        return None
    try:
        with store.snapshot() as connection:
            head = store.head(audit_id)
            _require(0 < row.seq <= head.seq, "it is ahead of the chain")
            rare_events = store.rare_events(connection, audit_id, row.seq)
            return _restore(
                _CachedAudit(
                    uid=uid,
                    head=head,
                    row=row,
                    event="".join(store.events(audit_id, after=row.seq - 1, upto=row.seq)),
                    rare_events=rare_events,
                    later_events=store.events(audit_id, after=row.seq, upto=head.seq),
                    totals=store.people_totals(connection, audit_id, _groups_in(rare_events)),
                )
            )
    except UNFIT_ERRORS:
        # An index that is missing ends here too. What fails for good will fail again in a replay.
        return None


def is_bound(row: CacheRow, uid: str) -> bool:
    """Whether a row is whole, and was stored by this program about this audit."""
    fields = (row.seq, row.hash, row.edition, row.digest, row.body)
    if [type(value) for value in fields] != [int, str, int, str, str]:
        return False
    try:
        expected = digest(_binding(uid, row.seq, row.hash, row.body))
    except ValueError:  # not ASCII
        return False
    return row.digest == expected and row.edition == evidence.EDITION


def _restore(cached: _CachedAudit) -> AuditState:
    """Return the state at the head; raise one of :data:`UNFIT_ERRORS` if anything does not fit."""
    row = cached.row
    _require(digest(cached.event) == row.hash, "the event has another hash")
    state = AuditState()
    state.cached_seq = row.seq
    rules = state.rules
    files = []
    for body in cached.rare_events:
        event = json.loads(body)
        _apply_rare_event(rules, event)
        if event["type"] == "random_accepts":
            files.append((event["data"]["random_accepts"], event["data"]["corrected"]))
    _require(rules.uid == cached.uid, "it is another audit")
    state.settings = Settings.from_data(rules.settings)
    # Most events are not read again, so that only the cache knows where the head is.
    data = json.loads(row.body)
    rules.head.seq = row.seq
    rules.head.hash = row.hash
    _restore_rules(rules, data)
    state.drift = _drift_from(data["drift"], rules)
    state.arrivals = _arrivals_from(data["arrivals"], rules)
    state.arrivals.began = json.loads(cached.rare_events[0])["time"]
    state.tickets = {ticket.number: ticket for ticket in map(_ticket_from, data["tickets"])}
    tickets = list(state.tickets.values())
    state.steps = [_step_from(step, tickets) for step in data["steps"]]
    state.random_accepts = [
        (_count(n_steps), counts, corrected)
        for n_steps, (counts, corrected) in zip(data["steps_before_files"], files, strict=True)
    ]
    state.steps_before_verdict = _count(data["steps_before_verdict"])
    _require(state.steps_before_verdict <= len(state.steps), "a verdict after steps that are gone")
    replay(cached.later_events, state)
    _require(rules.head == cached.head, "its events lead to another balance")
    _check_people(rules, cached.totals)
    _check_statistics(state)
    return state


def _groups_in(events: Sequence[str]) -> list[str]:
    """Return the groups' names, which the first event of an audit has."""
    groups: list[str] = json.loads(events[0])["data"]["groups"]
    return groups


def _apply_rare_event(rules: LedgerRules, event: Mapping[str, Any]) -> None:
    """Apply an event about the audit, or what one about a person does to proposals."""
    kind = event["type"]
    data = event["data"]
    if kind == "created":
        rules.begin(event)
        return
    rules.approvals.check(kind, data, event["actor"])
    # What an erasure or a correction does to a person is in that person's cached row.
    if kind == "erased":
        rules.people.erased += 1
    elif kind != "corrected":
        RULES[kind].apply(rules, data, event)
    rules.approvals.close(kind, data)


def _restore_rules(rules: LedgerRules, data: Mapping[str, Any]) -> None:
    """Fill in what the cache holds of the books; all of it is compared with the tables later."""
    rules.acts = {
        _text(actor): {_text(kind): _count(n) for kind, n in acts.items()}
        for actor, acts in data["acts"].items()
    }
    rules.people.contradicted = {_count(number) for number in data["contradicted"]}
    rules.people.late = _count(data["late"])
    rules.requests = _count(data["requests"])
    rules.unsettled = data["unsettled"] is True
    time, spent, reserved, overrun = data["head"]
    rules.head.time = _text(time)
    rules.head.spent = _count(spent)
    rules.head.reserved = _count(reserved)
    rules.head.overrun = _count(overrun)
    _require(set(data["groups"]) == set(rules.people.groups), "other groups")
    for name in rules.people.groups:
        tally = _tally_from(data["groups"][name])
        rules.people.groups[name] = tally
        # The cache leaves this number out: it is 0 by now, since arrivals are not applied again.
        rules.people.arrived += tally.approved + tally.denied


def _tally_from(row: Sequence[Any]) -> GroupTally:
    """Return a group's counts, which the cache holds in the order of the fields."""
    approved, denied, states, *counts = row
    in_flight, positive, negative, *money = map(_count, counts)
    return GroupTally(
        _count(approved),
        _count(denied),
        {_text(state): _count(n) for state, n in states.items()},
        in_flight,
        positive,
        negative,
        *money,
    )


def _drift_from(data: Mapping[str, Any], rules: LedgerRules) -> DriftCounts:
    """Return the drift counts, which must add up to the people who arrived."""
    groups = rules.people.groups
    drift = DriftCounts(tuple(groups))
    for block in data["arrivals"]:
        counts = [_count(n) for n in block]
        _require(len(counts) == 2 * len(groups), "drift counts of other groups")
        drift.arrivals.append(counts)
    _require(len(drift.arrivals) == -(-rules.people.arrived // BLOCK), "missing drift counts")
    totals = [sum(column) for column in zip(*drift.arrivals, strict=True)]
    expected = [n for tally in groups.values() for n in (tally.denied, tally.approved)]
    _require(totals == expected or not drift.arrivals, "drift counts of other people")
    for name, tally in groups.items():
        blocks = [[_count(bad), _count(good)] for bad, good in data["outcomes"][name]]
        _require(len(blocks) == -(-tally.approved // BLOCK), "missing drift counts")
        drift.outcomes[name] = blocks
    return drift


def _arrivals_from(data: Sequence[Any], rules: LedgerRules) -> ArrivalRecord:
    """Return when denied people of each group arrived last, and who was turned away since."""
    last_arrival, turned_away = data
    groups = rules.people.groups
    _require({*last_arrival, *turned_away} <= set(groups), "arrivals of other groups")
    for group in last_arrival:
        _require(groups[group].denied > 0, "an arrival of nobody")
    return ArrivalRecord(
        last_arrival={group: _text(time) for group, time in last_arrival.items()},
        turned_away=Counter({group: _count(n) for group, n in turned_away.items()}),
    )


def _ticket_from(data: Sequence[Any]) -> Ticket:
    number, group, decision, want, hold, *score = data
    return Ticket(
        _count(number),
        _text(group),
        _count(decision),
        Want(want),
        _amount(hold),
        ScoreRecord(*score) if score else None,
    )


def _step_from(data: Sequence[Any], tickets: Sequence[Ticket]) -> Step:
    kind, ticket, outcome, cost = data
    _require(outcome is None or _count(outcome) <= 1, "an outcome that is none")
    return Step(
        STEP_KINDS[_count(kind)],  # type: ignore[arg-type]
        tickets[_count(ticket)],
        outcome,
        cost=None if cost is None else _amount(cost),
    )


def _check_people(rules: LedgerRules, totals: PeopleTotals) -> None:
    """Compare the books with the table of people, which ``verify`` checks row by row.

    What the rule book counts with must be right, or the next event would break the chain. What is
    only shown must add up.
    """
    people = rules.people
    approved = {name: tally.approved for name, tally in people.groups.items()}
    in_flight = {name: tally.in_flight for name, tally in people.groups.items()}
    cached_totals = (people.arrived, rules.requests, approved, in_flight)
    table_totals = (totals.arrived, totals.requests, totals.approved, totals.in_flight)
    _require(cached_totals == table_totals, "it counts other people")
    tallies = people.groups.values()
    for tally in tallies:
        in_states = sum(tally.states.values())
        _require(in_states == tally.approved + tally.denied, "states of other people")
    head = rules.head
    money = [sum(column) for column in zip(*map(_money_of, tallies), strict=True)]
    _require(money == [head.spent, head.reserved, head.overrun], "other money in the groups")
    are_known = all(0 < number <= people.arrived for number in people.contradicted)
    _require(are_known, "unknown people")


def _money_of(tally: GroupTally) -> tuple[int, int, int]:
    return tally.spent, tally.reserved, tally.overrun


def _check_statistics(state: AuditState) -> None:
    """Let the log lead to the money of the books and to the finding of the chain."""
    if state.has_other_edition:
        return
    state.check_books()
    finding = state.finding()
    verdict = None if finding is None else finding.verdict.value
    _require(verdict == state.rules.verdict, "its log leads to another verdict")
    state.check_recorded_finding()
    state.drift_tests()


class CacheComparison:
    """Compares a cached state with the events that somebody replays, in passing.

    Parameters
    ----------
    row
        The cached state, None for none.
    may_be_ahead
        Whether it was read after the end of the chain, so that it may belong to later events.

    Attributes
    ----------
    is_same
        Whether the events have led to it.
    """

    def __init__(self, row: CacheRow | None, *, may_be_ahead: bool = False) -> None:
        self.row = row
        self.is_same = False
        self._may_be_ahead = may_be_ahead

    def follow(self, events: Iterable[str], state: AuditState) -> Iterator[str]:
        """Yield events that the caller applies to a state, and look at it after each."""
        for body in events:
            yield body
            self.look_at(state)

    def look_at(self, state: AuditState) -> None:
        """Compare a state, if it is that of the event of the cached one."""
        if self.row is not None and self.row.seq == state.rules.head.seq:
            self.is_same = self.row == cache_row(state)

    def differing_row(self, state: AuditState) -> CacheRow | None:
        """Return the cached state if the events, which led to ``state``, did not lead to it.

        None also for a row that no program would use, unless it was set aside.
        """
        row = self.row
        if row is None or row.is_set_aside:
            return row
        if self.is_same or not is_bound(row, state.rules.uid):
            return None
        is_ahead = row.seq > state.rules.head.seq
        return None if is_ahead and self._may_be_ahead else row


def set_aside(store: Store, audit_id: int, row: CacheRow) -> None:
    """Keep a cached state from being used and replaced, where this program may write."""
    if row.is_set_aside:
        return
    # By a connection of its own, which does not wait long.
    with suppress(LedgerError, OSError), closing(Store(store.url, timeout=WAIT_SECONDS)) as beside:
        beside.set_cache_aside(audit_id, row)


def _require(fits: bool, reason: str) -> None:
    if not fits:
        raise Unfit(reason)


def _count(value: object) -> int:
    if type(value) is not int or not 0 <= value < 2**53:
        raise Unfit(f"{value!r} is no count")
    return value


def _amount(value: object) -> float:
    if type(value) is not float or not 0.0 <= value < 2.0**53:
        raise Unfit(f"{value!r} is no amount of money")
    return value


def _text(value: object) -> str:
    if type(value) is not str:
        raise Unfit(f"{value!r} is no text")
    return value
