"""Kill -9: three programs write to one ledger and are killed again and again."""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from equipoise.ledger import LiveAudit
from equipoise.question import Costs, Question, Want
from equipoise.worlds import CellWorld
from study.postgres import in_memory, new_database, postgres

WRITERS = 3
BUDGET = 50_000
LIFE = {"sqlite": 0.05, "postgresql": 0.1}  # seconds from work to kill, at most
WORLD = CellWorld.from_shares({"A": (0.45, 0.15, 0.40, 0.5), "B": (0.15, 0.15, 0.70, 0.3)})


@dataclass(frozen=True)
class KillResult:
    """What a round of kills left behind."""

    ledger: str
    kills: int
    acknowledged: int
    lost: int
    requested_twice: int
    events: int
    spent: int
    reserved: int

    def __str__(self) -> str:
        return (
            f"{self.ledger}: {self.kills:,} kills, {self.acknowledged:,} acknowledged calls, "
            f"{self.lost} lost, {self.requested_twice} requested twice; {self.events:,} events "
            f"verify; {self.spent:,} spent + {self.reserved:,} reserved of {BUDGET:,}"
        )


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kills", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)


def run(options: argparse.Namespace) -> str:
    lines = []
    for kind in ("sqlite", "postgresql"):
        with place(kind) as ledger:
            lines.append(f"{kill_writers(ledger, options.kills, options.seed, kind)}")
    return "\n".join(lines)


@contextmanager
def place(kind: str) -> Iterator[str]:
    """Yield where to keep a ledger of this kind."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(dir=in_memory()) as directory:
            yield f"{directory}/ledger.db"
    else:
        with postgres() as server:
            yield new_database(server)


def kill_writers(ledger: str, kills: int, seed: int, kind: str) -> KillResult:
    """Let three programs write, kill one at a time, and compare the ledger with their diaries."""
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
        for kill in range(1, kills + 1):
            _wait_for_work([diaries / name for name in names.values()])
            time.sleep(rng.uniform(0.0, LIFE[kind]))
            slot = rng.randrange(WRITERS)
            os.kill(writers[slot], signal.SIGKILL)
            os.waitpid(writers[slot], 0)
            names[slot] = f"{slot}-{kill}"
            writers[slot] = _spawn(ledger, diaries, names[slot])
        for pid in writers.values():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        return _compare(ledger, diaries, kills, kind)


def _wait_for_work(diaries: list[Path]) -> None:
    """Wait until something more is acknowledged, so that a busy machine has something to lose."""
    before, deadline = _written(diaries), time.monotonic() + 60.0
    while _written(diaries) == before and time.monotonic() < deadline:
        time.sleep(0.001)


def _written(diaries: list[Path]) -> int:
    return sum(diary.stat().st_size for diary in diaries if diary.exists())


def _compare(ledger: str, diaries: Path, kills: int, kind: str) -> KillResult:
    live = LiveAudit.open(ledger, "killed")
    summary = live.verify()  # chain, cap after every event, one request per person, replay
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
    requests = [
        json.loads(line)["data"]["person"]
        for line in live.lines()
        if b'"type":"asked"' in line and b'"want":"LABEL"' in line
    ]
    return KillResult(
        ledger=kind,
        kills=kills,
        acknowledged=acknowledged,
        lost=lost,
        requested_twice=len(requests) - len(set(requests)),
        events=summary.events,
        spent=summary.spent,
        reserved=summary.reserved,
    )


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
    live = LiveAudit.open(ledger, "killed")
    diary = os.open(diaries / name, os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def note(person: str, want: Want, outcome: int | None = None) -> None:
        entry = {"person": person, "want": want.value, "outcome": outcome}
        os.write(diary, (json.dumps(entry) + "\n").encode())

    for number in range(10**9):
        people = [
            (f"{name}-{number}-{i}", rng.choice("AB"), int(rng.random() < 0.4))
            for i in range(rng.choice((1, 1, 5)))
        ]
        replies = live.ask_many(people) if len(people) > 1 else [live.ask(*people[0])]
        for reply in replies:
            note(reply.person, reply.want)
        wanted = [reply.person for reply in replies if reply.want is Want.LABEL]
        for person in wanted:
            if rng.random() < 0.9:
                outcome = int(rng.random() < 0.5)
                reply = live.tell(person, outcome)
                live.tell(person, outcome)
                note(person, reply.want, outcome)
        again = rng.choice(people)
        reply = live.ask(*again)  # the same answer as before, or the ledger forgot
        note(reply.person, reply.want)
