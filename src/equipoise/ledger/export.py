"""Events as a file that anybody can check, and the checkpoints that make it provable."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from equipoise._json import JsonValue
from equipoise.errors import BadData, InvalidInput, LedgerError
from equipoise.ledger.state import State
from equipoise.ledger.verify import Broken, Summary, verify

__all__ = ["Checkpoint", "read_checkpoints", "read_keys", "verify_export", "write_lines"]


@dataclass(frozen=True)
class Checkpoint(JsonValue):
    """The end of an audit's chain at some moment; worth something once it is kept elsewhere.

    Examples
    --------
    >>> from equipoise import Costs, History, LiveAudit, Question
    >>> counts = {"approved_positive": 60, "approved_negative": 20, "denied": 20}
    >>> past = History.from_cells({"A": counts, "B": counts})
    >>> live = LiveAudit.create("sqlite://", "loans", past, Question(), Costs(label=100))
    >>> live.checkpoint().seq
    1
    """

    name: str
    audit: str
    seq: int
    hash: str
    time: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"

    def append_to(self, path: str | Path) -> None:
        """Add a line to a file, which ``verify`` reads."""
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(self.to_json() + "\n")
            file.flush()
            os.fsync(file.fileno())


def read_checkpoints(path: str | Path, audit: str | None = None) -> list[tuple[int, str]]:
    """Return the checkpoints of an audit, by id, that a file holds; all of them if left out."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        found = [Checkpoint.from_json(line) for line in lines if line.strip()]
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from error
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{path} is not a file of checkpoints: {error}") from error
    mine = [(point.seq, point.hash) for point in found if audit in (None, point.audit)]
    if not mine:
        raise InvalidInput(f"{path} holds no checkpoint of this audit")
    return mine


def read_keys(path: str | Path) -> list[dict[str, object]]:
    """Return the key table that an export put beside itself."""
    try:
        return [json.loads(line) for line in Path(path).read_text("ascii").splitlines()]
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise InvalidInput(f"{path} is not a table of keys: {error}") from error


def write_lines(path: str | Path, lines: Iterable[str], *, secret: bool = False) -> None:
    """Write a new file that appears under its name only when it is complete."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    try:
        rights = 0o600 if secret else 0o666
        handle = os.open(part, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, rights)
        with open(handle, "w", encoding="ascii", newline="") as file:
            for line in lines:
                file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def verify_export(
    path: Path,
    *,
    head: str | None = None,
    checkpoints: Sequence[tuple[int, str]] = (),
    people: Sequence[dict[str, object]] | None = None,
    seed: str | None = None,
) -> tuple[Summary, bool]:
    """Check an export's chain and money, and repeat its statistics, every decision made anew.

    Returns the summary, and whether the statistics could be repeated: features that Exp-Audit
    asked for are not part of an export.

    Raises
    ------
    BadData
        If a line is not what the ledger wrote, or a replay does not lead to the same decisions.
    """
    state = State(strict=True)
    try:
        with path.open("rb") as file:
            summary = verify(
                file, head=head, checkpoints=checkpoints, people=people, seed=seed, also=state.take
            )
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from error
    except (Broken, LedgerError) as error:
        raise BadData(f"{path} is broken: {error}") from error
    if state.blind or state.features_erased:
        return summary, False
    finding = None if state.unsettled else state.finding()
    found = None if finding is None else finding.verdict.value
    if not state.unsettled and found != summary.verdict:
        raise BadData(f"{path} records the verdict {summary.verdict}; its events say {found}")
    return summary, True
