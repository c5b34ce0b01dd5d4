"""A live audit of a million people: CPU seconds and memory of each thing one does with it."""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

from rich.table import Table
from tests.support.tables import CACHE, table

from equipoise.ledger import LiveAudit
from equipoise.ledger.commands import MarkOverdue, WriteOff
from equipoise.protocol import Want
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld

WORLD = CellWorld.from_shares({"A": (0.45, 0.15, 0.40, 0.5), "B": (0.15, 0.15, 0.70, 0.3)})
TASKS = ("open", "status", "tell", "ask", "late", "correct", "report", "verify")
COMMANDS = ("status", "ask", "tell")  # of the shell, start of the program included
IN_FLIGHT = 500

# What a program does that starts, does one thing and ends; its import is not counted.
PROGRAM = """
import json, sys, time
from equipoise.ledger import LiveAudit
from equipoise.report import Report, write_report
task, ledger, person, lost, told, outcome = sys.argv[1:]
start = time.process_time()
live = LiveAudit.open(ledger, "million")
if task in ("open", "status"):
    live.status() if task == "status" else live.checkpoint()
elif task == "ask":
    live.ask(f"somebody new at {time.time_ns()}", "B", 0)
elif task in ("tell", "late"):
    live.tell(person if task == "tell" else lost, 1)
elif task == "correct":
    live.correct(told, 1 - int(outcome), "typo")
elif task == "report":
    write_report(Report.of(live), ledger + ".html")
else:
    live.verify()
spent = time.process_time() - start
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([spent, int(peak.split()[1]) / 1024]))
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--people", type=int, default=1_000_000)
    parser.add_argument("--small", type=int, default=10_000, help="to see how it grows")
    parser.add_argument("--outcomes", type=int, default=10_000, help="of denied people, told")
    parser.add_argument("--directory", type=Path, default=CACHE, help="ledgers are kept here")


def run(options: argparse.Namespace) -> Table:
    """Fill two ledgers and do everything in programs of their own."""
    sizes = (options.small, options.people)
    found: dict[int, dict[str, tuple[float, float]]] = {}
    options.directory.mkdir(parents=True, exist_ok=True)
    for size in sizes:
        ledger = f"{options.directory}/ledger-{size}.db"
        outcomes = fill(ledger, size, options.outcomes * size // options.people)
        found[size] = measure(ledger)
        title = f"one audit on SQLite: {size:,} people, {outcomes:,} outcomes of denied people"
        print(title)
    out = table("Live audit, CPU seconds and peak memory per program", "task", *map(str, sizes))
    for task in TASKS:
        out.add_row(task, *(_cell(*found[size][task]) for size in sizes))
    for command in COMMANDS:
        cells = [_cell(*run_command(f"{options.directory}/ledger-{n}.db", command)) for n in sizes]
        out.add_row(f"equipoise audit {command}", *cells)
    return out


def _cell(seconds: float, megabytes: float) -> str:
    return f"{seconds:.2f} s, {megabytes:,.0f} MB"


def run_command(ledger: str, command: str) -> tuple[float, float]:
    """Return CPU seconds and peak megabytes of a shell command, byte-compiled as when installed."""
    person = f"somebody new at {time.time_ns()}"
    if command == "tell":
        live = LiveAudit.open(ledger, "million")
        person = str(next(iter(live.people(states=("RESERVED",), limit=1))).person)
        live.close_ledger()
    more = {"status": [], "ask": [person, "B", "0"], "tell": [person, "1"]}[command]
    program = str(Path(sys.executable).with_name("equipoise"))
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    least = (math.inf, math.inf)
    for _ in range(
        3
    ):  # the first one may compile; the others repeat it, which decides nothing anew
        process = subprocess.Popen(
            [program, "audit", command, "million", *more, "--ledger", ledger],
            stdout=subprocess.DEVNULL,
            env=environment,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        least = min(least, (used.ru_utime + used.ru_stime, used.ru_maxrss / 1024))
    return least


def fill(ledger: str, people: int, outcomes: int) -> int:
    """Let people come, tell so many outcomes, and leave some out, as outcomes take months.

    A ledger that an earlier run has begun is filled up.
    """
    if Path(ledger).exists():
        live = LiveAudit.open(ledger, "million")
    else:
        live = LiveAudit.create(
            ledger,
            "million",
            WORLD.past(None, 0),
            Question(gamma=0.2656, epsilon=0.02),  # the truth is between both answers: no end
            Costs(feature=5, label=100),
            max_in_flight=IN_FLIGHT,
        )
    status = live.status()
    told = sum(g.positive + g.negative for g in status.groups.values())
    for start in range(status.people, people, 1000):
        drawn = list(WORLD.draw(min(1000, people - start), start))
        rows = [(f"{(start + i) * 2654435761 % 2**32:08x}-{start + i}", p.group, p.decision)
                for i, p in enumerate(drawn)]  # fmt: skip
        replies = live.ask_many(rows)
        wanted = [(r.person, p.outcome) for r, p in zip(replies, drawn, strict=True)
                  if r.want is Want.LABEL]  # fmt: skip
        live.tell_many(wanted[: max(0, outcomes - told)])
        told = min(outcomes, told + len(wanted))
    live.close_ledger()
    return told


def measure(ledger: str) -> dict[str, tuple[float, float]]:
    """Return CPU seconds and peak megabytes of each task, each in a fresh program."""
    live = LiveAudit.open(ledger, "million")
    open_one, lost = (str(row.person) for row in live.people(states=("RESERVED",), limit=2))
    live.run([MarkOverdue(lost), WriteOff(lost)])  # its outcome will come late
    known = next(r for r in live.people(states=("REVEALED",), limit=9) if r.decision == 0)
    live.close_ledger()
    found = {}
    for task in TASKS:
        given = [task, ledger, open_one, lost, str(known.person), str(known.outcome)]
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *given], check=True, capture_output=True, text=True
        )
        found[task] = tuple(json.loads(done.stdout))
    return found
