"""How commands answer: results on standard output, as lines and tables or as JSON.

Progress goes to standard error, where somebody watches.
"""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from equipoise._json import to_plain_data
from equipoise.display import Progress, Row, format_value
from equipoise.question import Verdict

if TYPE_CHECKING:
    from rich.console import Console

# How the beginning of a line looks, up to its colon.
STYLES = {"FAIR": "bold green", "UNFAIR": "bold red", "INCONCLUSIVE": "bold yellow",
          "recommended": "bold", "note": "yellow", "missing": "yellow"}  # fmt: skip


class Heading(str):
    """A line that begins a chapter."""


@dataclass(frozen=True)
class Table:
    """Rows with a caption; ``wrap`` says whether columns but the first may break into lines."""

    rows: Sequence[Row]
    caption: str = ""
    wrap: bool = True


Part = str | Table


@dataclass(frozen=True)
class Answer:
    """What a command has found: ``data`` for programs (``--json``), ``words`` for people.

    Words are text as it is, or lines and tables that are fitted to the screen; ``str(data)`` if
    left out. ``end`` is raised once the answer is shown, where the command fails in the end.
    """

    data: object
    words: str | Sequence[Part] = ""
    end: Exception | None = None


def show(found: object, json: bool) -> None:
    """Print what a command returned: an :class:`Answer`, or a value that has its own words.

    In JSON infinite numbers and NaN are null.
    """
    answer = found if isinstance(found, Answer) else Answer(found)
    if json:
        data = to_plain_data(answer.data)
        typer.echo(json_module.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))
    elif isinstance(answer.words, str):
        typer.echo(answer.words or str(answer.data))
    else:
        from rich.console import Console

        print_parts(Console(highlight=False), answer.words)
    if answer.end is not None:
        raise answer.end


def stop_on(verdicts: Iterable[Verdict], *found: Verdict) -> typer.Exit | None:
    """Return what ends a command with code 3, if one of the verdicts was found."""
    return typer.Exit(3) if set(verdicts) & set(found) else None


def print_parts(to: Console, parts: Sequence[Part]) -> None:
    """Print lines and tables, fitted to the console's width."""
    from rich.text import Text

    for part in parts:
        if isinstance(part, Table):
            _print_table(to, part)
        elif isinstance(part, Heading):
            to.print()
            to.rule(Text(part, style="bold"), align="left")
        else:
            line, first = Text(part), part.partition(":")[0]
            line.stylize(STYLES.get(first.strip(), ""), 0, len(first))
            to.print(line)


def _print_table(to: Console, made: Table) -> None:
    """Print rows, words to the left and numbers to the right."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    if not made.rows:
        return
    table = RichTable(box=box.SIMPLE_HEAD, caption=made.caption or None, caption_justify="left")
    for at, name in enumerate(made.rows[0]):
        cells = [row[name] for row in made.rows]
        verdicts = any(isinstance(cell, Verdict) for cell in cells)
        numbers = any(format_value(cell)[:1] in "0123456789-+[–" for cell in cells)
        table.add_column(
            name.replace("_", " "),
            justify="right" if at and numbers else "left",
            overflow="fold",
            no_wrap=at > 0 and (verdicts or not made.wrap),
        )
    for row in made.rows:
        words = [(format_value(cell), isinstance(cell, Verdict)) for cell in row.values()]
        table.add_row(*(Text(word, style=STYLES[word] if v else "") for word, v in words))
    to.print(table)


def somebody_answers() -> bool:
    """Whether somebody sits at a terminal who can be asked."""
    return sys.stdin.isatty()


def working(what: str) -> AbstractContextManager[object]:
    """Show that something is going on, where somebody watches."""
    from rich.console import Console

    return Console(stderr=True).status(what)


@contextmanager
def bar(what: str) -> Iterator[Progress]:
    """Show how far something has come, where somebody watches; yields a function of its share."""
    import rich.progress as rich
    from rich.console import Console

    to = Console(stderr=True)
    with rich.Progress(console=to, transient=True, disable=not to.is_terminal) as shown:
        task = shown.add_task(what, total=1.0)
        yield lambda share: shown.update(task, completed=share)
