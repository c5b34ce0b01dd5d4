"""A server of its own for a benchmark, with a token for programs."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from equipoise.service import Role, TokenStore, load_settings

SECONDS_TO_START = 60.0


@dataclass(frozen=True)
class RunningServer:
    """Where a server answers, its process, and the token of an auditor of all audits."""

    url: str
    process_id: int
    token: str

    def program(self, timeout: float = 600.0, limits: httpx.Limits | None = None) -> httpx.Client:
        """Return a client that sends the token."""
        return httpx.Client(
            base_url=self.url,
            headers={"authorization": f"Bearer {self.token}"},
            timeout=timeout,
            limits=limits or httpx.Limits(),
        )


@contextmanager
def running_server(port: int, directory: Path | None = None) -> Iterator[RunningServer]:
    """Start `equipoise serve` on an empty ledger, wait until it is ready, and end it at last."""
    with TemporaryDirectory(dir=directory) as folder:
        ledger = f"{folder}/ledger.db"
        store = TokenStore(load_settings(ledger=ledger).token_store)
        token = store.new("bench", Role.AUDITOR, None)
        store.close()
        program = str(Path(sys.executable).with_name("equipoise"))
        process = subprocess.Popen(
            [program, "serve", "--ledger", ledger, "--port", str(port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_until_ready(url)
            yield RunningServer(url, process.pid, token)
        finally:
            process.terminate()
            process.wait()


def _wait_until_ready(url: str) -> None:
    end = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < end:
        try:
            if httpx.get(f"{url}/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass  # it does not listen yet
        time.sleep(0.1)
    raise RuntimeError("the server does not become ready")
