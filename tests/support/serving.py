"""A real server on a real socket, in a thread of the test, and programs that talk to it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import uvicorn

from equipoise.client import RemoteAudit
from equipoise.service import Role, ServiceSettings, TokenStore, create_app, load_settings
from equipoise.worlds import CellWorld

__all__ = ["ASK", "PAST", "WORLD", "Served", "serving"]

ASK = {"group": "B", "decision": 0}

WORLD = CellWorld.from_shares(
    {"A": (0.45, 0.15, 0.40, 0.5), "B": (0.15, 0.15, 0.70, 0.3)}, shares={"A": 0.7, "B": 0.3}
)
PAST = {
    "A": {"approved_positive": 4500, "approved_negative": 1500, "denied": 4000},
    "B": {"approved_positive": 1500, "approved_negative": 1500, "denied": 7000},
}
QUESTION = {"metric": "equalized_odds", "gamma": 0.1, "epsilon": 0.2, "delta": 0.1}


@dataclass
class Served:
    """Where the server is, and a client for each role."""

    url: str
    settings: ServiceSettings
    store: TokenStore
    tokens: dict[str, str] = field(default_factory=dict)
    known: dict[str, httpx.Client] = field(default_factory=dict)
    clients: list[httpx.Client | RemoteAudit] = field(default_factory=list)

    def as_(self, role: str, audit: str | None = None) -> httpx.Client:
        """Return a client with a token of this role, made when it is first needed."""
        name = f"{role} of {audit or 'all'}"
        if name not in self.tokens:
            self.tokens[name] = self.store.new(name, Role(role), audit)
            self.known[name] = self.client({"authorization": f"Bearer {self.tokens[name]}"})
        return self.known[name]

    def client(self, headers: dict[str, str] | None = None) -> httpx.Client:
        made = httpx.Client(base_url=self.url, headers=headers or {}, timeout=30.0, verify=False)
        self.clients.append(made)
        return made

    def create(self, name: str, **more: Any) -> None:
        """Begin an audit that labels decide within a few hundred people."""
        body = {"past": PAST, "question": QUESTION, "costs": {"feature": 5, "label": 100}}
        given = {"audit": "rs", "options": {"tau": 20}, **more}
        answer = self.as_("auditor").put(f"/v1/audits/{name}", json={**body, **given})
        assert answer.status_code == 200, answer.text

    def send(
        self, audit: str, command: str, *people: str, role: str = "writer", **said: Any
    ) -> httpx.Response:
        """Send one command about nobody or each of some people, as a role."""
        commands = [{"command": command, **({"person": p} if p else {}), **said}
                    for p in people or ("",)]  # fmt: skip
        return self.as_(role).post(f"/v1/audits/{audit}/commands", json={"commands": commands})

    def result(self, audit: str, command: str, person: str = "", **more: Any) -> dict[str, Any]:
        """Send one command; return its result, which may be a problem."""
        answer = self.send(audit, command, *([person] if person else []), **more)
        assert answer.status_code == 200, answer.text
        (found,) = answer.json()["results"]
        return dict(found)

    def verify(self, audit: str) -> dict[str, Any]:
        """Verify an audit and wait for the end of it."""
        auditor, path = self.as_("auditor"), f"/v1/audits/{audit}/verifications"
        answer = auditor.post(path)
        assert answer.status_code == 202, answer.text
        found = answer.json()
        while found["kind"] == "running":
            time.sleep(0.05)
            found = auditor.get(f"{path}/{found['id']}").json()
        return dict(found)


@contextmanager
def serving(
    directory: str, *, ledger: str = "", port: int = 0, **settings: Any
) -> Iterator[Served]:
    """Run a server until the end of the block."""
    place_of_ledger = ledger or f"{directory}/ledger.db"
    made = load_settings(ledger=place_of_ledger, tokens=f"{directory}/tokens", **settings)
    store = TokenStore(made.token_store)
    with socket.socket() as place:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.bind(("127.0.0.1", port))
        app = create_app(made)
        config = uvicorn.Config(
            app,
            http="h11",
            log_level="error",
            access_log=False,
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([place],), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        served = Served(f"http://127.0.0.1:{place.getsockname()[1]}", made, store)
        try:
            yield served
        finally:
            for client in served.clients:
                client.close()
            server.should_exit = True
            thread.join()
            store.close()
