"""The page that reads past decisions step by step, shows what they establish, and plans an audit.

Nothing is kept: the table stays in the browser, and what was counted travels with the forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from equipoise.comparison import WITHIN
from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.free_check import Check, check
from equipoise.history import History
from equipoise.history.guided_reading import ColumnProfile
from equipoise.history.presets import preset_names
from equipoise.history.problems import UnreadTable
from equipoise.ledger.settings import new_settings
from equipoise.ledger.store import AuditRow
from equipoise.messages import form as words
from equipoise.messages.answer import format_gap
from equipoise.messages.opinions import OPINION_TITLES
from equipoise.metrics import METRICS
from equipoise.planning import Plan
from equipoise.planning.case_rows import case_rows, explain_cases, time_and_money_rows
from equipoise.planning.feasibility import NotFeasible, Obstacle
from equipoise.question import Costs, Question, Verdict
from equipoise.rates import RATES
from equipoise.report.write import check_page
from equipoise.service.access import Auditor, Caller, Reader
from equipoise.service.amounts import budget_of, minor_units
from equipoise.service.api import REPORT_POLICY
from equipoise.service.audits import OpenAudits, new_seed, require_name_in_scope
from equipoise.service.counted_past import CountedPast, cut_message
from equipoise.service.forms import Form, SentForm, render_page
from equipoise.service.problems import HttpProblem
from equipoise.service.question_form import (
    EVERY_METRIC,
    question_texts,
    read_assumptions,
    read_costs,
    read_deciders,
    read_plan_options,
    read_questions,
    read_sliders,
    sent_prices,
    sent_question,
)
from equipoise.service.reading_form import MAIN_COLUMNS, ReadingForm
from equipoise.service.uploads import Uploads
from equipoise.worlds.data import fico_lender

router = APIRouter(include_in_schema=False)

TRIAL_RUNS = 12  # simulated audits, if they are asked for
PLAN_STEPS = ("plan", "trials")
EXAMPLE_SOURCE = "Example lender: the credit scores of 174,047 people"
APPROVED_BY_TWO = ("budget", "concluded", "corrected")
"""What a second person approves, if that is ticked."""


@router.get("/check")
def begin(caller: Reader) -> HTMLResponse:
    """Ask for past decisions."""
    return _page(caller, Form())


@router.post("/check")
async def look(caller: Reader, request: Request) -> Response:
    """Take the next step: list columns, count rows, show what they establish, plan an audit."""
    state = request.app.state
    form = Form()
    try:
        async with state.uploads.receive_form(request) as form:
            step = form.text("step")
            reading = ReadingForm.from_form(form)
            if step in ("columns", "values"):
                reading = await _list_columns(form, reading, state.uploads)
                return _page(caller, form, reading=reading)
            past = await _read_past(form, reading, state.uploads)
        if step == "count":
            # Groups that were left out of another table may not exist in this one.
            left_out = [group for group in reading.left_out if group in past.history.cells]
            return _page(caller, form, reading=reading, past=past, left_out=left_out)
        answer_parts = await run_in_threadpool(
            _answer_question, form, past, state.audits, caller, step
        )
        return (
            answer_parts
            if isinstance(answer_parts, Response)
            else _page(caller, form, past=past, **answer_parts)
        )
    except _UnreadUpload as refusal:
        return _page(caller, form, reading=refusal.reading, error=refusal.error)
    except (EquipoiseError, HttpProblem) as error:
        # Only what is wrong with the form's values belongs on the page of the form.
        if isinstance(error, HttpProblem) and error.status_code != 422:
            raise
        return _page(caller, form, past=_past_if_any(form), error=error)


@router.post("/audits")
def create(caller: Auditor, request: Request, form: SentForm) -> Response:
    """Begin an audit on the counts of the page; if that is refused, show the page again."""
    audits = request.app.state.audits
    try:
        past = CountedPast.from_form(form)
        questions = read_questions(form, past)
    except EquipoiseError as error:
        return _page(caller, form, past=_past_if_any(form), error=error)
    # From here on there is an answer, which is shown again together with what went wrong.
    try:
        (question,) = _single(questions)
        name = require_name_in_scope(form.text("name"), caller)
        row = _begin_audit(form, name, past.history, question, audits, caller)
    except (EquipoiseError, HttpProblem) as error:
        answer_parts = _answer_question(form, past, audits, caller, "begin")
        return _page(caller, form, past=past, error=error, **answer_parts)
    return RedirectResponse(f"/audits/{quote(row.name, safe='')}", 303)


# -- the table -------------------------------------------------------------------------------------


class _UnreadUpload(Exception):
    """A table that cannot be read so, and the form that says how it might be."""

    def __init__(self, error: Exception, reading: ReadingForm) -> None:
        super().__init__(str(error))
        self.error = error
        self.reading = reading


async def _list_columns(form: Form, reading: ReadingForm, uploads: Uploads) -> ReadingForm:
    """Return the form with the columns of the uploaded table, or of those that came with it."""
    if form.text("step") == "values" and reading.profiles:
        return reading.with_columns(reading.profiles)
    return reading.with_columns(await _profile(form, reading, uploads))


async def _profile(form: Form, reading: ReadingForm, uploads: Uploads) -> list[ColumnProfile]:
    options = reading.read_options()
    # Columns are listed before any of them has a role, so the other options do not count yet.
    how_to_open = {name: options[name] for name in ("encoding", "table") if options.get(name)}
    listing = await uploads.read(form.table, form.outcomes_table, options=how_to_open, columns=True)
    return [ColumnProfile.from_dict(entry) for entry in listing["columns"]]


async def _read_past(form: Form, reading: ReadingForm, uploads: Uploads) -> CountedPast:
    """Return past decisions from an uploaded table, the example, or the form itself."""
    if form.text("example"):
        lender = await run_in_threadpool(fico_lender)
        return CountedPast(History.from_cells(lender.history().cells), EXAMPLE_SOURCE, {})
    if form.table is None:  # it was counted before, and the counts travel with the form
        return CountedPast.from_form(form)
    if not reading.text("preset"):
        for role in MAIN_COLUMNS:
            if not reading.text(role):
                raise InvalidInput(f"which column is the {role}?")
    try:
        counts = await uploads.read(form.table, form.outcomes_table, options=reading.read_options())
        return CountedPast.from_reader(counts, str(form.table.filename))
    except EquipoiseError as error:
        raise _UnreadUpload(error, await _propose(error, form, reading, uploads)) from None


async def _propose(
    error: Exception, form: Form, reading: ReadingForm, uploads: Uploads
) -> ReadingForm:
    """Return the form of a table that was refused, with what would make it readable."""
    proposal = error.proposal if isinstance(error, UnreadTable) else None
    if not reading.profiles:  # a program sent the table without the steps of the page
        try:
            profiles = await _profile(form, reading, uploads)
        except EquipoiseError:  # it cannot be opened at all
            return reading.with_proposal(proposal)
        reading = reading.with_columns(profiles)
    return reading.with_proposal(proposal)


def _past_if_any(form: Form) -> CountedPast | None:
    """Return the past decisions that came with a form, None if there are none."""
    try:
        return CountedPast.from_form(form)
    except EquipoiseError:
        return None


# -- the answer ------------------------------------------------------------------------------------


def _answer_question(
    form: Form, past: CountedPast, audits: OpenAudits, caller: Caller, step: str
) -> Any:
    """Return what the page shows of a question, or a file to save."""
    questions = read_questions(form, past)
    assume = read_assumptions(form)
    deciders = read_deciders(form)
    costs = read_costs(form)
    findings = [
        check(past.history, question, assume=assume, deciders=deciders) for question in questions
    ]
    if step == "save":
        return _saved_check(past, findings)
    # An audit is offered only where the historical data leave the question open.
    is_open = len(findings) == 1 and findings[0].verdict is Verdict.INCONCLUSIVE
    answer_parts: dict[str, Any] = {"findings": findings}
    if step in PLAN_STEPS and is_open:
        trial_runs = TRIAL_RUNS if step == "trials" else 0
        answer_parts["plan"] = _plan(form, past, questions[0], costs, audits, caller, trial_runs)
    answer_parts["can_begin"] = "plan" in answer_parts or step == "begin"
    return answer_parts


def _plan(
    form: Form,
    past: CountedPast,
    question: Question,
    costs: Costs,
    audits: OpenAudits,
    caller: Caller,
    trial_runs: int,
) -> dict[str, Any]:
    """Return the plan of an audit with its tables, and the sliders that it takes."""
    options = read_plan_options(form, past, question)
    cost_plan = Plan.from_dict(
        audits.make_plan(past.history, question, costs, caller, trial_runs=trial_runs, **options)
    )
    return {
        "cost_plan": cost_plan,
        "has_trials": any(case.trial_runs for case in cost_plan.cases),
        "sliders": read_sliders(form, past, question),
        "n_trial_runs": TRIAL_RUNS,
        "rows": case_rows(cost_plan),
        "times": time_and_money_rows(cost_plan) if cost_plan.times else [],
        "caption": explain_cases(cost_plan) if cost_plan.cases else "",
    }


def _saved_check(past: CountedPast, findings: Sequence[Check]) -> Response:
    """Return the answer as a page that needs no server."""
    headers = {
        "content-disposition": "attachment; filename=check.html",
        "content-security-policy": REPORT_POLICY,
    }
    text = check_page(past.history, findings)
    return Response(text, media_type="text/html; charset=utf-8", headers=headers)


def _single(questions: Sequence[Question]) -> Sequence[Question]:
    if len(questions) != 1:
        raise InvalidInput("an audit answers one question: choose one metric")
    return questions


def _begin_audit(
    form: Form,
    name: str,
    history: History,
    question: Question,
    audits: OpenAudits,
    caller: Caller,
) -> AuditRow:
    """Begin the audit that the form asks for, or refuse it."""
    decimals = 2 if form.text("cents") else 0
    costs = Costs(
        feature=minor_units("feature", form.text("feature") or "0", decimals),
        label=minor_units("label", form.text("label") or "1", decimals),
    )
    budget = budget_of(form, decimals)
    seed = new_seed()
    settings = new_settings(
        name,
        history,
        question,
        costs,
        seed=seed,
        budget=budget,
        currency=form.text("currency"),
        decimals=decimals,
        approvals=list(APPROVED_BY_TWO) if form.text("second") else [],
        is_possible=True,
    )
    return audits.begin(settings, seed, caller, confirm=bool(form.text("confirm")))


# -- the page --------------------------------------------------------------------------------------


def _page(
    caller: Caller,
    form: Form,
    *,
    reading: ReadingForm | None = None,
    past: CountedPast | None = None,
    findings: Sequence[Check] = (),
    plan: dict[str, Any] | None = None,
    can_begin: bool = False,
    left_out: Sequence[str] | None = None,
    error: Exception | None = None,
) -> HTMLResponse:
    """Return the page with what is known by now: columns, counts, the answer, a plan."""
    texts = question_texts(form)
    if left_out is not None:
        texts["leave_out"] = list(left_out)
    problems = getattr(error, "problems", ())
    message = words.describe_unread_table(problems) if problems else str(error or "")
    return render_page(
        caller,
        "check.html",
        status=200 if error is None else 422,
        form=form,
        reading=ReadingForm.from_form(Form()) if reading is None else reading,
        past=past,
        findings=findings,
        plan=plan,
        can_begin=can_begin,
        asked=texts,
        sent_question=sent_question(form),
        sent_prices=sent_prices(form),
        problem=cut_message(message),
        obstacle=_obstacle_to_begin(plan, error),
        metrics=METRICS,
        every_metric=EVERY_METRIC,
        presets=preset_names(),
        words=words,
        opinion_titles=OPINION_TITLES,
        format_gap=format_gap,
        rate_titles={name: rate.words for name, rate in RATES.items()},
        **_counts_for_page(past, findings),
    )


def _obstacle_to_begin(plan: dict[str, Any] | None, error: Exception | None) -> Obstacle | None:
    """Return why the audit would have to be confirmed, as it was refused or is planned."""
    if isinstance(error, NotFeasible):
        return error.obstacle
    cost_plan: Plan | None = None if plan is None else plan["cost_plan"]
    return None if cost_plan is None else cost_plan.obstacle


def _counts_for_page(past: CountedPast | None, findings: Sequence[Check]) -> dict[str, Any]:
    """Return what the page shows of the counts.

    These are the groups to choose a reference from, how many compared people were denied, and how
    many people are in groups that are left out.
    """
    if past is None:
        return {}
    cells = past.history.cells
    references = list(cells)
    if past.has_strata:
        # One reference serves all strata, so that its name goes without the stratum.
        references = [group.rpartition(WITHIN)[2] for group in cells]
    left_out = findings[0].question.resolve(cells).left_out if findings else ()
    compared = [counts for group, counts in cells.items() if group not in left_out]
    return {
        "references": list(dict.fromkeys(references)),
        "denied": sum(counts.denied for counts in compared),
        "people_left_out": sum(cells[group].total for group in left_out),
    }
