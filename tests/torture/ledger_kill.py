"""Kill -9: programs write to one ledger and are killed and robbed of their server."""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from equipoise.errors import LedgerError
from equipoise.ledger import LiveAudit
from equipoise.protocol import Want
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld
from tests.support.postgres import in_memory, new_database, postgres
from tests.torture import _attacks

WRITERS = 3
BUDGET = 50_000
ROUND = 100  # kills after which a ledger is compared with the diaries, and a fresh one begins
LIFE = {"sqlite": 0.02, "postgresql": 0.04}  # seconds from work to kill, at most
WAYS = {  # -> its share of all kills; a server takes a second to come back
    "sqlite": 0.7,
    "postgresql": 0.24,
    "postgresql server": 0.06,
}
WORLD = CellWorld.from_shares({"A": (0.45, 0.15, 0.40, 0.5), "B": (0.15, 0.15, 0.70, 0.3)})

T = TypeVar("T")


@dataclass
class KillResult:
    """What kills left behind."""

    kills: int = 0
    acknowledged: int = 0
    lost: int = 0
    requested_twice: int = 0
    cap_exceeded: int = 0
    events: int = 0

    def __str__(self) -> str:
        return (
            f"{self.kills:,} kills, {self.acknowledged:,} acknowledged calls, {self.lost} lost, "
            f"{self.requested_twice} requested twice, cap exceeded {self.cap_exceeded} times; "
            f"{self.events:,} events verify"
        )


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--total", type=int, default=10_000, help="stop when so many are counted")
    parser.add_argument("--rounds", type=int, help=f"stop after so many rounds of {ROUND} kills")


def run(options: argparse.Namespace) -> str:
    """Add rounds to what earlier runs have counted, until the total is reached."""
    _attacks.cache_often()
    said, rounds = [], 0
    while rounds != options.rounds:
        kills = {way: _attacks.counted("ledger_kill", way, "kills") for way in WAYS}
        if sum(kills.values()) >= options.total:
            break
        way = min(WAYS, key=lambda w: kills[w] / WAYS[w])
        with place(way.split()[0]) as ledger:
            found = kill_writers(ledger, ROUND, time.time_ns(), way)
        _attacks.add("ledger_kill", way, **asdict(found))
        said.append(f"{way}: {found}")
        rounds += 1
    return "\n".join(said) or f"{options.total:,} kills are counted already"


@contextmanager
def place(kind: str) -> Iterator[str]:
    """Yield where to keep a ledger of this kind."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(dir=in_memory()) as directory:
            yield f"{directory}/ledger.db"
    else:
        with postgres() as server:
            yield new_database(server)


def kill_writers(ledger: str, kills: int, seed: int, way: str) -> KillResult:
    """Let three programs write, kill some of them, and compare the ledger with their diaries.

    ``way`` names the database and, after it, ``server`` if PostgreSQL's own processes are killed.
    """
    rng = random.Random(seed)
    LiveAudit.create(
        ledger,
        "killed",
        WORLD.past(None, 0),
        Question(gamma=0.1, epsilon=0.2),
        Costs(feature=5, label=100),
        audit="rs",
        budget=BUDGET,
        max_in_flight=200,
        options={"tau": 1_000_000},
    ).close_ledger()
    with tempfile.TemporaryDirectory() as directory:
        diaries = Path(directory)
        names = {i: f"{i}-0" for i in range(WRITERS)}
        writers = {i: _spawn(ledger, diaries, name) for i, name in names.items()}
        done = 0
        while done < kills:
            _wait_for_work([diaries / name for name in names.values()])
            time.sleep(rng.uniform(0.0, LIFE[way.split()[0]]))
            if "server" in way:
                _kill_server_process(ledger, rng)
                done += 1
                continue
            hit = rng.sample(range(WRITERS), min(rng.randint(1, WRITERS), kills - done))
            for slot in hit:
                os.kill(writers[slot], signal.SIGKILL)
            for slot in hit:
                os.waitpid(writers[slot], 0)
                done += 1
                names[slot] = f"{slot}-{done}"
                writers[slot] = _spawn(ledger, diaries, names[slot])
        for pid in writers.values():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        return _compare(ledger, diaries, kills)


def _kill_server_process(ledger: str, rng: random.Random) -> None:
    """Kill -9 a process of PostgreSQL: all its connections break, and it recovers from its log."""
    import psycopg

    for _ in range(600):
        with suppress(psycopg.Error), psycopg.connect(ledger, autocommit=True) as connection:
            query = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            pids = [row[0] for row in connection.execute(query)]
            with suppress(ProcessLookupError):
                os.kill(rng.choice(pids), signal.SIGKILL)
                return
        time.sleep(0.05)
    raise AssertionError("the server does not come back")


def _wait_for_work(diaries: list[Path]) -> None:
    """Wait until something more is acknowledged, so that a busy machine has something to lose."""
    before, deadline = _written(diaries), time.monotonic() + 60.0
    while _written(diaries) == before and time.monotonic() < deadline:
        time.sleep(0.001)


def _written(diaries: list[Path]) -> int:
    return sum(diary.stat().st_size for diary in diaries if diary.exists())


def _compare(ledger: str, diaries: Path, kills: int) -> KillResult:
    live = _again(lambda: LiveAudit.open(ledger, "killed"))
    summary = _again(live.verify)  # chain, cap after every event, tables, keys, replay
    stored = {row.person: row for row in live.people()}
    acknowledged = lost = 0
    for diary in diaries.iterdir():
        for line in diary.read_text().splitlines(keepends=True):
            if not line.endswith("\n"):
                continue  # the writer was killed while it wrote its diary
            entry = json.loads(line)
            acknowledged += 1
            row, told = stored.get(entry["person"]), entry["outcome"]
            kept = row is not None and row.want == entry["want"] and told in (None, row.outcome)
            lost += not kept
    requests = [row.request for row in stored.values() if row.want == "LABEL"]
    return KillResult(
        kills=kills,
        acknowledged=acknowledged,
        lost=lost,
        requested_twice=len(requests) - len(set(requests)),
        cap_exceeded=int(summary.spent + summary.reserved > BUDGET),
        events=summary.seq,
    )


def _again(call: Callable[[], T]) -> T:
    """Call until the ledger answers, as a program does whose server was killed."""
    for _ in range(600):
        try:
            return call()
        except LedgerError as error:
            if "broken" in str(error) or "stored as" in str(error):
                raise
            time.sleep(0.05)
    return call()


def _spawn(ledger: str, diaries: Path, name: str) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            _write(ledger, diaries, name)
        finally:
            os._exit(1)
    return pid


def _write(ledger: str, diaries: Path, name: str) -> None:
    """Ask and tell for ever; write down what was acknowledged, right after it was."""
    rng = random.Random(name)
    live = _again(lambda: LiveAudit.open(ledger, "killed"))
    diary = os.open(diaries / name, os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def note(person: str, want: Want, outcome: int | None = None) -> None:
        entry = {"person": person, "want": want.value, "outcome": outcome}
        os.write(diary, (json.dumps(entry) + "\n").encode())

    for number in range(10**9):
        people = [
            (f"{name}-{number}-{i}", rng.choice("AB"), int(rng.random() < 0.4))
            for i in range(rng.choice((1, 1, 5)))
        ]
        replies = _again(lambda p=people: live.ask_many(p) if len(p) > 1 else [live.ask(*p[0])])
        for reply in replies:
            note(reply.person, reply.want)
        wanted = [reply.person for reply in replies if reply.want is Want.LABEL]
        for person in wanted:
            if rng.random() < 0.9:
                outcome = int(rng.random() < 0.5)
                reply = _again(lambda p=person, y=outcome: live.tell(p, y))
                _again(lambda p=person, y=outcome: live.tell(p, y))
                note(person, reply.want, outcome)
        again = rng.choice(people)
        reply = _again(lambda p=again: live.ask(*p))  # as before, or it forgot
        note(reply.person, reply.want)
