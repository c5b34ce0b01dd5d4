"""Where the commands write: answers to standard output, errors and progress beside it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NoReturn

import typer

from equipoise._json import plain
from equipoise.display import Progress

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["bar", "console", "fail", "print_json", "speak_json", "working"]


def console() -> Console:
    """Return the console for answers."""
    from rich.console import Console

    return Console(highlight=False)


_in_json: ContextVar[bool] = ContextVar("in_json", default=False)


def speak_json(wanted: bool) -> None:
    """Say whether errors are for programs, like the answers."""
    _in_json.set(wanted)


def fail(message: str, kind: str = "InvalidInput") -> NoReturn:
    """Say what is wrong in one line and exit with code 2."""
    line = " ".join(message.split())
    if _in_json.get():
        line = json.dumps({"error": kind, "message": line}, ensure_ascii=False)
    else:
        line = f"error: {line}"
    print(line, file=sys.stderr)
    raise typer.Exit(2)


def print_json(value: object) -> None:
    """Write an answer as JSON; a number without limit is null."""
    typer.echo(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False))


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show that something is going on, where somebody watches."""
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


@contextmanager
def bar(what: str) -> Iterator[Progress]:
    """Show how far something has come, where somebody watches; yields a function of its share."""
    import rich.progress as rich
    from rich.console import Console

    to = Console(stderr=True)
    with rich.Progress(console=to, transient=True, disable=not to.is_terminal) as shown:
        task = shown.add_task(what, total=1.0)
        yield lambda share: shown.update(task, completed=share)
