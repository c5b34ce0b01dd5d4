"""Memory of a server while it answers many requests: it must not grow with their number."""

from __future__ import annotations

import argparse
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
from rich.table import Table
from tests.support.tables import table

from bench.serving import running_server

PAST = {
    "A": {"approved_positive": 4500, "approved_negative": 1500, "denied": 4000},
    "B": {"approved_positive": 1500, "approved_negative": 1500, "denied": 7000},
}
NEW_AUDIT = {
    "past": PAST,
    "question": {"metric": "equal_opportunity", "gamma": 0.2, "epsilon": 0.02},
    "costs": {"feature": 5, "label": 100},
    "confirm": True,
    "max_in_flight": 20,
}
CLIENTS = 4
LOOKS = 10  # at the memory, in the course of all requests
PORT = 8123


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--requests", type=int, default=20_000)


def run(options: argparse.Namespace) -> Table:
    """Send asks, tells, looks and nonsense; note the server's memory ten times."""
    out = table("Memory of `equipoise serve`", "requests", "resident MB", "events")
    with running_server(PORT) as server, server.program(timeout=60.0) as client:
        answer = client.put("/v1/audits/memory", json=NEW_AUDIT)
        assert answer.status_code == 200, answer.text
        for look in range(LOOKS + 1):
            events = client.get("/v1/audits/memory/status").json()["events"]
            done = look * options.requests // LOOKS
            out.add_row(f"{done:,}", f"{_resident(server.process_id):,.0f}", f"{events:,}")
            if look < LOOKS:
                _send_many(client, options.requests // LOOKS, look)
    return out


def _send_many(client: httpx.Client, count: int, look: int) -> None:
    with ThreadPoolExecutor(CLIENTS) as pool:
        for _ in pool.map(lambda number: _send(client, f"{look}-{number}"), range(count)):
            pass


def _send(client: httpx.Client, name: str) -> None:
    """Send one request of a kind that its name decides."""
    rng = random.Random(name)
    way = rng.random()
    path = "/v1/audits/memory"
    if way < 0.6:
        ask = {"command": "ask", "person": name, "group": rng.choice("AB"), "decision": 0}
        client.post(f"{path}/commands", json={"commands": [ask]})
    elif way < 0.8:  # about one who was asked before, or nobody
        tell = {"command": "tell", "person": f"{name[0]}-{rng.randrange(2000)}", "outcome": 1}
        client.post(f"{path}/commands", json={"commands": [tell]})
    elif way < 0.9:
        client.get(f"{path}/{rng.choice(['status', 'people', 'events'])}")
    else:
        client.post(f"{path}/commands", content=rng.randbytes(500))


def _resident(pid: int) -> float:
    """Return the megabytes that a process holds."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmRSS in /proc: this benchmark needs Linux")
