"""What an audit in a ledger can prove: chain, books and replay, of a database or of an export."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from equipoise import evidence
from equipoise._json import JsonValue
from equipoise._output_files import replace_file
from equipoise.errors import BadData, InvalidInput, LedgerError
from equipoise.ledger import verify as verifier
from equipoise.ledger.database import Connection
from equipoise.ledger.state import AuditState
from equipoise.ledger.state_cache import CacheComparison, read_row, set_aside
from equipoise.ledger.status import describe_difference
from equipoise.ledger.store import (
    HEAD_COLUMNS,
    SELECT_PERSON,
    TABLES,
    VERSION,
    Store,
    person_from,
    read_audit,
)
from equipoise.ledger.verify import (
    FORGED_DATA_ERRORS,
    Broken,
    LedgerRules,
    Proof,
    verify,
)

T = TypeVar("T")


def verify_ledger(store: Store, audit_id: int, checkpoints: Sequence[tuple[int, str]]) -> Proof:
    """Check everything that is stored about an audit, as of one moment, while writers go on.

    Chain, books, money and tables are checked always; statistics are repeated, every decision
    made anew, as far as they were made by this program's edition of them.
    ``checkpoints`` are ends of the chain that were handed out earlier.

    Raises
    ------
    LedgerError
        At the first difference.
    """
    # Before the snapshot, which a row that the database cannot read would end.
    comparison = CacheComparison(read_row(store, audit_id))
    state = AuditState(strict=True)
    rules = state.rules
    # One snapshot for everything: writers go on, and events and tables are of one moment.
    with store.snapshot() as connection:
        _check_database(connection)
        row = read_audit(connection, audit_id)
        try:
            proof = _verify_and_repeat(
                _lines(connection, audit_id),
                state,
                comparison,
                head=row.hash,
                checkpoints=checkpoints,
                people=_compared_people(connection, audit_id, rules),
                seed=row.seed,
            )
        except (Broken, *FORGED_DATA_ERRORS) as error:
            raise LedgerError(f"the ledger is broken: {error}") from error
        for name in HEAD_COLUMNS:
            _require_same(f"the audit's {name}", getattr(row, name), getattr(rules.head, name))
        _require_same("the audit's uid", row.uid, proof.audit)
        _require_same("the audit's name", row.name, proof.name)
        query = "SELECT key, seq FROM command_keys WHERE audit_id = ?"
        stored_keys = dict(connection.run(query, (audit_id,)).fetchall())
        _require_same("keys of commands", stored_keys, rules.keys)
    differing = comparison.differing_row(state)
    if differing is not None:
        set_aside(store, audit_id, differing)
        raise LedgerError(
            f"the chain holds; {describe_difference(differing.seq)}, and verify again"
        )
    return proof


def verify_export(
    path: Path,
    *,
    head: str | None = None,
    checkpoints: Sequence[tuple[int, str]] = (),
    people: Sequence[dict[str, object]] | None = None,
    seed: str | None = None,
) -> Proof:
    """Check an export's chain and money, and repeat its statistics, every decision made anew.

    Raises
    ------
    BadData
        If a line is not what the ledger wrote, or a replay does not lead to the same decisions.
    """
    try:
        with path.open("rb") as file:
            return _verify_and_repeat(
                file,
                AuditState(strict=True),
                CacheComparison(None),
                head=head,
                checkpoints=checkpoints,
                people=people,
                seed=seed,
            )
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from error
    except (Broken, LedgerError) as error:
        raise BadData(f"{path} is broken: {error}") from error


def _verify_and_repeat(
    lines: Iterable[bytes],
    state: AuditState,
    comparison: CacheComparison,
    *,
    head: str | None,
    checkpoints: Sequence[tuple[int, str]],
    people: Iterable[Mapping[str, Any]] | None,
    seed: str | None,
) -> Proof:
    """Verify lines and say how far their statistics were repeated; raise if they say otherwise.

    ``comparison`` has the state that programs start from. It is compared, never used.
    """

    def apply_and_compare(event: verifier.Event, event_hash: str) -> None:
        state.apply(event, event_hash)
        comparison.look_at(state)

    proof = verify(
        lines,
        head=head,
        checkpoints=checkpoints,
        people=people,
        seed=seed,
        rules=state.rules,
        apply=apply_and_compare,
    )
    first_edition = state.settings.edition
    if state.has_other_edition:
        return replace(
            proof,
            statistics=f"not repeated: this program has edition {evidence.EDITION}; use equipoise "
            f"{state.settings.software}, or upgrade the audit",
        )
    finding = state.finding()
    verdict = None if finding is None else finding.verdict.value
    _require_same("the verdict", proof.verdict, verdict)
    state.check_books()
    statistics = "repeated, every decision made anew"
    if first_edition != evidence.EDITION:
        statistics += f" since the upgrade; edition {first_edition} decided before it"
    return replace(proof, statistics=statistics)


# -- the database ---------------------------------------------------------------------------------


def _lines(connection: Connection, audit_id: int) -> Iterator[bytes]:
    query = "SELECT seq, body FROM events WHERE audit_id = ? ORDER BY seq"
    for number, (seq, body) in enumerate(connection.stream(query, (audit_id,)), start=1):
        _require_same("an event's number", seq, number)
        # A forged body may be no ASCII; the verifier is to see it and refuse it.
        yield f"{body}\n".encode("utf-8", "surrogateescape")


def _compared_people(
    connection: Connection, audit_id: int, rules: LedgerRules
) -> Iterator[Mapping[str, Any]]:
    """Compare every column with the events; yield the keys of those who have one."""
    query = f"{SELECT_PERSON} people WHERE audit_id = ? ORDER BY number"
    people = rules.people.records or {}
    number = 0
    for number, values in enumerate(connection.stream(query, (audit_id,)), start=1):
        row = person_from(values)
        _require_same(f"person {number}", replace(row, person=None, salt=None), people.get(number))
        if (row.person, row.salt) != (None, None):  # an erased person has neither
            yield {"person": number, "pseudonym": row.person, "salt": row.salt}
    _require_same("the number of people", number, len(people))


def _check_database(connection: Connection) -> None:
    """Refuse another schema, a damaged file, and rows of audits that do not exist."""
    versions = connection.run("SELECT version FROM ledger_schema").fetchall()
    _require_same("the schema", versions, [(VERSION,)])
    if connection.kind == "sqlite":
        integrity = connection.run("PRAGMA integrity_check").fetchall()
        _require_same("SQLite's integrity check", integrity, [("ok",)])
    for table in TABLES[1:]:
        query = f"SELECT 1 FROM {table} WHERE audit_id NOT IN (SELECT id FROM audits) LIMIT 1"
        orphans = connection.run(query).fetchall()
        _require_same(f"audits that only {table} know", orphans, [])


def _require_same(label: str, stored: object, expected: object) -> None:
    """Refuse what is stored if the events lead to something else."""
    if stored != expected:
        raise LedgerError(f"{label} is stored as {stored!r}; the events say {expected!r}")


# -- checkpoints and files ------------------------------------------------------------------------


@dataclass(frozen=True)
class Checkpoint(JsonValue):
    """The end of an audit's chain at some moment; worth something once it is kept elsewhere.

    Examples
    --------
    >>> from equipoise import Costs, History, LiveAudit, Question
    >>> counts = {"approved_positive": 6000, "approved_negative": 2000, "denied": 2000}
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
        """Add a line to a file, which ``verify`` reads.

        Raises
        ------
        InvalidInput
            If the file cannot be written.
        """
        try:
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(self.to_json() + "\n")
                # On disk before the caller hears of it: a checkpoint that is lost proves nothing.
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise InvalidInput(
                f"the checkpoint cannot be written to {path}: {error.strerror}. Name a file in a "
                "folder that exists"
            ) from error


def read_checkpoints(path: str | Path, audit: str | None = None) -> list[tuple[int, str]]:
    """Return the checkpoints of an audit, by id, that a file holds; all of them if left out."""
    checkpoints = _read_lines(path, Checkpoint.from_json, "a file of checkpoints")
    heads = [(point.seq, point.hash) for point in checkpoints if audit in (None, point.audit)]
    # To find nothing is no proof: without a checkpoint every ledger would extend what was kept.
    if not heads:
        raise InvalidInput(f"{path} holds no checkpoint of this audit")
    return heads


def read_keys(path: str | Path) -> list[dict[str, object]]:
    """Return the key table that an export put beside itself."""
    return _read_lines(path, json.loads, "a table of keys")


def _read_lines(path: str | Path, make: Callable[[str], T], content: str) -> list[T]:
    """Return what ``make`` builds from each line; ``content`` names the file in an error."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        return [make(line) for line in lines if line.strip()]
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from error
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{path} is not {content}: {error}") from error


def write_lines(path: str | Path, lines: Iterable[str], *, secret: bool = False) -> None:
    """Write a new file that appears under its name only when it is complete."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path, encoding="ascii", is_secret=secret) as file:
        for line in lines:
            file.write(line + "\n")


VERIFIER_FILE = "verify.py"


def require_no_other_verifier(folder: Path) -> None:
    """Refuse to put the stand-alone verifier where somebody else's ``verify.py`` stands.

    A file is ours if it begins with the first line of our verifier, of whatever version.

    Raises
    ------
    InvalidInput
        If the folder has a ``verify.py`` that this program did not write.
    """
    path = folder / VERIFIER_FILE
    try:
        with path.open("rb") as file:
            first_line = file.readline(1000)
    except FileNotFoundError:
        return
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from error
    if first_line.strip() != _verifier_text().splitlines()[0].encode():
        raise InvalidInput(
            f"{path} exists and is not our verifier: it is left as it is, and nothing was written. "
            "Write the export to another folder"
        )


def write_verifier(folder: Path) -> Path:
    """Write the stand-alone verifier into a folder; return where it is."""
    require_no_other_verifier(folder)
    path = folder / VERIFIER_FILE
    path.write_text(_verifier_text(), "utf-8")
    return path


def _verifier_text() -> str:
    return Path(verifier.__file__).read_text("utf-8")
