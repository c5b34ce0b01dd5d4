"""Record the answers of a server as examples of the OpenAPI description.

``python -m tests.service.record_examples`` writes ``src/equipoise/service/examples.json``.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

import equipoise.service
from tests.support.serving import Served, serving

EXAMPLES = Path(equipoise.service.__file__).with_name("examples.json")
NEW_AUDIT = {
    "past": {
        "A": {"approved_positive": 5000, "approved_negative": 1000, "denied": 2000},
        "B": {"approved_positive": 2000, "approved_negative": 1000, "denied": 3000},
    },
    "question": {"metric": "equal_opportunity", "gamma": 0.1, "epsilon": 0.1},
    "costs": {"feature": 0, "label": 100},
    "budget": 500000,
    "confirm": True,
}
ASK = {"command": "ask", "person": "applicant-4711", "group": "B", "decision": 0}
UNKNOWN = {"command": "tell", "person": "applicant-9", "outcome": 1}
AUDIT = "/v1/audits/{audit}"
MAX_TEXT = 300  # characters of a file that an example shows


def record(served: Served) -> dict[str, Any]:
    """Return, for every operation, a request where it has a body, and its answers."""
    recorded: dict[str, Any] = {}

    def send(
        method: str, route: str, body: Any = None, *, query: str = "", number: str = ""
    ) -> Any:
        address = route.format(audit="loans", number=number) + query
        answer = served.as_("auditor").request(method, address, json=body)
        assert answer.status_code in (200, 202), answer.text
        entry = recorded.setdefault(f"{method} {route}", {"answers": {}})
        if body is not None:
            entry["request"] = body
        media_type = answer.headers["content-type"].partition(";")[0]
        entry["answers"][media_type] = _shortened(answer, media_type)
        return entry["answers"][media_type]

    send("PUT", AUDIT, NEW_AUDIT)
    for number in range(40):
        person = f"applicant-{number}"
        served.result("loans", "ask", person, role="auditor", group="AB"[number % 2], decision=0)
        served.result("loans", "tell", person, role="auditor", outcome=1 - number % 2)
    send("POST", f"{AUDIT}/commands", {"commands": [ASK, UNKNOWN]})
    send("POST", f"{AUDIT}/overdue", {"days": 0})
    send("GET", f"{AUDIT}/people", query="?limit=1")
    send("POST", f"{AUDIT}/people", {"people": ["applicant-4711"]})
    send("GET", f"{AUDIT}/events", query="?after=1&limit=2")
    send("GET", "/v1/audits")
    send("GET", AUDIT)
    for part in ("status", "finding", "plan", "report", "export"):
        send("GET", f"{AUDIT}/{part}")
    send("GET", f"{AUDIT}/report", query="?form=json")
    send("POST", f"{AUDIT}/checkpoints")
    send("GET", f"{AUDIT}/checkpoints")
    mark = send("POST", f"{AUDIT}/verifications")
    while mark["kind"] == "running":
        time.sleep(0.05)
        mark = send("GET", f"{AUDIT}/verifications/{{number}}", number=mark["id"])
    for route in ("/livez", "/readyz", "/metrics"):
        send("GET", route)
    return recorded


def _shortened(answer: httpx.Response, media_type: str) -> Any:
    """Return an answer as an example: JSON as it is, of a report or a file the beginning."""
    if answer.headers["content-type"] == "application/json":
        return answer.json()
    if media_type == "application/json":
        return {name: answer.json()[name] for name in ("name", "made", "simulated")}
    return f"{answer.text[:MAX_TEXT]}…"


def main() -> None:
    """Write the file."""
    with TemporaryDirectory() as folder, serving(folder) as served:
        recorded = record(served)
    text = json.dumps(recorded, indent=1, ensure_ascii=False, sort_keys=True)
    EXAMPLES.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
