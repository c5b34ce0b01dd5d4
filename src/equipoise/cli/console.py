"""How commands answer: results as rows and lines on standard output, errors and progress beside."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from equipoise._json import plain
from equipoise.display import Progress, Row, written
from equipoise.question import Verdict

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    *("Answer", "bar", "console", "print_json", "say", "show", "show_rows", "somebody_answers"),
    *("stop_on", "working"),
]

COLOURS = {Verdict.FAIR: "green", Verdict.UNFAIR: "red", Verdict.INCONCLUSIVE: "yellow"}


@dataclass(frozen=True)
class Answer:
    """What a command has found.

    Attributes
    ----------
    data
        The answer for programs (``--json``).
    words
        The answer for people, or what prints it; ``str(data)`` if left out.
    end
        What is raised once the answer is shown, where the command does not end with code 0.
    """

    data: object
    words: str | Callable[[Console], None] = ""
    end: Exception | None = None


def show(found: object, json: bool) -> None:
    """Print what a command returned: an :class:`Answer`, or a value that has its own words."""
    answer = found if isinstance(found, Answer) else Answer(found)
    if json:
        print_json(answer.data)
    elif callable(answer.words):
        answer.words(console())
    else:
        typer.echo(answer.words or str(answer.data))
    if answer.end is not None:
        raise answer.end


def stop_on(verdicts: Iterable[Verdict], *found: Verdict) -> typer.Exit | None:
    """Return the end with code 3 if one of the verdicts was found."""
    return typer.Exit(3) if set(verdicts) & set(found) else None


def print_json(value: object) -> None:
    """Write an answer as JSON; a number without limit is null."""
    typer.echo(json_module.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def console() -> Console:
    """Return the console for answers."""
    from rich.console import Console

    return Console(highlight=False)


def say(to: Console, words: str, style: str = "") -> None:
    """Print a line; a verdict that it begins with has its colour."""
    from rich.text import Text

    line, first = Text(words, style=style), words.partition(":")[0]
    if first in list(Verdict):
        line.stylize(f"bold {COLOURS[Verdict(first)]}", 0, len(first))
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


def somebody_answers() -> bool:
    """Whether somebody sits at a terminal who can be asked."""
    return sys.stdin.isatty()


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
