"""Pieces of work that are done once, and again only if their arguments or the code changed."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import TypeAlias, TypeVar

import equipoise
from equipoise.display import Progress, silent
from equipoise.errors import require_n_jobs

__all__ = ["Done", "Part", "Result", "Value", "do_parts", "of_kind"]

Value: TypeAlias = str | float | int | bool | None

# What no result depends on: how things are shown, and audits of real people.
ABOVE = ("cli", "ledger", "planning", "report", "service")
SHOWN = ("chapter", "settings", "style")


@dataclass(frozen=True)
class Result:
    """What parts return, and tables show: each kind is a frozen dataclass of plain values."""

    def values(self) -> dict[str, object]:
        """Return the entries by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


Kind = TypeVar("Kind", bound=Result)


@dataclass(frozen=True)
class Part:
    """A function of plain values that returns results of some kinds.

    ``run`` is a function at the top of its module, so that another process can find it.
    """

    name: str
    run: Callable[..., Sequence[Result]]
    arguments: Mapping[str, object]
    kinds: tuple[type[Result], ...]

    def key(self) -> str:
        """Return what the result depends on, in short: the arguments and the code."""
        name = self.run.__module__.removeprefix("paper.")
        text = json.dumps([self.run.__qualname__, self.arguments], sort_keys=True)
        return hashlib.sha256((core_version() + code_of(name) + text).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Done:
    """A part's results, the processor seconds they took, and whether they were kept from before."""

    part: Part
    results: Sequence[Result]
    seconds: float
    kept: bool


def of_kind(results: Iterable[Result], kind: type[Kind]) -> list[Kind]:
    """Return the results of one kind."""
    return [result for result in results if isinstance(result, kind)]


@cache
def core_version() -> str:
    """Return a hash of the code that results depend on."""
    root = Path(inspect.getfile(equipoise)).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in ABOVE:
            digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def code_of(name: str) -> str:
    """Return the code of a module of this package and of those it imports, as far as it counts."""
    folder, seen, open_names = Path(__file__).parent, {}, [name]
    while open_names:
        here = open_names.pop()
        if here in seen or here in SHOWN or here.endswith("_pictures"):
            continue
        seen[here] = (folder / f"{here}.py").read_text(encoding="utf-8")
        open_names += re.findall(r"^from paper\.(\w+) import", seen[here], re.MULTILINE)
    return "".join(seen[key] for key in sorted(seen))


def do_parts(
    parts: Sequence[Part],
    store: Path,
    *,
    n_jobs: int | None = None,
    progress: Progress = silent,
) -> dict[str, Done]:
    """Do the parts whose results are not in ``store`` yet; return all results by part name.

    Parameters
    ----------
    store
        Directory of kept results, one JSON file per part.
    n_jobs
        Processes, as in joblib.
    progress
        Is called with the share of the parts that are done.
    """
    from joblib import Parallel, delayed

    require_n_jobs(n_jobs)
    store.mkdir(parents=True, exist_ok=True)
    results: dict[str, Done] = {}
    open_parts = []
    for part in parts:
        kept = _read(part, store)
        if kept is None:
            open_parts.append(part)
        else:
            results[part.name] = kept
    work = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    for done in work(delayed(_do)(part) for part in open_parts):
        _write(done, store)
        results[done.part.name] = done
        progress(len(results) / len(parts))
    return results


def _do(part: Part) -> Done:
    start = time.process_time()
    results = part.run(**part.arguments)
    return Done(part, results, time.process_time() - start, kept=False)


def _place(part: Part, store: Path) -> Path:
    return store / f"{part.name.replace('/', '-')}.json"


def _read(part: Part, store: Path) -> Done | None:
    place = _place(part, store)
    if not place.is_file():
        return None
    try:
        content = json.loads(place.read_text(encoding="utf-8"))
        if content["key"] != part.key():
            return None
        kinds = {kind.__name__: kind for kind in part.kinds}
        results = [kinds[name](**values) for name, values in content["results"]]
        return Done(part, results, content["seconds"], kept=True)
    except (ValueError, KeyError, TypeError):  # cut off or not ours: make it anew
        return None


def _write(done: Done, store: Path) -> None:
    results = [[type(result).__name__, result.values()] for result in done.results]
    content = {"key": done.part.key(), "seconds": done.seconds, "results": results}
    place = _place(done.part, store)
    draft = place.with_suffix(".part")
    draft.write_text(json.dumps(content), encoding="utf-8")
    draft.replace(place)
