"""Plans and new audits over HTTP: what they take of the server's memory, and of other processes."""

from __future__ import annotations

import argparse
import json
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx
from rich.table import Table
from tests.support.tables import table

from bench.serving import running_server

COUNTS = {"approved_positive": 600, "approved_negative": 50, "denied": 250}
SMALL = {"past": {"A": COUNTS, "B": COUNTS}, "audit": "rs", "options": {"tau": 20}}
PORT = 8124
Send = Callable[[], httpx.Response]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--create", type=int, default=200, help="groups of the new audit")
    parser.add_argument("--check", type=int, default=100, help="groups of the page's plan")


def run(options: argparse.Namespace) -> Table:
    """Send requests to a server; note the answer, the time and the peaks of memory."""
    out = table(
        "Plans and new audits over HTTP",
        *("request", "answer", "seconds", "server, peak MB", "server, after", "others, peak MB"),
    )
    with running_server(PORT) as server, server.program() as programs:
        origin = {"origin": server.url}
        with httpx.Client(base_url=server.url, timeout=600.0, headers=origin) as browser:
            browser.post("/login", data={"token": server.token})
            for name, send in _requests(browser, programs, options):
                _add(out, server.process_id, name, send)
    return out


def _requests(
    browser: httpx.Client, programs: httpx.Client, options: argparse.Namespace
) -> list[tuple[str, Send]]:
    """Return what is measured, in this order."""
    groups = options.create
    new = {"past": _past(groups), "costs": {"feature": 5, "label": 100}}
    narrow = {"tolerance": "20", "margin": "1"}
    return [
        # The first one starts the program that tries it.
        (
            "PUT /v1/audits, 2 groups, the first",
            lambda: programs.put("/v1/audits/first", json=SMALL),
        ),
        (
            "PUT /v1/audits, 2 groups, the second",
            lambda: programs.put("/v1/audits/second", json=SMALL),
        ),
        (f"PUT /v1/audits, {groups} groups", lambda: programs.put("/v1/audits/new", json=new)),
        (
            f"the same with confirm, {groups} groups",
            lambda: programs.put("/v1/audits/many", json={**new, "confirm": True}),
        ),
        (f"GET finding, {groups} groups", lambda: programs.get("/v1/audits/many/finding")),
        (
            f"POST /check, plan of {options.check} groups",
            lambda: _plan(browser, options.check, {}),
        ),
        ("POST /check, plan of 4 groups, margin of 1 point", lambda: _plan(browser, 4, narrow)),
    ]


def _past(groups: int) -> dict[str, dict[str, int]]:
    return {f"g{number}": COUNTS for number in range(groups)}


def _plan(browser: httpx.Client, groups: int, more: dict[str, str]) -> httpx.Response:
    page = browser.get("/check").text
    form_key = page.partition('name="form_key" value="')[2].partition('"')[0]
    form = {"form_key": form_key, "cells": json.dumps(_past(groups)), "step": "plan", **more}
    return browser.post("/check", data=form)


def _add(out: Table, pid: int, name: str, send: Send) -> None:
    """Send a request while the memory of the server and of its other processes is watched."""
    server_peak = 0.0
    others_peak = 0.0
    is_done = threading.Event()

    def watch() -> None:
        nonlocal server_peak, others_peak
        while not is_done.wait(0.05):
            server_peak = max(server_peak, _resident(pid))
            others_peak = max(others_peak, sum(map(_resident, _descendants(pid))))

    watcher = threading.Thread(target=watch)
    watcher.start()
    begun = time.perf_counter()
    answer = send()
    seconds = time.perf_counter() - begun
    is_done.set()
    watcher.join()
    figures = (server_peak, _resident(pid), others_peak)
    megabytes = [f"{figure:,.0f}" for figure in figures]
    out.add_row(name, str(answer.status_code), f"{seconds:.2f}", *megabytes)


def _descendants(pid: int) -> list[int]:
    """Return the processes that a process has started, and those that they have."""
    listing = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout
    children = [int(child) for child in listing.split()]
    return children + [process for child in children for process in _descendants(child)]


def _resident(pid: int) -> float:
    """Return the megabytes that a process holds, 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024
