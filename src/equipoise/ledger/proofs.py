"""What an audit in a ledger can prove: its events, exports, checkpoints, and that they hold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from equipoise.ledger.check import check_ledger
from equipoise.ledger.driver import Driver
from equipoise.ledger.export import Checkpoint, write_lines
from equipoise.ledger.status import Status, status_of
from equipoise.ledger.store import AuditRow, Store
from equipoise.ledger.verify import Summary, canonical

__all__ = ["Proofs"]

PAGE = 1000  # keys read at once


class Proofs:
    """The part of a live audit that changes nothing and proves everything."""

    def __init__(self, store: Store, row: AuditRow, driver: Driver) -> None:
        self.row = row
        self._store = store
        self._driver = driver

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

    def verify(self, checkpoints: Sequence[tuple[int, str]] = ()) -> Summary:
        """Check chain, money, tables, snapshot and statistics as of one moment, writers or not."""
        return check_ledger(self._store, self.row.id, checkpoints, self._driver.peek)

    def replay(self) -> Status:
        """Return the status that follows from the events alone, every decision made anew."""
        return status_of(self._driver.replay(strict=True))

    @property
    def seed(self) -> str:
        """The seed; secret until the final report."""
        return self.row.seed

    def _keys(self, upto: int) -> Iterator[str]:
        after = 0
        while after < upto and (
            rows := self._store.people(self.row.id, after=after, limit=min(PAGE, upto - after))
        ):
            for row in rows:
                if row.person is not None:
                    key = {"person": row.number, "pseudonym": row.person, "salt": row.salt}
                    yield canonical(key)
            after = rows[-1].number
