"""What the experiments share: settings, pieces of work that are kept, and what they return."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

from joblib import Memory, Parallel, delayed
from pandas import DataFrame

import equipoise
from equipoise.display import Progress, silent
from equipoise.errors import require_n_jobs

__all__ = ["Done", "Part", "Rows", "Settings", "Tables", "Value", "do_parts", "join", "where"]

SHELL = ("cli", "ledger", "planning", "report", "service")  # rooms that no result depends on


@dataclass(frozen=True)
class Settings:
    """What the experiments of one run share.

    Parameters
    ----------
    quick
        Few repeats: to see that everything works.
    seed
        Where randomness starts, other than the paper's own five seeds.
    law_school
        The file ``law_school_clean.csv``, or None to leave Law School out.
    """

    quick: bool = False
    seed: int = 0
    law_school: Path | None = None


Value: TypeAlias = str | float | int | bool | None
Rows: TypeAlias = list[dict[str, Value]]
"""Results as plain values, a dictionary per row of a table."""

Tables: TypeAlias = dict[str, Rows]
"""What a part returns: rows by the name of the table that they belong to."""


@dataclass(frozen=True)
class Part:
    """A piece of work: a function at the top of its module, and plain arguments."""

    name: str
    run: Callable[..., Tables]
    arguments: Mapping[str, object]


@dataclass(frozen=True)
class Done:
    """A part's results, the processor seconds they took, and whether they were kept from before."""

    tables: Tables
    seconds: float
    kept: bool


def do_parts(
    parts: Sequence[Part], store: Path, *, n_jobs: int | None = None, progress: Progress = silent
) -> dict[str, Done]:
    """Do the parts whose results are not in ``store``; return all results by part name.

    A kept result holds as long as the arguments and the code behind it are the same. ``n_jobs`` is
    as in joblib; ``progress`` is called with the share of the parts that are done.
    """
    require_n_jobs(n_jobs)
    work = Memory(store, verbose=0).cache(_timed)
    calls = [(code_version(), part.run, dict(part.arguments)) for part in parts]
    kept = [work.check_call_in_cache(*call) for call in calls]
    done = {}
    runs = Parallel(n_jobs=n_jobs, return_as="generator", batch_size=1)(
        delayed(work)(*call) for call in calls
    )
    for part, was_kept, (tables, seconds) in zip(parts, kept, runs, strict=True):
        done[part.name] = Done(tables, seconds, was_kept)
        progress(len(done) / len(parts))
    return done


def _timed(
    code: str, run: Callable[..., Tables], arguments: dict[str, object]
) -> tuple[Tables, float]:
    """Run a part; ``code`` only says which version of the code did."""
    start = time.process_time()
    tables = run(**arguments)
    return tables, time.process_time() - start


def join(parts: Iterable[Tables]) -> dict[str, DataFrame]:
    """Return the tables of several parts, each as one frame."""
    joined: Tables = {}
    for tables in parts:
        for name, rows in tables.items():
            joined.setdefault(name, []).extend(rows)
    return {name: DataFrame(rows) for name, rows in joined.items()}


def where(rows: DataFrame, **values: Value) -> DataFrame:
    """Return the rows whose entries have these values."""
    for name, value in values.items():
        rows = rows[rows[name] == value]
    return rows


@cache
def code_version() -> str:
    """Return a hash of the code that results depend on: the package's core and this folder."""
    digest = hashlib.sha256()
    core = Path(equipoise.__file__).parent
    for path in sorted([*core.rglob("*.py"), *Path(__file__).parent.rglob("*.py")]):
        if not (path.is_relative_to(core) and path.relative_to(core).parts[0] in SHELL):
            digest.update(path.read_bytes())
    return digest.hexdigest()
