"""A page that reads past decisions, says what they establish, and prices an audit on them.

Nothing is kept: the counts, and what the table's words mean, travel with the form.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool

from equipoise.comparison import Comparison
from equipoise.errors import EquipoiseError, InvalidInput, require_in_unit
from equipoise.free_check import check
from equipoise.free_check.assumptions import NO_BETTER, Assume
from equipoise.history import History
from equipoise.history.coding import Coding
from equipoise.history.problems import UnreadTable
from equipoise.ledger import inputs
from equipoise.ledger.settings import Settings, new_settings
from equipoise.messages import Note
from equipoise.messages.form import (
    BETWEEN,
    FIELD_TITLES,
    VALUE_TITLES,
    FieldContent,
    describe,
    describe_unread_table,
    filled_fields,
)
from equipoise.metrics import METRICS
from equipoise.planning import plan
from equipoise.planning.feasibility import NotFeasible
from equipoise.planning.scenarios import USUAL_RATIO, denied_rates_by_ratio
from equipoise.question import Costs, Question
from equipoise.service.access import Auditor, Caller, Reader
from equipoise.service.amounts import budget_of, minor_units
from equipoise.service.audits import OpenAudits, new_seed, require_name_in_scope
from equipoise.service.forms import Form, SentForm, render_page
from equipoise.service.problems import HttpProblem
from equipoise.service.uploads import Uploads
from equipoise.service.wire import read_cells
from equipoise.worlds.data import fico_lender

router = APIRouter(include_in_schema=False)

TRIAL_RUNS = 12  # simulated audits, if they are asked for
COLUMN_FIELDS = ("group", "decision", "outcome")
MEANING_FIELDS = (
    ("positive", "decision"),
    ("negative", "decision"),
    ("positive", "outcome"),
    ("negative", "outcome"),
)
"""Argument of ``History.read`` and role, whose field is called ``positive_decision`` and so on."""
TEXT_FIELDS = ("id", "random_accepts", "missing_group", "unknown", "undecided", "repeated",
         "denied_outcomes", "encoding", "date", "since", "until", "max_groups", "on",
         "latest")  # fmt: skip
LIST_FIELDS = ("missing_values", "random_accepts_against")
MAX_NOTES = 30  # of a table that are shown
MAX_MESSAGE_LINES = 30
MAX_LINE_CHARACTERS = 1000  # of a message, which may hold what a browser sent
MAX_SOURCE_CHARACTERS = 200
PastAndSource = tuple[History, str]
"""Past decisions, and where they come from."""
CODING_ADAPTER = TypeAdapter(Coding)
EXAMPLE_SOURCE = "an example: the credit scores of 174,047 people"


@router.get("/check")
def begin(caller: Reader) -> HTMLResponse:
    """Ask for past decisions."""
    return _page(caller, "check.html")


@router.post("/check")
async def look(caller: Reader, request: Request) -> HTMLResponse:
    """Show what past decisions establish, and what an audit would cost."""
    state = request.app.state
    form = Form()
    try:
        async with state.uploads.receive_form(request) as form:
            past, source = await _read_past(form, state.uploads)
        variables = await run_in_threadpool(_page_variables, form, past, source, state.audits)
    except UnreadTable as error:
        proposal = error.proposal
        proposed_fields = {} if proposal is None else filled_fields(proposal)
        fields = _fields_as_sent(form) | proposed_fields
        return _refused(caller, error, fields=fields, proposed=proposal is not None)
    except (EquipoiseError, HttpProblem) as error:
        # Only what is wrong with the form's values belongs on the page of the form.
        if isinstance(error, HttpProblem) and error.status_code != 422:
            raise
        return _refused(caller, error, fields=_fields_as_sent(form))
    wants_prices_only = request.headers.get("x-part") == "prices"
    template = "prices.html" if wants_prices_only else "check.html"
    return _page(caller, template, **variables)


@router.post("/audits")
def create(caller: Auditor, request: Request, form: SentForm) -> Response:
    """Begin an audit on the counts of the page; if that is refused, show the page again."""
    audits = request.app.state.audits
    try:
        past, source = _past_from_form(form)
        variables = _page_variables(form, past, source, audits)
    except EquipoiseError as error:
        return _refused(caller, error)
    try:
        name = require_name_in_scope(form.text("name"), caller)
        seed = new_seed()
        audits.require_within_limits(
            *("create", past, variables["question"], variables["costs"]),
            confirm=bool(form.text("confirm")),
        )
        settings = _settings_of(form, name, seed, past, variables["question"])
        row = audits.begin(settings, seed, caller)
    except (EquipoiseError, HttpProblem) as error:
        is_confirmable = isinstance(error, NotFeasible)
        return _refused(caller, error, is_confirmable=is_confirmable, **variables)
    return RedirectResponse(f"/audits/{quote(row.name, safe='')}", 303)


def _page(caller: Caller, template: str, **variables: Any) -> HTMLResponse:
    """Return the page, without counts and with empty fields unless the variables say otherwise."""
    defaults = {
        "cells": None,
        "problem": None,
        "proposed": False,
        "is_confirmable": False,
        "fields": _fields_as_sent(Form()),
        "metrics": METRICS,
        "titles": FIELD_TITLES,
        "value_titles": VALUE_TITLES,
    }
    return render_page(caller, template, **defaults | variables)


def _refused(caller: Caller, error: Exception, **variables: Any) -> HTMLResponse:
    problems = getattr(error, "problems", ())
    message = describe_unread_table(problems) if problems else str(error)
    return _page(caller, "check.html", status=422, problem=_cut(message), **variables)


def _cut(message: str) -> str:
    """Return the beginning of a message; it may hold what a browser sent."""
    lines = message.splitlines()[:MAX_MESSAGE_LINES]
    return "\n".join(line[:MAX_LINE_CHARACTERS] for line in lines)


async def _read_past(form: Form, uploads: Uploads) -> PastAndSource:
    """Return past decisions from an uploaded table, the example, or the form itself."""
    if form.table is not None:
        for role in COLUMN_FIELDS:
            if not form.text(role):
                raise InvalidInput(f"which column is the {role}?")
        counts = await uploads.read(form.table, form.outcomes_table, options=_read_options(form))
        notes = [describe(Note.from_dict(note)) for note in counts["notes"]]
        notes.insert(0, f"Rows: {counts['rows']}.")
        past = _history(counts["cells"], notes, counts["coding"])
        return past, str(form.table.filename)[:MAX_SOURCE_CHARACTERS]
    if form.text("example"):
        lender = await run_in_threadpool(fico_lender)
        return History.from_cells(lender.history().cells), EXAMPLE_SOURCE
    return _past_from_form(form)


def _past_from_form(form: Form) -> PastAndSource:
    """Return the past decisions whose counts the page itself sends back."""
    try:
        cells = json.loads(form.text("cells"))
        past = _history(cells, form.text("notes").splitlines(), form.text("coding"))
    except (TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
        raise InvalidInput("choose a table of past decisions, of 2 to 200 groups, first") from None
    return past, form.text("source")[:MAX_SOURCE_CHARACTERS]


def _history(cells: Any, notes: Sequence[str], coding_json: str | None) -> History:
    """Return past decisions from their counts, notes and the JSON of their coding (or "")."""
    shown_notes = tuple(Note.plain(_cut(note)) for note in notes[:MAX_NOTES])
    past = replace(History.from_cells(read_cells(cells)), notes=shown_notes)
    if not coding_json:
        return past
    coding = CODING_ADAPTER.validate_json(coding_json, strict=True)
    # The coding comes back from a browser, so it is checked like anything that is sent.
    columns_per_role = [len(coding.columns.get(role, ())) for role in COLUMN_FIELDS]
    if columns_per_role != [len(coding.grouping.labels), 1, 1]:
        raise InvalidInput("'coding' must name the column of each role")
    return replace(past, coding=coding)


def _read_options(form: Form) -> dict[str, Any]:
    """Return the options of ``History.read`` that the fields of the form stand for."""
    options: dict[str, Any] = {}
    for name in (*COLUMN_FIELDS, *TEXT_FIELDS):
        if form.text(name):
            options[name] = form.text(name)
    for name in LIST_FIELDS:
        options[name] = _split_values(form.text(name))
    for argument, role in MEANING_FIELDS:
        values = _split_values(form.text(f"{argument}_{role}"))
        if values:
            options.setdefault(argument, {})[role] = values
    if form.text("sheet"):
        options["table"] = form.text("sheet")  # the form's own field "table" is the file
    max_groups = form.text("max_groups")[:9]
    if max_groups.isdecimal():
        options["max_groups"] = int(max_groups)
    return options


def _split_values(text: str) -> list[str]:
    """Return the values of a field that may hold several."""
    parts = [part.strip() for part in text.split(BETWEEN)]
    return [part for part in parts if part]


def _fields_as_sent(form: Form) -> dict[str, FieldContent]:
    """Return every field about the table as the form has it."""
    return {name: FieldContent(form.text(name)) for name in FIELD_TITLES}


def _page_variables(form: Form, past: History, source: str, audits: OpenAudits) -> dict[str, Any]:
    """Return what the page shows of past decisions and of the question in its form."""
    inputs.group_names(past.cells)  # refuses names that no page can show and no audit would take
    question = Question(
        form.text("metric", "equalized_odds"),
        gamma=form.number("gamma", 0.05),
        epsilon=form.number("epsilon", 0.05),
        delta=form.number("delta", 0.05),
        compare=Comparison(leave_out=_split_values(form.text("leave_out"))),
    )
    question.resolve(past.cells)  # refuses groups that do not exist
    costs = Costs(feature=form.number("feature", 0.0), label=form.number("label", 1.0))
    assumptions = _assumptions(form)
    ratio = form.number("ratio", USUAL_RATIO)
    require_in_unit("ratio", ratio)
    denied_rates = denied_rates_by_ratio(past.cells, ratio)
    trial_runs = TRIAL_RUNS if form.text("trial_runs") else 0
    audits.require_within_limits(
        *("plan", past, question, costs), denied_rate=denied_rates, trial_runs=trial_runs
    )
    # Trial runs take seconds to minutes of a processor, so one caller at a time gets them.
    with audits.long_work() if trial_runs else nullcontext():
        audit_plan = plan(past, question, costs, denied_rate=denied_rates, trial_runs=trial_runs)
    return {
        "cells": past.cells,
        "sent": {  # as they travel with the form
            "cells": json.dumps(past.cells.to_dict()),
            "coding": past.coding.to_json() if past.coding else "",
        },
        "source": source,
        "notes": [str(note) for note in past.notes],
        "question": question,
        "costs": costs,
        "ratio": ratio,
        "assume": assumptions,
        "free": check(past, question, assume=assumptions),
        "plan": audit_plan,
        "runs": trial_runs,
        "denied_rates": denied_rates,
        "form": form,
    }


def _assumptions(form: Form) -> Assume | None:
    """Return the assumptions that the form grants, None if there are none."""
    lines = [line.strip() for line in form.text("limits").splitlines()]
    assumptions = [line for line in lines if line]
    if form.text("no_better"):
        assumptions.insert(0, NO_BETTER)
    return Assume.parse(assumptions) or None


def _settings_of(form: Form, name: str, seed: str, past: History, question: Question) -> Settings:
    """Return the settings of the audit that the form asks for, or refuse them."""
    decimals = 2 if form.text("cents") else 0
    costs = Costs(
        feature=minor_units("feature", form.text("feature") or "0", decimals),
        label=minor_units("label", form.text("label") or "0", decimals),
    )
    return new_settings(
        name,
        past,
        question,
        costs,
        seed=seed,
        budget=budget_of(form, decimals),
        currency=form.text("currency"),
        decimals=decimals,
        approvals=["budget", "concluded", "corrected"] if form.text("second") else [],
        confirm=bool(form.text("confirm")),
    )
