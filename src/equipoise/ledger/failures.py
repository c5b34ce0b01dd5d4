"""What databases complain of, as one line that says what happened and what to do."""

from __future__ import annotations

import sqlite3
import sys
from types import TracebackType

from equipoise.errors import LedgerError

__all__ = ["Explainer", "driver_errors"]


def driver_errors() -> tuple[type[Exception], ...]:
    """Return the base errors of the drivers in use."""
    theirs = getattr(sys.modules.get("psycopg"), "Error", None)  # None while it is being imported
    return (sqlite3.Error,) if theirs is None else (sqlite3.Error, theirs)


class Explainer:
    """A context that turns the drivers' errors into ours; nothing raw leaves it."""

    def __init__(self, where: str, timeout: float) -> None:
        self._where = where
        self._timeout = timeout

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if isinstance(error, driver_errors()):
            raise LedgerError(self._words(str(error).strip())) from error

    def _words(self, message: str) -> str:
        low, where = message.lower(), self._where
        again = "nothing was stored; repeating the call is safe"
        if "locked" in low or "lock timeout" in low or "busy" in low:
            return f"the ledger {where} was locked by others for {self._timeout:g} s; {again}"
        if "full" in low or "no space" in low:
            return f"no space left for the ledger {where}; {again} once space is free"
        if "not a database" in low or "malformed" in low:
            return f"{where} is not a ledger, or is damaged ({message}); restore it from a backup"
        if "readonly" in low or "read-only" in low:
            return f"the ledger {where} is read-only; {again} where writing is allowed"
        if "unable to open" in low:
            return f"cannot open the ledger {where}: {message}"
        return f"the ledger {where} failed ({message}); {again}"
