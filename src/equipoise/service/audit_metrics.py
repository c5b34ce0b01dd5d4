"""What the server tells a monitoring system about its audits, in the form of Prometheus.

Every audit of the ledger is there, by what the tables say. What only the state of an audit tells,
conflicts and drift, is there of the audits that this server has opened, as of when it used them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from equipoise.ledger.audit_totals import AuditTotals, audit_totals
from equipoise.service.audits import OpenAudits
from equipoise.service.checkpoints import CheckpointLog, VerificationTotals

GAUGES: Mapping[str, str] = {
    "events": "Events in the chain.",
    "open_requests": "Requests without an outcome.",
    "overdue_requests": "Requests that were marked as overdue.",
    "oldest_open_request_time": "When the oldest open request was asked, in seconds since 1970.",
    "spent": "Money spent, in minor units.",
    "held": "Money held for open requests, in minor units.",
    "left": "Money of the cap that is neither spent nor held, in minor units.",
    "conflicts": "Contradicted outcomes that no correction has settled, of an opened audit.",
    "drift_alarms": "Tests that show that people differ from the past, of an opened audit.",
    "has_verdict": "1 once FAIR or UNFAIR was reached, else 0.",
    "cache_age": "Events since the state that is cached; all events if none is.",
    "cache_set_aside": "1 if a cached state differed from the chain, else 0.",
    "damaged": "1 if the events cannot be followed, else 0, of an opened audit.",
    "last_verification_time": "When the audit was last verified, in seconds since 1970.",
    "failed_verifications": "Verifications that found something broken.",
    "last_failed_verification_time": "When one last did so, in seconds since 1970.",
}
"""Name, after ``equipoise_audit_``, and what is measured."""
VERDICT_TEXT = "1 for the finding that was recorded: FAIR, UNFAIR or INCONCLUSIVE."


def describe_audits(audits: OpenAudits, checkpoints: CheckpointLog) -> bytes:
    """Return the gauges of all audits of the ledger."""
    registry = CollectorRegistry()
    gauges = {
        name: Gauge(f"equipoise_audit_{name}", text, ["audit"], registry=registry)
        for name, text in GAUGES.items()
    }
    verdict_gauge = Gauge(
        "equipoise_audit_verdict", VERDICT_TEXT, ["audit", "verdict"], registry=registry
    )
    verifications = checkpoints.verification_totals()
    for totals in audit_totals(audits.ledger):
        name = totals.row.name
        values = {
            **_values_of_tables(totals),
            **_values_of_open_audit(audits, totals.row.uid),
            **_values_of_verifications(verifications.get(totals.row.uid, ())),
        }
        for measure, value in values.items():
            gauges[measure].labels(name).set(value)
        if totals.verdict:
            verdict_gauge.labels(name, totals.verdict).set(1)
    text: bytes = generate_latest(registry)
    return text


def _values_of_tables(totals: AuditTotals) -> dict[str, float]:
    row = totals.row
    values: dict[str, float] = {
        "events": row.seq,
        "open_requests": totals.open_requests,
        "overdue_requests": totals.overdue_requests,
        "spent": row.spent,
        "held": row.reserved,
        "has_verdict": float(totals.verdict in ("FAIR", "UNFAIR")),
        "cache_age": row.seq - totals.cached_seq,
        "cache_set_aside": float(totals.has_wrong_cache),
    }
    if row.cap is not None:
        values["left"] = row.cap - row.spent - row.reserved
    if totals.oldest_request:
        values["oldest_open_request_time"] = _seconds(totals.oldest_request)
    return values


def _values_of_open_audit(audits: OpenAudits, uid: str) -> dict[str, float]:
    if uid in audits.damaged:
        return {"damaged": 1.0}
    audit = audits.if_open(uid)
    sight = None if audit is None else audit.look()
    if sight is None:
        return {}
    return {"damaged": 0.0, "conflicts": sight.conflicts, "drift_alarms": sight.drift_alarms}


def _values_of_verifications(totals: Sequence[VerificationTotals]) -> dict[str, float]:
    values: dict[str, float] = {"failed_verifications": 0}
    for total in totals:
        if total.kind == "verified":
            values["last_verification_time"] = _seconds(total.last_time)
        else:
            values["failed_verifications"] = total.number
            values["last_failed_verification_time"] = _seconds(total.last_time)
    return values


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()
