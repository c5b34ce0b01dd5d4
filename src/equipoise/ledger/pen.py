"""Holds the pen for one transaction: events are appended here, with the money that follows."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from equipoise.errors import InvalidInput, LedgerError, ProtocolError, UnknownPerson
from equipoise.ledger.commands import Reply
from equipoise.ledger.schema import Head, PersonRow
from equipoise.ledger.state import State
from equipoise.ledger.verify import canonical, digest
from equipoise.question import Want

__all__ = ["NotReady", "Pen", "facts_of", "reply_about", "stamp"]

SALTS = 64  # drawn at once


class NotReady(Exception):
    """Statistics must be rebuilt before this command, and not while others wait for the turn."""


class Pen:
    """One transaction's events, and the rows that change with them."""

    def __init__(
        self, state: State, head: Head, *, uid: str, seed: bytes, people: Sequence[PersonRow]
    ) -> None:
        self.state = state
        self.head = replace(head)
        self.events: list[tuple[int, str]] = []
        self.vectors: list[tuple[int, str, str]] = []
        self.new: dict[int, PersonRow] = {}
        self.changed: dict[int, PersonRow] = {}
        self.erased: list[int] = []
        self.erase_features = False
        self._uid = uid
        self._seed = seed
        self._random = b""  # salts that are left
        self._actor = ""
        self._now = ""
        self._proposal: int | None = None  # the one that is being carried out
        self._people = {row.person: row for row in people if row.person is not None}
        self._by_number = {row.number: row for row in people}

    def _append(self, kind: str, data: dict[str, Any], **known: Any) -> None:
        head, time = self.head, self._now
        if self._proposal is not None:
            data = {**data, "proposal": self._proposal}
        event = {
            "actor": self._actor,
            "audit": self._uid,
            "data": data,
            "prev": head.hash,
            "seq": head.seq + 1,
            "time": time,
            "type": kind,
        }
        body = canonical(event)
        head.seq, head.hash, head.time = head.seq + 1, digest(body), time
        self.events.append((head.seq, body))
        state = self.state
        try:
            state.take(event, head.hash, **known)
        except (InvalidInput, ProtocolError) as error:  # too late to refuse this command alone
            raise LedgerError(f"the audit refused {kind!r}: {error}") from error
        head.spent, head.reserved = state.spent, state.reserved
        head.overrun, head.cap = state.overrun, state.cap

    def _post(self, row: PersonRow, cost: int) -> dict[str, Any]:
        """Return the facts with what the person costs now; what the cap cannot hold is overrun."""
        head, room = self.head, cost
        if head.cap is not None:
            reserved = head.reserved - (row.hold if row.open else 0)
            room = head.cap - (head.spent - row.paid) - reserved
        data = facts_of(row)
        if row.paid or row.overrun:
            data["before"] = [row.paid, row.overrun]
        row.paid = min(cost, room)
        row.overrun = cost - row.paid
        return {**data, "cost": row.paid, "overrun": row.overrun}

    def _price(self, row: PersonRow, outcome: int) -> int:
        if row.decision == 1:
            return 0
        costs = self.state.settings.costs.of(row.group_name)
        return row.hold if outcome == 0 else int(costs.feature)

    def _keep(self, row: PersonRow, features: Sequence[float] | None, data: dict[str, Any]) -> None:
        """Store features apart from the event, which holds only a salted hash of them."""
        if features is not None:
            salt, text = self._salt(), json.dumps(list(features))
            data["features"] = hashlib.sha256((salt + text).encode()).hexdigest()
            self.vectors.append((row.number, salt, text))

    def _salt(self) -> str:
        """Return 128 random bits; asking the system costs as much for one as for many."""
        if not self._random:
            self._random = os.urandom(16 * SALTS)
        salt, self._random = self._random[:16], self._random[16:]
        return salt.hex()

    def _row(self, person: str) -> PersonRow:
        row = self._people.get(person)
        if row is None:
            name = self.state.settings.name
            raise UnknownPerson(
                f"person {person!r} is unknown to audit {name!r}: nobody has asked about them yet"
            )
        return row

    def _changed_reply(self, row: PersonRow) -> Reply:
        if row.number not in self.new:
            self.changed[row.number] = row
        return reply_about(row)

    def _propose(self, kind: str, arguments: dict[str, Any]) -> Reply | None:
        """Record a proposal where a second person must approve; None where it may be done now."""
        if kind not in self.state.settings.approvals or self._proposal is not None:
            return None
        for seq, known in self.state.proposals.items():
            if (known["command"], known["arguments"]) == (kind, arguments):
                return Reply("", state="PROPOSED", number=seq, repeated=True)
        self._append("proposed", {"command": kind, "arguments": arguments})
        return Reply("", state="PROPOSED", number=self.head.seq)


def stamp(moment: datetime) -> str:
    """Write a moment so that text order is time order."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def facts_of(row: PersonRow) -> dict[str, Any]:
    """Return what every event about a person says of them."""
    data: dict[str, Any] = {
        "person": row.number,
        "group": row.group_name,
        "decision": row.decision,
        "want": row.want,
        "was": row.state,
        "request": row.request,
    }
    if row.place is not None:
        data["place"] = row.place
    return data


_WANTS = {want.value: want for want in Want}  # quicker than Want(...)


def reply_about(row: PersonRow, *, repeated: bool = False) -> Reply:
    """Return what is stored about a person as an answer."""
    return Reply(
        person=row.person or "",
        state=row.state,
        want=_WANTS[row.want],
        hold=row.hold,
        number=row.number,
        request=row.request,
        why=row.why,
        outcome=row.outcome,
        repeated=repeated,
    )
