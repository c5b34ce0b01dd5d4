"""Many groups over HTTP: what a new audit and a plan of them take of the server's memory."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
from rich.table import Table
from tests.support.tables import table

from bench.service_memory import begin_serving
from equipoise.service import Role, TokenStore, load_settings

COUNTS = {"approved_positive": 600, "approved_negative": 50, "denied": 250}
PORT = 8124
Send = Callable[[int], httpx.Response]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--create", type=int, default=200, help="groups of the new audit")
    parser.add_argument("--check", type=int, default=100, help="groups of the page's plan")


def run(options: argparse.Namespace) -> Table:
    """Send both requests to a server; note the answer, the time and the peak of all memory."""
    out = table("Many groups over HTTP", "request", "groups", "answer", "seconds", "peak MB")
    with TemporaryDirectory() as folder:
        ledger = f"{folder}/ledger.db"
        store = TokenStore(load_settings(ledger=ledger).token_store)
        token = store.new("bench", Role.AUDITOR, None)
        store.close()
        program = str(Path(sys.executable).with_name("equipoise"))
        server = subprocess.Popen(
            [program, "serve", "--ledger", ledger, "--port", str(PORT)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        url = f"http://127.0.0.1:{PORT}"
        try:
            with httpx.Client(base_url=url, timeout=600.0, headers={"origin": url}) as client:
                begin_serving(client)
                _add(out, server.pid, "PUT /v1/audits", options.create, _create(client, token))
                client.post("/login", data={"token": token})
                _add(out, server.pid, "POST /check", options.check, _check(client))
        finally:
            server.terminate()
            server.wait()
    return out


def _past(groups: int) -> dict[str, dict[str, int]]:
    return {f"g{number}": COUNTS for number in range(groups)}


def _create(client: httpx.Client, token: str) -> Send:
    def send(groups: int) -> httpx.Response:
        body = {"past": _past(groups), "costs": {"feature": 5, "label": 100}}
        headers = {"authorization": f"Bearer {token}"}
        return client.put("/v1/audits/many", json=body, headers=headers)

    return send


def _check(client: httpx.Client) -> Send:
    def send(groups: int) -> httpx.Response:
        page = client.get("/check").text
        form_key = page.partition('name="form_key" value="')[2].partition('"')[0]
        form = {"form_key": form_key, "cells": json.dumps(_past(groups))}
        return client.post("/check", data=form)

    return send


def _add(out: Table, pid: int, name: str, groups: int, send: Send) -> None:
    """Send a request while the memory of the server and its children is watched."""
    peak = 0.0
    is_done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not is_done.wait(0.05):
            peak = max(peak, _resident_with_children(pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    begun = time.perf_counter()
    answer = send(groups)
    seconds = time.perf_counter() - begun
    is_done.set()
    watcher.join()
    status = str(answer.status_code)
    out.add_row(name, str(groups), status, f"{seconds:.1f}", f"{peak:,.0f}")


def _resident_with_children(pid: int) -> float:
    """Return the megabytes that a process and its children hold."""
    children = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout
    kilobytes = 0
    for process in (str(pid), *children.split()):
        try:
            lines = Path(f"/proc/{process}/status").read_text().splitlines()
        except OSError:  # it has ended meanwhile
            continue
        kilobytes += sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
    return kilobytes / 1024
