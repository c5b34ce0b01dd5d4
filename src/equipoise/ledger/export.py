"""Events as a file that anybody can check, and the checkpoints that make it provable."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from equipoise._json import JsonValue
from equipoise.errors import BadData, InvalidInput, LedgerError
from equipoise.ledger.projection import Projection, answers_revised, replay
from equipoise.ledger.verify import Broken, Summary, verify

__all__ = ["Checkpoint", "bodies_of", "export_lines", "verify_export", "write_export"]


@dataclass(frozen=True)
class Checkpoint(JsonValue):
    """The end of an audit's chain at some moment."""

    name: str
    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"


def export_lines(events: Iterable[tuple[str, str]]) -> Iterator[bytes]:
    """Yield each event ``(hash, body)`` as a line with its hash in it."""
    for digest, body in events:
        # Keys are sorted and only numbers and times follow "prev": the last one is the event's own.
        at = body.rindex(',"prev":"')
        yield f'{body[:at]},"hash":"{digest}"{body[at:]}\n'.encode("ascii")


def bodies_of(lines: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """Yield ``(hash, body)`` of the lines that :func:`export_lines` wrote."""
    for line in lines:
        text = line.decode("ascii").rstrip("\n")
        at = text.rindex(',"prev":"')
        start = at - 64 - len(',"hash":""')
        yield text[at - 65 : at - 1], text[:start] + text[at:]


def write_export(path: Path, lines: Iterable[bytes], checkpoint: Checkpoint) -> Checkpoint:
    """Write the lines to a new file that appears under its name only when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return checkpoint


def verify_export(
    path: Path,
    *,
    head: str | None = None,
    checkpoints: Sequence[tuple[int, str]] = (),
    seed: str | None = None,
) -> tuple[Summary, bool]:
    """Check an export's chain and money, then repeat its statistics, every decision made anew.

    Returns the summary, and whether the statistics could be repeated: features that Exp-Audit
    asked for are not part of an export.

    Raises
    ------
    BadData
        If a line is not what the ledger wrote, or a replay does not lead to the same decisions.
    """
    try:
        with path.open("rb") as file:
            summary = verify(file, head=head, checkpoints=checkpoints, seed=seed)
        with path.open("rb") as file:
            answers = answers_revised(bodies_of(file))
        with path.open("rb") as file:
            start = Projection(answers, summary.events, strict=True)
            replayed = replay(bodies_of(file), start=start)
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from error
    except (Broken, LedgerError) as error:
        raise BadData(f"{path} is broken: {error}") from error
    if replayed.blind:
        return summary, False
    finding = replayed.finding()
    found = None if finding is None else finding.verdict.value
    if found != summary.verdict:
        raise BadData(f"{path} records the verdict {summary.verdict}; its events say {found}")
    return summary, True
