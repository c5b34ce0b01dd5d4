"""Files that the product writes: never in place of what it reads, and never half-written.

:func:`refuse_overwriting` compares a file to be written with those that are read.
:func:`replace_file` writes beside a file and renames, so that a reader sees the old text or the new
one, and a program that is stopped leaves the old one.
"""

from __future__ import annotations

import glob
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from equipoise.errors import InvalidInput

PathLike = str | os.PathLike[str]

SQLITE_COMPANIONS = ("-wal", "-shm", "-journal")  # what SQLite keeps beside a database, by ending


def refuse_overwriting(output: PathLike, inputs: Iterable[PathLike], role: str) -> None:
    """Raise if a file that is to be written is one of those that must stay.

    Parameters
    ----------
    output
        The file that would be written.
    inputs
        Files, folders and patterns (as in ``past/*.csv``) that must stay as they are.
    role
        What the inputs are, for the message: ``"the file of people"``.

    Raises
    ------
    InvalidInput
        If ``output`` and an input are one file, by whatever path: relative, through a symbolic
        link, or as a hard link.
    """
    for path in inputs:
        for file in _files_at(os.fspath(path)):
            if is_same_file(output, file):
                raise InvalidInput(
                    f"cannot write to {os.fspath(output)!r}: it is {role} ({file!r}), which would "
                    "be lost. Give another file"
                )


def is_same_file(first: PathLike, second: PathLike) -> bool:
    """Whether two paths lead to one file, or will once it is written."""
    with suppress(OSError):  # one of them does not exist yet
        return os.path.samefile(first, second)
    return os.path.realpath(first) == os.path.realpath(second)


def _files_at(place: str) -> Iterable[str]:
    """Return the files that a path, a folder or a pattern stands for."""
    place = place.removeprefix("file://")
    if os.path.isdir(place):
        return [str(path) for path in Path(place).rglob("*") if path.is_file()]
    if os.path.exists(place) or not glob.has_magic(place):
        return [place]
    return glob.glob(place, recursive=True)


def sqlite_files(database: PathLike) -> list[str]:
    """Return the files of an SQLite database: itself and what SQLite keeps beside it."""
    database = os.fspath(database)
    return [database, *(database + ending for ending in SQLITE_COMPANIONS)]


@contextmanager
def replace_file(
    path: PathLike, *, encoding: str = "utf-8", is_secret: bool = False
) -> Iterator[TextIO]:
    """Yield a file to write to; it takes its name only when everything is on disk.

    A symbolic link is followed, so that the link stays. What is no regular file, such as
    ``/dev/stdout``, is written to directly.

    Raises
    ------
    InvalidInput
        If the file cannot be written.
    """
    path = Path(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        with open(path, "w", encoding=encoding, newline="") as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    # In the same folder, because a file cannot be renamed from one disk to another.
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        if target.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        rights = 0o600 if is_secret else 0o666
        handle = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, rights)
    except OSError as error:
        raise InvalidInput(f"cannot write {str(path)!r}: {error.strerror}") from None
    try:
        with open(handle, "w", encoding=encoding, newline="") as file:
            yield file
            # On disk before it is renamed: after a loss of power the name must not lead to nothing.
            file.flush()
            os.fsync(file.fileno())
        if target.exists() and not is_secret:
            part.chmod(target.stat().st_mode)  # whoever may read the old file may read the new one
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
