"""The service: durable asks against an empty endpoint, and pages of a million people."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from rich.table import Table
from tests.support.serving import PAST
from tests.support.tables import CACHE, table

from bench.ledger_million import fill
from equipoise.service import Role, TokenStore, load_settings

CONNECTIONS = 32
PAGES = (
    "/",
    "/audits/million",
    "/audits/million/live",
    "/audits/million/people",
    "/audits/million/people?state=REVEALED",
    "/audits/million/people?state=WITHDRAWN",
    "/audits/million/people?conflicted=true",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--people", type=int, default=1_000_000)
    parser.add_argument("--outcomes", type=int, default=10_000, help="of denied people, told")
    parser.add_argument("--requests", type=int, default=500, help="per round")
    parser.add_argument("--rounds", type=int, default=20, help="short ones, each in turn")
    parser.add_argument("--directory", type=Path, default=CACHE, help="where the disk is measured")


def run(options: argparse.Namespace) -> Table:
    """Measure everything in turns, so that a busy machine is busy for all of them."""
    options.directory.mkdir(parents=True, exist_ok=True)
    out = table("The service", "what", "result")
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        _durable_asks(directory, options, out)
        _many_people(directory, options, out)
    return out


def _durable_asks(directory: str, options: argparse.Namespace, out: Table) -> None:
    with _serve(f"{directory}/small.db") as server:
        server.create("loans")
        ratios, rates, cpu, times = [], [], [], list[float]()
        for round_ in range(options.rounds + 1):
            start = server.cpu()
            rate, _ = server.load([server.request("GET", "/livez")] * options.requests)
            of_empty, start = server.cpu() - start, server.cpu()
            found, latencies = server.load(server.asks("loans", f"r{round_}", options.requests))
            if round_:  # the first one warms up
                ratios.append(found / rate)
                rates.append(found)
                cpu.append((of_empty, server.cpu() - start))
                times += latencies
    low, middle, high = statistics.quantiles(ratios, n=4)
    words = f"{middle:.2f} of an empty endpoint (half of the rounds {low:.2f} to {high:.2f})"
    out.add_row(f"durable asks, {CONNECTIONS} connections", words)
    of_empty, of_asks = (sum(part) for part in zip(*cpu, strict=True))
    out.add_row("… by processor time of the server", f"{of_empty / max(of_asks, 1e-9):.2f}")
    out.add_row("… asks per second", f"{statistics.median(rates):,.0f}")
    out.add_row("… p99", f"{sorted(times)[int(0.99 * len(times))] * 1000:.0f} ms")


def _many_people(directory: str, options: argparse.Namespace, out: Table) -> None:
    for size in (10_000, options.people):
        kept = f"{options.directory}/ledger-{size}.db"  # of `bench ledger_million`, if it was run
        fill(kept, size, options.outcomes * size // options.people)
        shutil.copy(kept, f"{directory}/{size}.db")
    with _serve(f"{directory}/10000.db") as few, _serve(f"{directory}/{options.people}.db") as many:
        rates, costs = [], []
        for server in (few, many):  # so that an ask is weighed, not sent away
            server.free("million")
        for round_ in range(options.rounds + 1):
            found = []
            for server in (few, many):
                start, asks = server.cpu(), server.asks("million", f"r{round_}", options.requests)
                found.append((server.load(asks)[0], server.cpu() - start))
            if round_:
                rates.append(found[0][0] / found[1][0])
                costs.append((found[0][1], found[1][1]))
        words = f"{statistics.median(rates):.2f} times as long as at 10,000"
        out.add_row(f"asks at {options.people:,} people take", words)
        of_few, of_many = (sum(part) for part in zip(*costs, strict=True))
        out.add_row("… by processor time of the server", f"{of_many / max(of_few, 1e-9):.2f}")
        worst = many.pages(PAGES)
    for path, milliseconds in worst.items():
        out.add_row(f"{path} at {options.people:,} people", f"{milliseconds:.0f} ms of server time")


@dataclass
class _Server:
    """A server in a process of its own, with an auditor's and a writer's token."""

    port: int
    process: subprocess.Popen[bytes]
    tokens: dict[str, str]
    log: Path

    def request(self, method: str, path: str, body: bytes = b"", role: str = "writer") -> bytes:
        more = b"content-type: application/json\r\ncontent-length: %d\r\n" % len(body)
        head = f"{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {self.tokens[role]}"
        return head.encode() + b"\r\n" + (more if body else b"") + b"\r\n" + body

    def asks(self, audit: str, name: str, number: int) -> list[bytes]:
        path = f"/v1/audits/{audit.replace(' ', '%20')}/commands"
        body = b'{"commands":[{"command":"ask","person":"%s-%d","group":"B","decision":0}]}'
        return [self.request("POST", path, body % (name.encode(), i)) for i in range(number)]

    def create(self, audit: str) -> None:
        question = {"gamma": 0.2656, "epsilon": 0.02}
        self.call("PUT", audit, {"past": PAST, "question": question, "max_in_flight": 500})

    def free(self, audit: str) -> None:
        """Let any number of people be in flight."""
        limits = {"command": "set_limits", "max_in_flight": None, "why": "to be measured"}
        self.call("POST", f"{audit}/commands", {"commands": [limits]})

    def call(self, method: str, path: str, body: dict[str, object]) -> None:
        headers = {"authorization": f"Bearer {self.tokens['auditor']}"}
        url = f"http://127.0.0.1:{self.port}/v1/audits/{path}"
        httpx.request(method, url, json=body, headers=headers, timeout=120.0).raise_for_status()

    def load(self, requests: list[bytes]) -> tuple[float, list[float]]:
        """Send requests over 32 connections; return requests per second and each one's time."""
        start = time.perf_counter()
        latencies = asyncio.run(_send(self.port, requests))
        return len(requests) / (time.perf_counter() - start), latencies

    def cpu(self) -> float:
        """Return the processor seconds of the server so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def pages(self, paths: tuple[str, ...]) -> dict[str, float]:
        """Return the server's own time for each page, the median of three after the first."""
        url = f"http://127.0.0.1:{self.port}"
        with httpx.Client(base_url=url, headers={"origin": url}, timeout=120.0) as browser:
            browser.post("/login", data={"token": self.tokens["auditor"]})
            for path in paths:
                assert browser.get(path).status_code == 200
            before = len(self.log.read_text().splitlines())
            for path in paths:
                for _ in range(3):
                    browser.get(path)
        lines = [json.loads(line) for line in self.log.read_text().splitlines()[before:]]
        times = [line["ms"] for line in lines if line["event"] == "request"]
        return {path: statistics.median(times[3 * i : 3 * i + 3]) for i, path in enumerate(paths)}


async def _send(port: int, requests: list[bytes]) -> list[float]:
    queue, latencies = iter(requests), list[float]()

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for request in queue:
            start = time.perf_counter()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length))
            latencies.append(time.perf_counter() - start)
        writer.close()

    await asyncio.gather(*(one() for _ in range(CONNECTIONS)))
    return latencies


@contextmanager
def _serve(ledger: str, tokens: str = "") -> Iterator[_Server]:
    place = load_settings(ledger=ledger, tokens=tokens).token_store
    store = TokenStore(place)
    made = {
        role: store.new(f"{role} {time.time_ns()}", Role(role)) for role in ("writer", "auditor")
    }
    store.close()
    with socket.socket() as free, tempfile.NamedTemporaryFile() as log:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        program = "from equipoise.cli import app; app()"
        line = ["serve", "--ledger", ledger, "--tokens", place, "--port", str(port)]
        process = subprocess.Popen(
            [sys.executable, "-c", program, *line],
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
        try:
            for _ in range(1200):
                try:
                    httpx.get(f"http://127.0.0.1:{port}/readyz").raise_for_status()
                    break
                except httpx.HTTPError:
                    time.sleep(0.05)
            yield _Server(port, process, made, Path(log.name))
        finally:
            process.terminate()
            process.wait()
