"""How commands answer: results as rows and lines on standard output, errors and progress beside."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NoReturn, Protocol

import typer

from equipoise._json import plain
from equipoise.display import Progress, Row, written
from equipoise.question import Verdict

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    *("bar", "console", "exit_on", "fail", "print_json", "say", "show", "show_list", "show_rows"),
    *("somebody_answers", "speak_json", "working"),
]

COLOURS = {Verdict.FAIR: "green", Verdict.UNFAIR: "red", Verdict.INCONCLUSIVE: "yellow"}


def console() -> Console:
    """Return the console for answers."""
    from rich.console import Console

    return Console(highlight=False)


_in_json: ContextVar[bool] = ContextVar("in_json", default=False)


def speak_json(wanted: bool) -> None:
    """Say whether errors are for programs, like the answers."""
    _in_json.set(wanted)


def fail(message: str, kind: str = "InvalidInput") -> NoReturn:
    """Say what is wrong, line by line as the message is written, and exit with code 2."""
    said = f"error: {message}"
    if _in_json.get():
        said = json.dumps({"error": kind, "message": message}, ensure_ascii=False)
    print(said, file=sys.stderr)
    raise typer.Exit(2)


def print_json(value: object) -> None:
    """Write an answer as JSON; a number without limit is null."""
    typer.echo(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False))


class Showable(Protocol):
    """What can be shown."""

    def to_dict(self) -> dict[str, object]: ...


def show(value: Showable, json: bool) -> None:
    """Print a result in its own words, or its JSON."""
    if json:
        print_json(value.to_dict())
    else:
        typer.echo(str(value))


def say(to: Console, words: str, style: str = "") -> None:
    """Print a line; a verdict that it begins with has its colour."""
    from rich.text import Text

    line = Text(words, style=style)
    for verdict, colour in COLOURS.items():
        if words.startswith(f"{verdict}: "):
            line.stylize(f"bold {colour}", 0, len(verdict))
    to.print(line)


def show_rows(to: Console, rows: Sequence[Row], caption: str = "", *, wrap: bool = True) -> None:
    """Print the rows of a result, at home on 80 columns: words to the left, numbers to the right.

    ``wrap`` says whether columns other than the first may break into lines.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return
    table = Table(box=box.SIMPLE_HEAD, caption=caption or None, caption_justify="left")
    for at, name in enumerate(rows[0]):
        cells = [row[name] for row in rows]
        verdicts = any(isinstance(cell, Verdict) for cell in cells)
        numbers = any(written(cell)[:1] in "0123456789-+[–" for cell in cells)
        table.add_column(
            name.replace("_", " "),
            justify="right" if at and numbers else "left",
            overflow="fold",
            no_wrap=at > 0 and (verdicts or not wrap),
        )
    for row in rows:
        table.add_row(
            *(
                Text(cell, style=f"bold {COLOURS[cell]}")
                if isinstance(cell, Verdict)
                else Text(written(cell))
                for cell in row.values()
            )
        )
    to.print(table)


def show_list(rows: Sequence[Row], json: bool) -> None:
    """Print rows that are the whole answer."""
    if json:
        print_json(rows)
    else:
        show_rows(console(), rows)


def somebody_answers() -> bool:
    """Whether somebody sits at a terminal who can be asked."""
    return sys.stdin.isatty()


def exit_on(fail_on: Iterable[Verdict], *verdicts: Verdict) -> None:
    """End with code 3 if one of the verdicts is one to fail on."""
    if set(fail_on) & set(verdicts):
        raise typer.Exit(3)


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
