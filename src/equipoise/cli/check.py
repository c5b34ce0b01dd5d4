"""``equipoise check``: what past decisions alone say, next to what they seem to say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from equipoise.cli.console import Answer, Part, Table, stop_on
from equipoise.cli.options import command, failing, option, questions_asked
from equipoise.cli.past_options import Read, past_decisions
from equipoise.question import Question, Verdict

if TYPE_CHECKING:
    from equipoise.free_check import Check
    from equipoise.history import History

app = typer.Typer(add_completion=False)


@app.command()
@command(read=past_decisions, questions=questions_asked, fail_on=failing)
def check(
    read: Read,
    questions: tuple[Question, ...],
    fail_on: frozenset[Verdict],
    report: Path | None = option(
        None, "Write a page with pictures: a file ending in .html.", metavar="FILE"
    ),
    assume: list[str] | None = option(
        None,
        "An assumption; may be repeated: denied-no-better (than the approved of their group), "
        "at-most:GROUP=0.4 or at-least:GROUP=0.1 (so many of the denied would do well).",
        "Question",
        "WHAT",
    ),
    deciders: Literal["as_random"] | None = option(
        None,
        "Deciders (--decider) get the cases of a group as if at random, which bounds how many "
        "of it would do well.",
        "Question",
    ),
) -> Answer:
    """Say what past decisions alone establish, for free.

    Example: equipoise check loans.csv --group race --decision approved --outcome repaid
    """
    if report is not None:
        read.refuse_overwriting(report)
    history = read()
    from equipoise.free_check import Assume
    from equipoise.free_check import check as check_free

    granted = Assume.parse(assume) if assume else None
    findings = [check_free(history, q, assume=granted, deciders=deciders) for q in questions]
    full = [one.to_full_dict() for one in findings]
    past = {name: value for name, value in history.to_dict().items() if value is not None}
    data = (full[0] if len(full) == 1 else {"findings": full}) | {"history": past}
    words = _one(history, findings[0]) if len(findings) == 1 else _several(history, findings)
    if report is not None:
        from equipoise.report import write_check

        words.append(f"wrote {write_check(history, findings, report)}")
    return Answer(data, words, stop_on(fail_on, *(one.verdict for one in findings)))


def _several(history: History, findings: Sequence[Check]) -> list[Part]:
    """Return past decisions, and a line per question."""
    from equipoise.history.history import past_rows

    rows = [
        {
            "question": one.question.metric.replace("_", " "),
            "verdict": one.verdict,
            "gap": f"{one.lower:.3f} to {one.upper:.3f}",
            "who": _who(one),
        }
        for one in findings
    ]
    asked = findings[0].question
    return [
        Table(past_rows(history.cells)),
        Table(rows),
        f"gap: the largest {asked.gap_scale.noun} between groups{asked.comparison.words}. FAIR if "
        f"it is at most {asked.gamma:g}, UNFAIR if it is above {asked.threshold:.10g}; each answer "
        f"is wrong with probability <= {asked.delta:g}. who: the groups that the free ranges "
        "separate in one rate, the higher one first.",
    ]


def _who(finding: Check) -> str:
    if (found := finding.decided_by) is not None:
        return f"{found.higher} > {found.lower}"
    return "rates together" if finding.verdict is Verdict.UNFAIR else ""


def _one(history: History, finding: Check) -> list[Part]:
    """Return past decisions, the naive answers and the honest one."""
    from equipoise.history.history import past_rows

    return [
        *([] if history.summary is None else [f"{history.summary}\n"]),
        Table(past_rows(history.cells)),
        *(f"  note: {note}" for note in history.notes),
        f"\n{finding.question}",
        Table(finding.rate_rows()),
        Table(finding.answer_rows()),
        f"{finding.verdict}: {finding.reason}; cost 0",
        *([f"  who: {finding.who}"] if finding.who else []),
        *(
            f"  would do well: {own.percent} of {group}"
            for group, own in finding.base_rates.items()
        ),
        *(f"  missing: {line}" for line in finding.missing),
        *(f"  assumes: {line}" for line in finding.assumptions),
    ]
