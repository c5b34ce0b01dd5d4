"""What the server tells a monitoring system about its audits, in the form of Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from equipoise.ledger import Status

GAUGES: Mapping[str, str] = {
    "events": "Events in the chain.",
    "open_requests": "Requests without an outcome.",
    "overdue_requests": "Requests that were marked as overdue.",
    "spent": "Money spent, in minor units.",
    "held": "Money held for open requests, in minor units.",
    "left": "Money of the cap that is neither spent nor held, in minor units.",
    "conflicts": "Contradicted outcomes that no correction has settled.",
    "drift_alarms": "Tests that show that people differ from the historical data.",
    "has_verdict": "1 once FAIR or UNFAIR was reached, else 0.",
    "last_verification_time": "When the audit was last verified, in seconds since 1970.",
}
"""Name, after ``equipoise_audit_``, and what is measured."""


def describe_audits(audits: Iterable[tuple[Status, str | None]]) -> bytes:
    """Return the gauges of audits: of each its status and when it was last verified."""
    registry = CollectorRegistry()
    gauges = {
        name: Gauge(f"equipoise_audit_{name}", text, ["audit"], registry=registry)
        for name, text in GAUGES.items()
    }
    for status, verified in audits:
        for name, value in _values(status, verified).items():
            gauges[name].labels(status.name).set(value)
    text: bytes = generate_latest(registry)
    return text


def _values(status: Status, verified: str | None) -> dict[str, float]:
    verdict = None if status.finding is None else status.finding.verdict.value
    values: dict[str, float] = {
        "events": status.events,
        "open_requests": status.pending,
        "overdue_requests": status.states.get("OVERDUE", 0),
        "spent": status.spent,
        "held": status.reserved,
        "conflicts": status.conflicts,
        "drift_alarms": sum(test.alarm for test in status.drift),
        "has_verdict": float(verdict in ("FAIR", "UNFAIR")),
    }
    if status.cap is not None:
        values["left"] = status.cap - status.spent - status.reserved
    if verified is not None:
        values["last_verification_time"] = datetime.fromisoformat(verified).timestamp()
    return values
