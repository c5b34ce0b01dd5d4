"""Which files a path, a glob or a folder means."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from equipoise.errors import BadData, InvalidInput

__all__ = ["CSV_ENDINGS", "PARQUET_ENDINGS", "FoundFiles", "all_end", "find_files"]

CSV_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", ".csv.zst", ".tsv.zst")
PARQUET_ENDINGS = (".parquet", ".pq")


@dataclass(frozen=True)
class FoundFiles:
    """Files in the order in which they are read.

    Attributes
    ----------
    inner, outer
        Names of the folders ``name=value`` below what was given, and of those above, which may be
        there by chance.
    notes
        What was left out.
    """

    paths: Sequence[str]
    inner: frozenset[str]
    outer: frozenset[str]
    notes: Sequence[str]

    def partitioned(self, own: Sequence[str], wanted: Sequence[str]) -> bool:
        """Return whether folders ``name=value`` are columns, beside the files' own ones.

        Those below what was given are, as Hive and Spark write them; those above only if a column
        is wanted that the files do not have.
        """
        names = {column.lower() for column in own}
        missing = {column for column in wanted if column.lower() not in names}
        if not self.inner and not self.outer & missing:
            return False
        for name in sorted(self.inner | self.outer):
            if name.lower() in names:
                raise InvalidInput(
                    f"'source': {name!r} is a column of the files and also the name of a folder "
                    f"'{name}=…'; rename the folders to read the column, or take the column out of "
                    "the files to read the folders' names"
                )
        return True


def find_files(patterns: Sequence[str]) -> FoundFiles:
    """Return the files that paths, globs and folders mean, each of them once."""
    paths: list[str] = []
    inner: set[str] = set()
    notes: list[str] = []
    for pattern in patterns:
        pattern = pattern.removeprefix("file://")
        if os.path.isdir(pattern):
            own, left_out = _inside(pattern)
            notes += left_out
        else:
            own = _matches(pattern)
        paths += own
        inner |= _partitions(Path(path).relative_to(_root(pattern)) for path in own)
    _require_once(paths)
    outer = _partitions(map(Path, paths)) - inner
    return FoundFiles(paths, frozenset(inner), frozenset(outer), notes)


def all_end(paths: Sequence[str], endings: tuple[str, ...]) -> bool:
    """Return whether all files are of a kind."""
    return all(path.lower().endswith(endings) for path in paths)


def _matches(pattern: str) -> list[str]:
    paths = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern, recursive=True))
    if not paths:
        raise InvalidInput(f"'source': no file {pattern!r}")
    for path in paths:
        if os.path.isdir(path):
            raise InvalidInput(f"'source' {pattern!r} matches the folder {path!r}; name files")
        if not os.access(path, os.R_OK):
            raise InvalidInput(f"'source' {path!r} may not be read: permission denied")
        if os.path.getsize(path) == 0:
            raise BadData(f"'source' {path!r} is an empty file")
    return paths


def _inside(folder: str) -> tuple[list[str], list[str]]:
    """Return the data files of a folder and of those in it by name, and a note on the others."""
    files = [
        str(path)
        for path in sorted(Path(folder).rglob("*"), key=str)
        if path.is_file() and not any(part[0] in "._" for part in path.relative_to(folder).parts)
    ]
    paths = [path for path in files if all_end([path], (*PARQUET_ENDINGS, *CSV_ENDINGS))]
    if not paths:
        raise InvalidInput(f"'source' {folder!r} is a folder without CSV or Parquet files")
    rest = sorted(set(files).difference(paths))
    others = Counter(Path(path).suffix or "no ending" for path in rest)
    if not others:
        return paths, []
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in others.most_common(5))
    return paths, [
        f"Folder {folder!r}: {others.total():,} of {len(files):,} files were left out, as neither "
        f"CSV nor Parquet: {kinds}{', …' if len(others) > 5 else ''}."
    ]


def _root(pattern: str) -> Path:
    """Return the folder that was given: above a file, or above the first star of a glob."""
    path = Path(pattern)
    if path.is_dir():
        return path
    if path.exists():
        return path.parent
    parts = path.parts
    first = next((at for at, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    return Path(*parts[:first])


def _partitions(paths: Iterable[Path]) -> set[str]:
    folders = (part for path in paths for part in path.parent.parts)
    return {name for name, sign, _ in (part.partition("=") for part in folders) if sign and name}


def _require_once(paths: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for path in paths:
        real = os.path.realpath(path)
        before = seen.get(real)
        seen[real] = path
        if before is not None:
            again = "" if before == path else f", once as {path!r}"
            raise InvalidInput(
                f"'source' holds the file {before!r} twice{again}; its people would count twice: "
                "name every file once"
            )
