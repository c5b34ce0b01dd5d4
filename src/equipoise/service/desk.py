"""The audits of a ledger as one worker process holds them: writes in batches, reads beside them.

A write waits in its audit's queue while the one before is being stored; all that waits is then
carried out in one commit. Reads have a connection and a state of their own, so that a page never
holds up an ask; what is dear, weighing the evidence, has a third.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from equipoise.errors import EquipoiseError, LedgerError, UnknownName
from equipoise.ledger import LiveAudit, Reply
from equipoise.ledger.commands import Command
from equipoise.ledger.store import AuditRow, Store
from equipoise.ledger.verify import digest
from equipoise.service.problems import Problem
from equipoise.service.settings import ServiceSettings
from equipoise.service.weighing import Weighing

__all__ = ["AuditDesk", "Desk"]

T = TypeVar("T")
log = logging.getLogger("equipoise.service")

AT_ONCE = 256  # commands in one commit
WAITING = 10_000  # commands that may wait for one audit
HELD = 64  # audits that a worker keeps open


class AuditDesk:
    """One audit: a queue of writes, and handles to read by."""

    def __init__(self, desk: Desk, live: LiveAudit) -> None:
        self.row = live.row
        self.name = live.row.name
        self.reader = LiveAudit.open(desk.settings.ledger, self.row.uid)
        self.weighing = Weighing(desk.settings.ledger, self.row.uid)
        self._seen, self._look_again = 0, 0.0
        self._weighs: asyncio.Task[None] | None = None
        self._desk = desk
        self._live = live
        self._waiting: list[tuple[str, Command, asyncio.Future[Reply | EquipoiseError]]] = []
        self._storing = False

    async def do(self, actor: str, command: Command) -> Reply | EquipoiseError:
        """Carry out one command together with whatever else is waiting."""
        if len(self._waiting) >= WAITING:
            raise Problem("busy")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Reply | EquipoiseError] = loop.create_future()
        self._waiting.append((actor, command, done))
        if not self._storing:
            self._storing = True
            self._desk.keep(loop.create_task(self._store()))
        return await done

    async def do_all(self, actor: str, commands: list[Command]) -> list[Reply | EquipoiseError]:
        """Carry out a batch in a commit of its own."""
        work = [(actor, command) for command in commands]
        return await self._desk.in_writer(lambda: self._live.settle(work))

    async def read(self, look: Callable[[LiveAudit], T]) -> T:
        """Look at the audit through the reading handle, in a thread."""
        return await self._desk.in_reader(lambda: look(self.reader))

    async def write(self, work: Callable[[], T]) -> T:
        """Do something that writes, in a thread."""
        return await self._desk.in_writer(work)

    async def in_turn(self, work: Callable[[], T]) -> T:
        """Do something that takes long, one at a time in this worker."""
        return await self._desk.in_turn(work)

    def scrub(self) -> None:
        """Rewrite the database's files, so that no copy of what was erased stays in them."""
        self._live.scrub()

    def as_actor(self, actor: str) -> LiveAudit:
        """Return the writing handle in somebody's hands, for what is done rarely."""
        return self._live.acting_as(actor)

    async def seen(self) -> int:
        """Return the number of the last event; at most two looks a second, however many watch."""
        now = time.monotonic()
        if now >= self._look_again:
            self._look_again = now + 0.5
            self._seen = (await self.read(lambda live: live.checkpoint())).seq
        return self._seen

    async def freshen(self, patience: float = 0.0) -> None:
        """Have the evidence weighed in the background; wait a little where there is none."""
        weighing, current = self.weighing, await self.seen()
        stale = weighing.latest is None or weighing.latest.seq != current
        if stale and self._weighs is None and weighing.rested:
            self._weighs = asyncio.get_running_loop().create_task(self._weigh())
            self._desk.keep(self._weighs)
        if self._weighs is not None and patience and weighing.latest is None:
            await asyncio.wait([self._weighs], timeout=patience)

    async def _weigh(self) -> None:
        try:
            await self._desk.in_reader(self.weighing.weigh)
        except EquipoiseError as error:
            log.warning("weighing failed", extra={"fields": {"error": str(error)}})
        finally:
            self._weighs = None

    def close(self) -> None:
        """Let go of the database."""
        self._live.close_ledger()
        self.reader.close_ledger()
        self.weighing.close()

    async def _store(self) -> None:
        while self._waiting:
            now, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
            work = [(actor, command) for actor, command, _ in now]
            try:
                results = await self._desk.in_writer(partial(self._live.settle, work))
            except BaseException as error:
                for _, _, done in now:
                    if not done.done():
                        done.set_exception(error)
                if not isinstance(error, Exception):
                    self._storing = False
                    raise
                continue
            for (_, _, done), result in zip(now, results, strict=True):
                if not done.done():  # else the caller has gone; what was stored is stored
                    done.set_result(result)
        self._storing = False


class Desk:
    """Every audit that this worker was asked about."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self._writers = ThreadPoolExecutor(16, "write")
        self._readers = ThreadPoolExecutor(16, "read")
        self._audits: OrderedDict[str, AuditDesk] = OrderedDict()
        self._heads: dict[int, tuple[int, str]] = {}
        self._store: Store | None = None
        self._opening, self._long = asyncio.Lock(), asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def audit(self, name: str) -> AuditDesk:
        """Return an audit by name or id."""
        if (known := self._audits.get(name)) is not None:
            self._audits.move_to_end(name)
            return known
        async with self._opening:
            if name in self._audits:
                return self._audits[name]
            try:
                desk = await self.in_reader(lambda: self._open(name))
            except UnknownName:
                raise Problem("unknown-audit") from None
            self._audits[name] = desk
            if len(self._audits) > HELD:
                self._audits.popitem(last=False)[1].close()
            return desk

    async def rows(self) -> list[AuditRow]:
        """Return the audits of the ledger, oldest first."""
        return await self.in_reader(lambda: self._ledger().audits())

    async def in_reader(self, work: Callable[[], T]) -> T:
        """Do something in a thread for reads."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    async def in_turn(self, work: Callable[[], T]) -> T:
        """Do something that takes long, one at a time; whoever comes meanwhile is sent away."""
        if self._long.locked():
            raise Problem("busy", "a rehearsal or a verification is under way")
        async with self._long:
            return await self.in_reader(work)

    async def in_writer(self, work: Callable[[], T]) -> T:
        """Do something in a thread for writes."""
        return await asyncio.get_running_loop().run_in_executor(self._writers, work)

    def keep(self, task: asyncio.Task[None]) -> None:
        """Hold on to a task until it is done."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def require_ready(self) -> None:
        """Raise unless the ledger can be written and still holds what this worker saw of it."""
        store = self._ledger()
        with store.transaction() as connection:
            connection.run("UPDATE audits SET seq = seq WHERE id = -1")
        for row in store.audits():
            seq, own = self._heads.get(row.id, (0, ""))
            if seq:
                bodies = list(store.events(row.id, after=seq - 1, upto=seq))
                if [digest(body) for body in bodies] != [own]:
                    raise LedgerError(f"event {seq} of {row.name!r} is not the one seen earlier")
            self._heads[row.id] = (row.seq, row.hash)

    def close(self) -> None:
        """Let go of the database."""
        for desk in self._audits.values():
            desk.close()
        if self._store is not None:
            self._store.close()
        self._writers.shutdown(wait=False, cancel_futures=True)
        self._readers.shutdown(wait=False, cancel_futures=True)

    def _open(self, name: str) -> AuditDesk:
        wait = self.settings.wait_seconds
        return AuditDesk(self, LiveAudit.open(self.settings.ledger, name, timeout=wait))

    def _ledger(self) -> Store:
        if self._store is None:
            store = Store(self.settings.ledger, create=True, timeout=self.settings.wait_seconds)
            self._store = store
        return self._store
