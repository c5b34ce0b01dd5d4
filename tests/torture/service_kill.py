"""Kill -9 of the service's workers under load: nothing acknowledged is lost or paid twice."""

from __future__ import annotations

import argparse
import os
import random
import signal
import socket
import tempfile
import threading
import time
from dataclasses import dataclass, field

import uvicorn
from rich.table import Table

from equipoise.client import RemoteAudit
from equipoise.errors import EquipoiseError
from equipoise.ledger import LiveAudit
from equipoise.protocol import Want
from equipoise.question import Costs, Question
from equipoise.service import Role, ServiceSettings, TokenStore, create_app, load_settings
from tests.support.postgres import in_memory, new_database, postgres
from tests.support.serving import WORLD
from tests.support.tables import table

WORKERS, CLIENTS = 2, 3
BUDGET = 50_000


@dataclass
class Diary:
    """What one client was told, right after it was."""

    asked: dict[str, Want] = field(default_factory=dict)
    told: dict[str, int] = field(default_factory=dict)
    changed: int = 0
    error: EquipoiseError | None = None


@dataclass(frozen=True)
class KillResult:
    """What kills left behind."""

    kills: int
    acknowledged: int
    lost: int
    answered_differently: int
    requested_twice: int
    wrong_money: int


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kills", type=int, default=200)


def run(options: argparse.Namespace) -> Table:
    """Kill workers on SQLite and on PostgreSQL, half of the time each."""
    out = table("Workers killed under load", "ledger", *KillResult.__dataclass_fields__)
    for kind in ("sqlite", "postgresql"):
        with tempfile.TemporaryDirectory(dir=in_memory()) as directory:
            if kind == "sqlite":
                found = kill_workers(directory, f"{directory}/ledger.db", options.kills // 2, 0)
            else:
                with postgres() as server:
                    found = kill_workers(directory, new_database(server), options.kills // 2, 1)
        out.add_row(kind, *(f"{n:,}" for n in vars(found).values()))
    return out


def kill_workers(directory: str, ledger: str, kills: int, seed: int) -> KillResult:
    """Let clients ask and tell, kill worker after worker, compare the ledger with diaries."""
    settings = load_settings(ledger=ledger, tokens=f"{directory}/tokens")
    store = TokenStore(settings.token_store)
    token = store.new("bank", Role.WRITER)
    store.close()
    LiveAudit.create(
        ledger, "killed", WORLD.past(None, 0), Question(gamma=0.1, epsilon=0.2), Costs(5, 100),
        audit="rs", budget=BUDGET, max_in_flight=200, options={"tau": 1_000_000},
    ).close_ledger()  # fmt: skip
    rng, stop, diaries = random.Random(seed), threading.Event(), [Diary() for _ in range(CLIENTS)]
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        place.listen(256)
        url = f"http://127.0.0.1:{place.getsockname()[1]}"
        workers = [_start(settings, place) for _ in range(WORKERS)]

        clients = [
            threading.Thread(target=_use, args=(url, token, number, diary, stop))
            for number, diary in enumerate(diaries)
        ]
        for client in clients:
            client.start()
        try:
            for _ in range(kills):
                _wait_for_work(diaries)
                time.sleep(rng.uniform(0.0, 0.03))
                slot = rng.randrange(WORKERS)
                os.kill(workers[slot], signal.SIGKILL)
                os.waitpid(workers[slot], 0)
                workers[slot] = _start(settings, place)
        finally:
            stop.set()
            for client in clients:
                client.join()
            for pid in workers:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
    for diary in diaries:
        if diary.error is not None:
            raise diary.error
    return _compare(ledger, diaries, kills)


def _start(settings: ServiceSettings, place: socket.socket) -> int:
    """Fork a worker that shares the listening socket, as workers of one server do."""
    pid = os.fork()
    if pid == 0:
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            config = uvicorn.Config(create_app(settings), log_level="critical", access_log=False)
            uvicorn.Server(config).run([place])
        finally:
            os._exit(1)
    return pid


def _use(url: str, token: str, number: int, diary: Diary, stop: threading.Event) -> None:
    rng, count = random.Random(number), 0
    try:
        with RemoteAudit(url, "killed", token=token, patience=60.0) as audit:
            while not stop.is_set():
                count += 1
                person, group = f"{number}-{count}", rng.choice("AB")
                want = audit.ask(person, group, 0).want
                diary.asked[person] = want
                diary.changed += audit.ask(person, group, 0).want is not want
                if want is Want.LABEL and rng.random() < 0.9:
                    outcome = int(rng.random() < 0.5)
                    audit.tell(person, outcome)
                    diary.told[person] = outcome
    except EquipoiseError as error:
        diary.error = error


def _wait_for_work(diaries: list[Diary]) -> None:
    """Wait until something more is acknowledged, so that there is something to lose."""
    before, deadline = sum(len(d.asked) for d in diaries), time.monotonic() + 60.0
    while sum(len(d.asked) for d in diaries) < before + 2 and time.monotonic() < deadline:
        time.sleep(0.002)


def _compare(ledger: str, diaries: list[Diary], kills: int) -> KillResult:
    live = LiveAudit.open(ledger, "killed")
    summary = live.verify()
    stored = {row.person: row for row in live.people()}
    lost = sum(
        person not in stored or stored[person].want != want
        for diary in diaries
        for person, want in diary.asked.items()
    )
    lost += sum(
        stored[person].outcome != outcome
        for diary in diaries
        for person, outcome in diary.told.items()
    )
    requests = [row.request for row in stored.values() if row.want == "LABEL"]
    paid = sum(row.paid for row in stored.values())
    owed = sum(5 + 100 * (row.outcome == 0) for row in stored.values() if row.outcome is not None)
    live.close_ledger()
    return KillResult(
        kills=kills,
        acknowledged=sum(len(d.asked) + len(d.told) for d in diaries),
        lost=lost,
        answered_differently=sum(d.changed for d in diaries),
        requested_twice=len(requests) - len(set(requests)),
        wrong_money=int(not paid == owed == summary.spent <= BUDGET),
    )
