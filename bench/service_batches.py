"""Batches that wait at a server: how long a single ask and a probe take meanwhile."""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
from rich.table import Table
from tests.support.tables import CACHE, table

from bench.service_memory import PAST
from bench.serving import running_server

PORT = 8125
SINGLES = 5
NEW_AUDIT = {  # which wants everybody's outcome, so that each ask is stored with a request
    "past": PAST,
    "question": {"metric": "equalized_odds", "gamma": 0.1, "epsilon": 0.2},
    "costs": {"feature": 5, "label": 100},
    "audit": "rs",
    "options": {"tau": 20},
}
COMMANDS = "/v1/audits/batches/commands"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--batches", type=int, default=110, help="sent at once")
    parser.add_argument("--size", type=int, default=1000, help="asks of a batch")
    parser.add_argument("--directory", type=Path, default=CACHE, help="where the ledger is")


def run(options: argparse.Namespace) -> Table:
    """Send all batches at once; while they wait, send single asks and probes one by one."""
    options.directory.mkdir(parents=True, exist_ok=True)
    out = table("A server with batches that wait", "request", "median s", "longest s")
    with (
        running_server(PORT, options.directory) as server,
        server.program(limits=httpx.Limits(max_connections=None)) as client,
    ):
        client.put("/v1/audits/batches", json=NEW_AUDIT).raise_for_status()
        _measure(client, options, out)
    return out


def _measure(client: httpx.Client, options: argparse.Namespace, out: Table) -> None:
    with ThreadPoolExecutor(options.batches) as pool:
        begun = time.perf_counter()
        sent = [
            pool.submit(_ask, client, f"batch{number}", options.size)
            for number in range(options.batches)
        ]
        time.sleep(3.0)  # until all of them have arrived
        singles = [_ask(client, f"single{number}", 1) for number in range(SINGLES)]
        probes = [_probe(client) for _ in range(SINGLES)]
        assert not all(batch.done() for batch in sent), "the batches ended too soon: send more"
        for batch in sent:
            batch.result()
        seconds = time.perf_counter() - begun
    for name, times in (("a single ask", singles), ("/readyz", probes)):
        out.add_row(name, f"{sorted(times)[SINGLES // 2]:.2f}", f"{max(times):.2f}")
    out.add_row(f"all {options.batches} batches of {options.size:,}", "", f"{seconds:.0f}")


def _ask(client: httpx.Client, name: str, size: int) -> float:
    """Ask about so many people in one request; return the seconds until the answer."""
    asks = [
        {"command": "ask", "person": f"{name}-{number}", "group": "B", "decision": 1}
        for number in range(size)
    ]
    begun = time.perf_counter()
    client.post(COMMANDS, json={"commands": asks}).raise_for_status()
    return time.perf_counter() - begun


def _probe(client: httpx.Client) -> float:
    begun = time.perf_counter()
    client.get("/readyz").raise_for_status()
    return time.perf_counter() - begun
