"""Lines and rows that are fitted to a terminal."""

from __future__ import annotations

import io

from rich.console import Console

from equipoise.cli.console import Line, Table, _wrap_line, print_parts

TIME = "2026-11-18T17:38:55"
ID = "86f294cbdefc4c3a88628cfd89bb58b2"


def test_a_status_line_goes_on_below_its_column_and_breaks_no_time() -> None:
    line = (
        f"  forecast    Estimated total cost: 2,590,000 EUR, as of {TIME}, for many good reasons."
    )
    first, *rest = _wrap_line(line, 60).splitlines()
    assert rest
    assert all(part.startswith(" " * 14) for part in rest)
    assert all(len(part) <= 60 for part in (first, *rest))
    assert TIME in "".join((first, *rest))


def test_rows_with_long_names_become_blocks_that_break_no_time_and_no_id() -> None:
    rows = [{"name": "consumer-loans-" * 4, "events": 88, "time": TIME, "id": ID}]
    file = io.StringIO()
    print_parts(Console(file=file, width=80, highlight=False), [Table(rows)])
    printed = file.getvalue()
    assert "consumer-loans-" * 4 in printed
    assert TIME in printed
    assert ID in printed
    assert max(map(len, printed.splitlines())) <= 80


def test_a_label_stands_out_and_the_text_behind_it_does_not() -> None:
    file = io.StringIO()
    console = Console(
        file=file, width=80, highlight=False, color_system="standard", force_terminal=True
    )
    print_parts(console, [Line("note", "A: B.", indent="  "), "note: no label"])
    labelled, plain = file.getvalue().splitlines()
    assert labelled == "  \x1b[33mnote\x1b[0m: A: B."
    assert plain == "note: no label"
