"""``equipoise check``: what past decisions alone say, next to what they seem to say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise.cli.console import console, print_json
from equipoise.cli.option_groups import questions_asked, with_options
from equipoise.cli.options import Json
from equipoise.cli.past_options import Read, past_decisions
from equipoise.question import Question, Verdict

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from equipoise.free_check import Check
    from equipoise.history import History

__all__ = ["answers_table", "app", "show_check", "show_checks"]

app = typer.Typer(add_completion=False)

Assumptions = Annotated[
    list[str] | None,
    typer.Option(
        metavar="WHAT",
        help="What may be taken for granted; may be repeated: denied-no-better (than the approved "
        "of their group), at-most:GROUP=0.4 or at-least:GROUP=0.1 (so many of the denied would do "
        "well).",
        rich_help_panel="Question",
        show_default=False,
    ),
]


@app.command()
@with_options(read=past_decisions, questions=questions_asked)
def check(
    read: Read,
    questions: tuple[Question, ...],
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page with pictures: a file ending in .html."),
    ] = None,
    assume: Assumptions = None,
    json: Json = False,
) -> None:
    """Say what past decisions alone establish, for free.

    Example: equipoise check loans.csv --group race --decision approved --outcome repaid
    """
    history = read()
    from equipoise.assume import Assume
    from equipoise.free_check import check as check_free

    granted = Assume.parse(assume) if assume else None
    findings = [check_free(history, question, assume=granted) for question in questions]
    if report is not None:
        from equipoise.report import write_check

        write_check(history, findings, report)
    if json:
        past = history.to_dict()
        several = {"findings": [one.to_dict() for one in findings]}
        one = findings[0].to_dict() if len(findings) == 1 else several
        print_json({**one, "history": {k: v for k, v in past.items() if v is not None}})
        return
    to = console()
    if len(findings) == 1:
        show_check(to, history, findings[0])
    else:
        show_checks(to, history, findings)
    if report is not None:
        to.print(f"wrote {report}", markup=False, soft_wrap=True)


def show_checks(to: Console, history: History, findings: Sequence[Check]) -> None:
    """Print past decisions, and a line per question."""
    from rich.text import Text

    from equipoise.cli.tables import colour_of, new_table, past_table

    to.print(past_table(history.cells))
    table = new_table("question", "verdict", "gap", "who")
    table.columns[1].justify = table.columns[3].justify = "left"
    for one in findings:
        table.add_row(
            one.question.metric.replace("_", " "),
            Text(str(one.verdict), style=f"bold {colour_of(one.verdict)}"),
            f"{one.lower:.3f} to {one.upper:.3f}",
            _who(one),
        )
    table.columns[1].no_wrap = table.columns[2].no_wrap = True
    to.print(table)
    asked = findings[0].question
    to.print(
        f"gap: the largest {asked.comparison.noun} between groups. FAIR if it is at most "
        f"{asked.gamma:g}, UNFAIR if it is above {asked.threshold:.10g}; each answer "
        f"is wrong with probability <= {asked.delta:g}. who: the groups that the free ranges "
        "separate in one rate, the higher one first.",
        markup=False,
    )


def _who(finding: Check) -> str:
    if (found := finding.decided_by) is not None:
        return f"{found.higher} > {found.lower}"
    return "rates together" if finding.verdict is Verdict.UNFAIR else ""


def show_check(to: Console, history: History, finding: Check) -> None:
    """Print past decisions, the naive answers and the honest one."""
    from rich.padding import Padding
    from rich.text import Text

    from equipoise.cli.tables import colour_of, past_table, rates_table

    if history.summary is not None:
        to.print(f"{history.summary}\n", markup=False, highlight=False)
    to.print(past_table(history.cells))
    for note in history.notes:
        to.print(Padding(Text(f"note: {note}", style="yellow"), (0, 2)))
    to.print(Text(f"\n{finding.question}", style="bold"))
    to.print(rates_table(finding))
    to.print(answers_table(finding))
    to.print(Text(f"{finding.verdict}", style=f"bold {colour_of(finding.verdict)}"), end="")
    to.print(f": {finding.reason}; cost 0", markup=False)
    if finding.who:
        to.print(f"  who: {finding.who}", markup=False)
    for line in finding.missing:
        to.print(f"  missing: {line}", markup=False)
    for line in finding.assumptions:
        to.print(f"  assumes: {line}", markup=False)


def answers_table(finding: Check) -> Table:
    """Set the two naive answers beside the honest one."""
    from equipoise.cli.tables import new_table

    table = new_table("way of counting", "gap", "what to think of it")
    table.columns[2].justify = "left"
    for way, delta in (
        ("approved rows only", finding.approved_only),
        ("denials as failures", finding.denied_as_failures),
    ):
        table.add_row(way, "undefined" if delta is None else f"{delta:.3f}", finding.opinion(delta))
    table.add_row(
        "all that the data allow",
        f"{finding.lower:.3f} to {finding.upper:.3f}",
        f"holds with probability {1 - finding.question.delta:g}",
        style="bold",
    )
    return table
