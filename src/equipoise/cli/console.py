"""How commands answer: results on standard output, as lines and tables or as JSON.

Progress goes to standard error if that is a terminal.
"""

from __future__ import annotations

import json as json_module
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING

import typer

from equipoise._json import to_plain_data
from equipoise.display import Progress, Row, format_value
from equipoise.question import Verdict

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

STYLES = {"FAIR": "bold green", "UNFAIR": "bold red", "INCONCLUSIVE": "bold yellow",
          "recommended": "bold", "note": "yellow", "warning": "yellow",
          "missing": "yellow"}  # fmt: skip
"""Label of a line, or verdict in a table -> how it looks."""
_LABEL = re.compile(r" +\S+ {2,}| +")  # of a line of the status: spaces, and a word in a column
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tabs and line ends
WHOLE_COLUMNS = {"time", "id", "event"}  # a broken time or id cannot be copied
MIN_COLUMN_WIDTH = 16  # characters that a column of words needs; else rows are printed as blocks
FIRST_OF_NUMBERS = "0123456789-+[–"  # a cell that begins with one of these is aligned to the right


@dataclass(frozen=True)
class Heading:
    """A line that begins a chapter."""

    text: str


@dataclass(frozen=True)
class Line:
    """A line that begins with a label of :data:`STYLES`; ``mark`` stands behind the label."""

    label: str
    text: str
    mark: str = ":"
    indent: str = ""


@dataclass(frozen=True)
class Table:
    """Rows with a caption; ``wrap`` says whether columns but the first may break into lines."""

    rows: Sequence[Row]
    caption: str = ""
    wrap: bool = True


Part = str | Heading | Line | Table


@dataclass(frozen=True)
class Output:
    """What a command has found.

    Attributes
    ----------
    data
        For programs: what ``--json`` prints.
    text
        For people: text that is printed unchanged, or lines and tables that are fitted to the
        screen; ``str(data)`` if left out.
    failure
        What is raised once the rest is printed; None if the command succeeds.
    """

    data: object
    text: str | Sequence[Part] = ""
    failure: Exception | None = None


def show(output: Output, json: bool) -> None:
    """Print an output, for people or as JSON; raise what ends the command, if something does.

    In JSON infinite numbers and NaN are null.
    """
    if json:
        data = to_plain_data(output.data)
        typer.echo(json_module.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))
    elif isinstance(output.text, str):
        typer.echo(without_escapes(output.text or str(output.data)))
    else:
        from rich.console import Console

        print_parts(Console(highlight=False), output.text)
    if output.failure is not None:
        raise output.failure


def failure_after(failing: Collection[Verdict], verdicts: Iterable[Verdict]) -> typer.Exit | None:
    """Return what ends a command with code 3 if one of its verdicts is a failing one."""
    if any(verdict in failing for verdict in verdicts):
        return typer.Exit(3)
    return None


def print_parts(console: Console, parts: Sequence[Part]) -> None:
    """Print lines and tables, fitted to the console's width."""
    from rich.text import Text

    for part in parts:
        if isinstance(part, Table):
            _print_table(console, part)
        elif isinstance(part, Heading):
            console.print()
            console.rule(Text(part.text, style="bold"), align="left")
        elif isinstance(part, Line):
            rest = without_escapes(f"{part.mark} {part.text}")
            label = (part.label, STYLES[part.label])
            console.print(Text.assemble(part.indent, label, rest))
        else:
            console.print(Text(without_escapes(part)))


def _print_table(console: Console, table: Table) -> None:
    """Print rows, words to the left and numbers to the right."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    if not table.rows:
        return
    if _is_too_wide(table, console.width):
        _print_blocks(console, table)
        return
    grid = RichTable(
        box=box.SIMPLE_HEAD,
        caption=table.caption or None,
        caption_justify="left",
        collapse_padding=True,
    )
    for index, name in enumerate(table.rows[0]):
        cells = [row[name] for row in table.rows]
        is_first = index == 0
        has_numbers = any(format_value(cell)[:1] in FIRST_OF_NUMBERS for cell in cells)
        grid.add_column(
            Text(without_escapes(name.replace("_", " "))),  # it may be a group's name
            # The first column names the row, so it stays on the left even if names are numbers.
            justify="right" if has_numbers and not is_first else "left",
            overflow="fold",
            width=_fixed_width(table, name, is_first=is_first),
        )
    for row in table.rows:
        grid.add_row(*(_styled(cell) for cell in row.values()))
    console.print(grid)


def _fixed_width(table: Table, name: str, *, is_first: bool) -> int | None:
    """Return the width of a column that keeps its cells whole; None if they may break."""
    cells = [row[name] for row in table.rows]
    has_verdicts = any(isinstance(cell, Verdict) for cell in cells)
    # A column that holds verdicts, times or ids keeps its cells whole; its header may wrap.
    if name in WHOLE_COLUMNS or (not is_first and (has_verdicts or not table.wrap)):
        return _least_width(name, cells)
    return None


def _is_too_wide(table: Table, width: int) -> bool:
    """Return whether times and ids leave the other columns too little room."""
    whole_width = 0
    other_width = 0
    for name in table.rows[0]:
        cells = [row[name] for row in table.rows]
        if name in WHOLE_COLUMNS:
            whole_width += _least_width(name, cells) + 2  # with the space between two columns
        else:
            other_width += min(_least_width(name, cells), MIN_COLUMN_WIDTH) + 2
    return bool(whole_width) and whole_width + other_width > width


def _print_blocks(console: Console, table: Table) -> None:
    """Print each row as lines of a name and a value."""
    name_width = max(len(name) for name in table.rows[0]) + 2
    for row in table.rows:
        console.print()
        for name, cell in row.items():
            label = f"  {name.replace('_', ' '):<{name_width}}"
            console.print(label + without_escapes(format_value(cell)), markup=False)
    console.print()


def _least_width(name: str, cells: Sequence[object]) -> int:
    """Return how wide a column must be so that no cell and no word of its header breaks."""
    header_words = name.replace("_", " ").split()
    return max(len(text) for text in [*header_words, *map(format_value, cells)])


def _styled(cell: object) -> Text:
    """Return a cell as text, a verdict in its colour."""
    from rich.text import Text

    text = without_escapes(format_value(cell))
    return Text(text, style=STYLES[text] if isinstance(cell, Verdict) else "")


def without_escapes(text: str) -> str:
    """Return a text whose control characters are visible: a name must not steer a terminal."""
    return _CONTROLS.sub(lambda match: f"\\x{ord(match.group()):02x}", text)


def wrap_lines(text: str) -> str:
    """Return a text whose lines fit the terminal; what goes on is indented below its column.

    A file or a pipe gets the lines as they are.
    """
    if not sys.stdout.isatty():
        return text
    width = get_terminal_size().columns
    return "\n".join(_wrap_line(line, width) for line in text.splitlines())


def _wrap_line(line: str, width: int) -> str:
    label = _LABEL.match(line)
    # On a narrow screen a long label must leave room for the text beside it.
    indent = 2 if label is None else min(len(label.group()), width // 3)
    return fill(
        line,
        width,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def can_ask() -> bool:
    """Whether a person sits at a terminal and can be asked to confirm."""
    return sys.stdin.isatty()


def show_activity(activity: str) -> AbstractContextManager[object]:
    """Show that something is going on, on standard error if that is a terminal."""
    from rich.console import Console

    return Console(stderr=True).status(activity)


@contextmanager
def show_progress(activity: str) -> Iterator[Progress]:
    """Show how far something has come, on standard error if that is a terminal.

    Yields a function that takes the share that is done, from 0 to 1.
    """
    import rich.progress as rich
    from rich.console import Console

    console = Console(stderr=True)
    bars = rich.Progress(console=console, transient=True, disable=not console.is_terminal)
    with bars:
        task = bars.add_task(activity, total=1.0)
        yield lambda share: bars.update(task, completed=share)
