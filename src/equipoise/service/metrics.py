"""Numbers for Prometheus: what the server does, nothing of what the audits find."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, multiprocess

__all__ = ["Metrics"]

BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.3, 1.0, 3.0, 10.0)
SHARED = "PROMETHEUS_MULTIPROC_DIR"


class Metrics:
    """Counts of one worker, and of all workers where they share a directory."""

    def __init__(self) -> None:
        registry = self._own = CollectorRegistry()
        names = ["method", "route", "status"]
        self._requests = Counter("equipoise_requests", "Requests", names, registry=registry)
        self._seconds = Histogram(
            "equipoise_request_seconds", "Time per request", ["route"], registry=registry,
            buckets=BUCKETS,
        )  # fmt: skip

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        known = method if method in ("GET", "PUT", "POST", "DELETE", "HEAD") else "OTHER"
        self._requests.labels(known, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return everything in Prometheus's format."""
        if SHARED not in os.environ:
            return generate_latest(self._own)
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
