"""Verification while writers are at work: no false alarm, and exports end where they say."""

from __future__ import annotations

import argparse
import os
import random
import signal
import tempfile
import time
from pathlib import Path

from equipoise.errors import EquipoiseError
from equipoise.ledger import LiveAudit
from equipoise.ledger.proof import verify_export
from equipoise.protocol import Want
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld
from tests.torture import _attacks
from tests.torture.ledger_kill import place

WRITERS = 2
ROUND = 10  # verifications of one ledger, which grows: each reads all of it
WORLD = CellWorld.from_shares({"A": (0.45, 0.15, 0.40, 0.5), "B": (0.15, 0.15, 0.70, 0.3)})


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--total", type=int, default=1000, help="stop when so many are counted")


def run(options: argparse.Namespace) -> str:
    """Add rounds, each on a fresh ledger, to what earlier runs have counted."""
    _attacks.cache_often()
    said = []
    for kind, share in (("sqlite", 0.7), ("postgresql", 0.3)):
        while _attacks.counted("ledger_verify", kind, "verifications") < share * options.total:
            with place(kind) as ledger:
                alarms = verify_while_writing(ledger, ROUND)
            counts = {"verifications": ROUND, "false_alarms": len(alarms)}
            _attacks.add("ledger_verify", kind, **counts)
            said += [f"{kind}: {alarm}" for alarm in alarms]
    return "\n".join(said) or "no false alarm"


def verify_while_writing(ledger: str, times: int) -> list[str]:
    """Verify the ledger and an export of it so many times; return what was said to be wrong."""
    live = LiveAudit.create(
        ledger,
        "busy",
        WORLD.past(None, 0),
        Question(gamma=0.1, epsilon=0.2),
        Costs(feature=5, label=100),
        audit="rs",
        budget=10**6,
        lottery=0.7,
        options={"tau": 1_000_000},
    )
    live.close_ledger()  # nothing of it may be open at a fork
    writers = [_spawn(ledger, number) for number in range(WRITERS)]
    alarms = []
    try:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "export.jsonl"
            for _ in range(times):
                _wait_for_more(live)
                try:
                    live.verify()
                    head = live.export(path)
                    verify_export(path, head=head.hash, checkpoints=[(head.seq, head.hash)])
                except EquipoiseError as error:
                    alarms.append(str(error))
    finally:
        for pid in writers:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return alarms


def _wait_for_more(live: LiveAudit) -> None:
    """Wait until the writers have written something, so that there is something to get wrong."""
    before, deadline = live.checkpoint().seq, time.monotonic() + 60.0
    while live.checkpoint().seq < before + 5 and time.monotonic() < deadline:
        time.sleep(0.005)


def _spawn(ledger: str, number: int) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            _write(LiveAudit.open(ledger, "busy"), random.Random(number), number)
        finally:
            os._exit(1)
    return pid


def _write(live: LiveAudit, rng: random.Random, number: int) -> None:
    """Ask, tell, correct, give up, for ever."""
    known: list[tuple[str, int]] = []
    for i in range(10**9):
        time.sleep(rng.uniform(0.0, 0.006))  # a ledger that grows faster takes longer to verify
        person = f"{number}-{i}"
        if live.ask(person, rng.choice("AB"), int(rng.random() < 0.3)).want is Want.LABEL:
            if rng.random() < 0.1:
                live.withdraw(person)
            else:
                live.tell(person, outcome := int(rng.random() < 0.5))
                known.append((person, outcome))
        if known and rng.random() < 0.02:
            person, outcome = known.pop(rng.randrange(len(known)))
            live.correct(person, 1 - outcome, "typo")
