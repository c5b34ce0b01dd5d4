"""``equipoise check``: what historical data alone prove, next to what they seem to say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from equipoise.cli import options as shared
from equipoise.cli import past_options as reading
from equipoise.cli.console import Line, Output, Part, Table, failure_after, show
from equipoise.cli.option_values import parse_verdicts
from equipoise.display import format_level, format_number
from equipoise.errors import InvalidInput, UnknownName
from equipoise.messages.shell import describe
from equipoise.question import Question, Verdict

if TYPE_CHECKING:
    from equipoise.free_check import Assume, Check
    from equipoise.history import History
    from equipoise.messages.answer import Answer

app = typer.Typer(add_completion=False)

DECIDERS_AS_RANDOM = "deciders-as-random"
ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--report", help="Write a page with pictures: a file ending in .html.", metavar="FILE"
    ),
]
ChecksFile = Annotated[
    Path | None,
    typer.Option(
        "--append",
        help="Add the answer to this .parquet file. equipoise trend draws it over time.",
        metavar="FILE",
    ),
]
Assumptions = Annotated[
    list[str] | None,
    typer.Option(
        "--assume",
        help="An assumption. May be repeated. With denied-no-better, denied people do no better "
        "than approved ones of their group. With at-most:GROUP=0.4 or at-least:GROUP=0.1, at most "
        "40% or at least 10% of the group's denied people would do well. With deciders-as-random "
        "(and --decider), cases reach deciders as if at random.",
        metavar="WHAT",
        rich_help_panel=shared.QUESTION_PANEL,
    ),
]
Deciders = Annotated[
    Literal["as_random"] | None,
    typer.Option(
        "--deciders",
        help="The former way to write --assume deciders-as-random.",
        hidden=True,
    ),
]


@app.command()
def check(
    context: typer.Context,
    source: reading.Source,
    group: reading.GroupColumns = None,
    within: shared.StratumColumns = None,
    decision: reading.DecisionColumn = None,
    outcome: reading.OutcomeColumn = None,
    positive: reading.PositiveValues = None,
    negative: reading.NegativeValues = None,
    denied_outcomes: reading.DeniedOutcomes = "error",
    missing_values: reading.MissingValues = None,
    missing_group: reading.MissingGroup = "refuse",
    merge_groups: reading.MergeGroups = None,
    max_groups: reading.MaxGroups = 50,
    unknown: reading.UnknownOutcomes = "refuse",
    undecided: reading.Undecided = "refuse",
    cohort: reading.CohortColumn = None,
    random_accepts: reading.RandomAcceptsColumn = None,
    random_accepts_against: reading.RandomAcceptsAgainst = None,
    decider: reading.DeciderColumn = None,
    min_cases: reading.MinCases = 0,
    id_column: reading.IdColumn = None,
    repeated: reading.RepeatedPeople = "refuse",
    table: reading.TableName = None,
    query: reading.Query = None,
    encoding: reading.Encoding = None,
    outcomes: reading.Outcomes = None,
    on: reading.JoinOn = None,
    latest: reading.LatestColumn = None,
    preset: reading.Preset = None,
    date: reading.DateColumn = None,
    since: reading.Since = None,
    until: reading.Until = None,
    save: reading.Save = None,
    metric: shared.Metrics = shared.DEFAULT_METRICS,
    gamma: shared.Gamma = 0.05,
    epsilon: shared.Epsilon = 0.05,
    delta: shared.Delta = 0.05,
    compare: shared.CompareBy = "difference",
    against: shared.Against = None,
    direction: shared.Direction = "both",
    leave_out: shared.LeaveOut = None,
    fail_on: shared.FailOn = "",
    report: ReportFile = None,
    append: ChecksFile = None,
    assume: Assumptions = None,
    deciders: Deciders = None,
    json: shared.Json = False,
) -> None:
    """Show what historical data alone prove, at no cost.

    Example: equipoise check loans.csv --group race --decision approved --outcome repaid --metric
    equal_opportunity
    """
    past = reading.PastDecisions(
        context,
        source,
        {
            "group": group,
            "within": within,
            "decision": decision,
            "outcome": outcome,
            "positive": positive,
            "negative": negative,
            "denied_outcomes": denied_outcomes,
            "missing_values": missing_values,
            "missing_group": missing_group,
            "merge_groups": merge_groups,
            "max_groups": max_groups,
            "unknown": unknown,
            "undecided": undecided,
            "cohort": cohort,
            "random_accepts": random_accepts,
            "random_accepts_against": random_accepts_against,
            "decider": decider,
            "min_cases": min_cases,
            "id": id_column,
            "repeated": repeated,
            "table": table,
            "query": query,
            "encoding": encoding,
            "outcomes": outcomes,
            "on": on,
            "latest": latest,
            "preset": preset,
            "date": date,
            "since": since,
            "until": until,
        },
        save,
    )
    question_options = past.complete_question(
        shared.QuestionOptions(
            metrics=metric,
            gamma=gamma,
            epsilon=epsilon,
            delta=delta,
            compare_by=compare,
            against=against,
            direction=direction,
            stratum_columns=within,
            leave_out=leave_out,
        )
    )
    questions = question_options.questions()
    failing = parse_verdicts(fail_on)
    for output in (report, append):
        if output is not None:
            past.refuse_overwriting(output)
    history = past.read(question_options)

    findings = _check_questions(history, questions, assume or (), deciders)
    if len(findings) == 1:
        parts = _show_one(history, findings[0])
    else:
        parts = _show_several(history, findings)
    assumptions = [*(assume or ()), *([DECIDERS_AS_RANDOM] if deciders else ())]
    parts += _write_files(history, findings, assumptions, report, append)
    verdicts = [finding.verdict for finding in findings]
    if Verdict.INCONCLUSIVE in verdicts:
        parts.append(f"Next: equipoise plan {past.words_to_repeat(question_options)}")
    failure = failure_after(failing, verdicts)
    show(Output(_as_data(history, findings), parts, failure), json)


def _check_questions(
    history: History,
    questions: Sequence[Question],
    assumptions: Sequence[str],
    deciders: Literal["as_random"] | None,
) -> list[Check]:
    """Return what the historical data establish about each question, if assumptions are granted.

    ``assumptions`` are the values of ``--assume``, as typed.
    """
    # Imported after the table was read: a mistake in it is shown at once.
    from equipoise.free_check import Assume, check

    # The assumption about deciders is one among others here, and an argument of its own in Python.
    limits = [text for text in assumptions if text != DECIDERS_AS_RANDOM]
    if len(limits) < len(assumptions):
        deciders = "as_random"
    assume = Assume.parse(limits) if limits else None
    _require_known_names(history, assume, deciders)
    return [check(history, question, assume=assume, deciders=deciders) for question in questions]


def _write_files(
    history: History,
    findings: Sequence[Check],
    assumptions: Sequence[str],
    report: Path | None,
    append: Path | None,
) -> list[Part]:
    """Write the files of ``--report`` and ``--append``; return a line about each."""
    parts: list[Part] = []
    if report is not None:
        from equipoise.report import write_check

        if report.suffix != ".html":
            raise InvalidInput(f"'--report' of a check must end in .html; got {report.name!r}")
        parts.append(f"wrote {write_check(history, findings, report)}")
    if append is not None:
        from equipoise.cli.check_log import append_checks

        source = "" if history.summary is None else history.summary.source.strip("'")
        append_checks(append, findings, history.cells.total, source=source, assumptions=assumptions)
        parts.append(f"added to {append}")
    return parts


def _require_known_names(history: History, assumption: Assume | None, deciders: str | None) -> None:
    """Refuse assumptions about groups, or deciders, that the historical data do not have."""
    if assumption is not None:
        for limited_group in (*assumption.r_at_most, *assumption.r_at_least):
            if limited_group not in history.cells:
                raise UnknownName("group in '--assume'", limited_group, history.cells.groups)
    if deciders is not None and not history.deciders:
        raise InvalidInput(
            f"'--assume {DECIDERS_AS_RANDOM}' needs '--decider COLUMN', the column that names who "
            "decided"
        )


def _as_data(history: History, findings: Sequence[Check]) -> dict[str, Any]:
    """Return the findings for programs: one as it is, several as a list, each with the past."""
    past = {name: value for name, value in history.to_dict().items() if value is not None}
    if len(findings) == 1:
        return findings[0].to_full_dict() | {"history": past}
    return {"findings": [finding.to_full_dict() for finding in findings], "history": past}


def _show_several(history: History, findings: Sequence[Check]) -> list[Part]:
    """Return past decisions, and a line per question."""
    from equipoise.history.history import past_rows
    from equipoise.messages.answer import build_answer

    rows = []
    for finding in findings:
        answer = build_answer(finding)
        rows.append(
            {
                "question": finding.question.metric.replace("_", " "),
                "verdict": answer.verdict,
                "gap": f"{answer.gap.hundredths}%",
                "who": _name_different_groups(answer),
            }
        )
    question = findings[0].question  # all of them have the same tolerance and margin
    return [
        Table(past_rows(history.cells)),
        Table(rows),
        f"gap: the largest {question.gap_scale.noun} between groups{question.comparison.words}. "
        f"FAIR if it is at most {format_number(question.gamma)}, UNFAIR if it is above "
        f"{format_number(question.threshold, 10)}; {_describe_levels(question)}. "
        "who: the groups that the free ranges separate in one rate, the higher one first.",
    ]


def _describe_levels(question: Question) -> str:
    """Return the error probability of each answer; one number if both have the same."""
    wrong_fair = format_level(question.level_wrong_fair)
    wrong_unfair = format_level(question.level_wrong_unfair)
    if wrong_fair == wrong_unfair:
        return f"error probability of each answer at most {wrong_fair}"
    return f"error probability of FAIR at most {wrong_fair}, of UNFAIR at most {wrong_unfair}"


def _name_different_groups(answer: Answer) -> str:
    """Return the two groups that differ, or that it takes several rates together to see it."""
    if answer.decided_by is not None:
        return f"{answer.decided_by.pair.higher} > {answer.decided_by.pair.lower}"
    return "rates together" if answer.verdict is Verdict.UNFAIR else ""


def _show_one(history: History, finding: Check) -> list[Part]:
    """Return past decisions, the naive answers and what the data support."""
    from equipoise.history.history import past_rows
    from equipoise.messages.answer import build_answer

    answer = build_answer(finding)
    parts: list[Part] = [
        Line(answer.title, answer.details, "."),
        f"  because: {answer.reason}",
        "  cost: 0",
    ]
    parts += [f"  assumes: {sentence}" for sentence in answer.assumptions]
    parts += [f"  warning: {sentence}" for sentence in answer.warnings]
    parts += [Line("missing", sentence, indent="  ") for sentence in answer.missing]
    parts += [f"\n{finding.question}", Table(finding.answer_rows()), Table(finding.rate_rows())]
    for group, base_rate in finding.base_rates.items():
        parts.append(f"  would do well: {base_rate.percent} of {group}")
    if history.summary is not None:
        parts.append(f"{history.summary}\n")
        left_out = finding.question.resolve(history.cells).left_out
        if left_out:
            n_left_out = round(sum(history.cells[group].total for group in left_out))
            rows = history.summary.describe_waterfall(n_left_out)
            parts.append(f"  rows by the question: {rows}")
    parts.append(Table(past_rows(history.cells)))
    parts += [Line("note", describe(note), indent="  ") for note in history.notes]
    return parts
