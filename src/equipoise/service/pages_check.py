"""A page that reads past decisions, says what they establish, and prices an audit on them.

Nothing is kept: the counts, and what the table's words mean, travel with the form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool

from equipoise.errors import EquipoiseError, InvalidInput, require_in_unit
from equipoise.free_check import check
from equipoise.free_check.assumptions import NO_BETTER, Assume
from equipoise.history import History
from equipoise.history.coding import Coding
from equipoise.history.problems import UnreadTable
from equipoise.ledger import inputs
from equipoise.ledger.settings import Settings, new_settings
from equipoise.metrics import METRICS
from equipoise.planning import plan
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

TRIAL_RUNS = 12
COLUMN_FIELDS = ("group", "decision", "outcome")
MEANING_FIELDS = [(a, role) for role in ("decision", "outcome") for a in ("positive", "negative")]
TEXT_FIELDS = ("id", "random_accepts", "missing_group", "unknown", "undecided", "repeated",
         "denied_outcomes", "encoding", "date", "since", "until", "max_groups")  # fmt: skip
LIST_FIELDS = ("missing_values", "random_accepts_against")
FIELD_TITLES = {
    "missing_values": "No decision, or no outcome yet, is written",
    "unknown": "Approved people whose outcome is not known yet",
    "id": "Column that tells people apart",
    "date": "Column of dates",
    "since": "Only people from this day on",
    "until": "Only people before this day",
    "random_accepts": "Column that marks random accepts (a test cell below the cut-off)",
    "random_accepts_against": "Columns that show whether they were random, such as a score",
    "encoding": "Encoding of a CSV file, if not UTF-8",
    "table": "Sheet of an Excel file, if it has several",
}
"""Argument of ``History.read`` that messages name -> the title of its field."""
LIKE_KNOWN_TITLE = "assume that they are like the known ones of their group"
ARGUMENT_NAMES = re.compile(
    r"'({0})'(?= \(--)|\b({0})=(?:COLUMN\b)? ?".format("|".join(FIELD_TITLES))
)
FLAG_NAMES = re.compile(
    r"(: positive=\{.*?\}, negative=\{.*?\})? *\((--[^()]*|positive|negative|missing_values)\)"
)
VALUE_SEPARATOR = ";"  # stands between several values in a field
MAX_NOTES = 30  # of a table that are shown
LINES_SHOWN, LINE_LENGTH = 30, 1000  # of a message; the time of the expressions above is quadratic
PastAndSource = tuple[History, str]
"""Past decisions, and where they come from."""
CODING_ADAPTER = TypeAdapter(Coding)
EXAMPLE_SOURCE = "an example: the credit scores of 174,047 people"


@dataclass(frozen=True)
class Field:
    """What stands in a field; ``choice`` is what is left to the person, who must fill it in."""

    value: str = ""
    choice: str = ""


@router.get("/check")
def begin(caller: Reader) -> HTMLResponse:
    """Ask for past decisions."""
    return _page(caller, "check.html")


@router.post("/check")
async def look(caller: Reader, request: Request) -> HTMLResponse:
    """Say what past decisions establish, and what an audit would cost."""
    state, form = request.app.state, Form()
    try:
        async with state.uploads.receive_form(request) as form:
            history_and_source = await _read_past(form, state.uploads)
        variables = await run_in_threadpool(
            _page_variables, form, *history_and_source, state.audits
        )
    except UnreadTable as error:
        fields = _field_values(form, error.proposal)
        return _refused(caller, error, said=fields, proposed=bool(error.proposal))
    except (EquipoiseError, HttpProblem) as error:
        if isinstance(error, HttpProblem) and error.status_code != 422:
            raise
        return _refused(caller, error, said=_field_values(form, {}))
    template = "prices.html" if request.headers.get("x-part") == "prices" else "check.html"
    return _page(caller, template, **variables)


@router.post("/audits")
def create(caller: Auditor, request: Request, form: SentForm) -> Response:
    """Begin an audit on the counts of the page; where that is refused, show the page again."""
    audits = request.app.state.audits
    try:
        variables = _page_variables(form, *_past_from_form(form), audits)
    except EquipoiseError as error:
        return _refused(caller, error)
    try:
        name = require_name_in_scope(form.text("name"), caller)
        seed = new_seed()
        settings = _settings_of(form, name, seed, variables["past"], variables["question"])
        row = audits.begin(settings, seed, caller)
    except (EquipoiseError, HttpProblem) as error:
        return _refused(caller, error, **variables)
    return RedirectResponse(f"/audits/{quote(row.name, safe='')}", 303)


def _page(caller: Caller, template: str, **variables: Any) -> HTMLResponse:
    defaults: dict[str, Any] = {"cells": None, "problem": None, "proposed": False}
    defaults |= {"metrics": METRICS, "titles": FIELD_TITLES, "like_known": LIKE_KNOWN_TITLE}
    return render_page(
        caller, template, **{**defaults, "said": _field_values(Form(), {}), **variables}
    )


def _refused(caller: Caller, error: Exception, **variables: Any) -> HTMLResponse:
    return _page(caller, "check.html", status=422, problem=_for_the_form(str(error)), **variables)


def _for_the_form(text: str) -> str:
    """Return a message with the fields' titles in place of what Python and the shell call them.

    Notes and messages may hold what a browser sent, so they are cut before expressions read them.
    """
    text = "\n".join(line[:LINE_LENGTH] for line in text.splitlines()[:LINES_SHOWN])
    text = text.replace("unknown='like_known'", f"“{LIKE_KNOWN_TITLE}”")
    text = ARGUMENT_NAMES.sub(lambda found: f"“{FIELD_TITLES[found[1] or found[2]]}” ", text)
    return FLAG_NAMES.sub("", text)


async def _read_past(form: Form, uploads: Uploads) -> PastAndSource:
    """Return past decisions from a table, the example, or the form itself."""
    if form.table is not None:
        for role in COLUMN_FIELDS:
            if not form.text(role):
                raise InvalidInput(f"which column is the {role}?")
        counts = await uploads.read(form.table, options=_read_options(form))
        return _history(**counts), str(form.table.filename)[:200]
    if form.text("example"):
        lender = await run_in_threadpool(fico_lender)
        return History.from_cells(lender.history().cells), EXAMPLE_SOURCE
    return _past_from_form(form)


def _past_from_form(form: Form) -> PastAndSource:
    """Return the past decisions that the page itself sends back."""
    try:
        cells = json.loads(form.text("cells"))
        past = _history(cells, form.text("notes").splitlines(), form.text("coding"))
    except (TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
        raise InvalidInput("choose a table of past decisions, of 2 to 200 groups, first") from None
    return past, form.text("source")[:200]


def _history(cells: Any, notes: Sequence[str], coding: str | None) -> History:
    """Return past decisions from counts, notes and the JSON of a coding, as a page holds them."""
    shown_notes = tuple(map(_for_the_form, notes[:MAX_NOTES]))
    past = replace(History.from_cells(read_cells(cells)), notes=shown_notes)
    if not coding:
        return past
    coding_read = CODING_ADAPTER.validate_json(coding, strict=True)
    if [len(coding_read.columns.get(role, ())) for role in COLUMN_FIELDS] != [
        len(coding_read.grouping.labels),
        1,
        1,
    ]:
        raise InvalidInput("'coding' must name the column of each role")
    return replace(past, coding=coding_read)


def _read_options(form: Form) -> dict[str, Any]:
    """Return the options of ``History.read`` that the fields say."""

    def several(name: str) -> list[str]:
        return [word.strip() for word in form.text(name).split(VALUE_SEPARATOR) if word.strip()]

    options: dict[str, Any] = {
        name: form.text(name) for name in (*COLUMN_FIELDS, *TEXT_FIELDS) if form.text(name)
    }
    for argument, role in MEANING_FIELDS:
        if values := several(f"{argument}_{role}"):
            options.setdefault(argument, {})[role] = values
    if sheet := form.text("sheet"):
        options["table"] = sheet  # the field of this name is the file
    if (max_groups_text := form.text("max_groups")[:9]).isdecimal():
        options["max_groups"] = int(max_groups_text)
    return options | {name: several(name) for name in LIST_FIELDS}


def _field_values(form: Form, proposal: Mapping[str, Any]) -> dict[str, Field]:
    """Return the fields as they were sent, or as a proposal would have them."""
    proposed = {
        name: proposal.get(name) for name in (*COLUMN_FIELDS, *TEXT_FIELDS, *LIST_FIELDS, "sheet")
    }
    proposed |= {
        f"{argument}_{role}": proposal.get(argument, {}).get(role)
        for argument, role in MEANING_FIELDS
    }
    fields = {name: Field(form.text(name)) for name in proposed}
    for name, proposed_value in (
        (name, proposed_value)
        for name, proposed_value in proposed.items()
        if proposed_value is not None
    ):
        values = proposed_value if isinstance(proposed_value, list) else [proposed_value]
        if any(isinstance(value, Mapping) for value in values):  # one of them is open
            options = [
                value["choices"] if isinstance(value, Mapping) else [value] for value in values
            ]
            choice = f" {VALUE_SEPARATOR} ".join(
                " | ".join(map(str, alternatives)) for alternatives in options
            )
            fields[name] = Field(choice=choice)
        else:
            fields[name] = Field(f"{VALUE_SEPARATOR} ".join(map(str, values)))
    return fields


def _page_variables(form: Form, past: History, source: str, audits: OpenAudits) -> dict[str, Any]:
    """Return what the page shows of past decisions and of what its form says."""
    cells = past.cells
    inputs.group_names(cells)  # refuses those that no page can show and no audit would take
    limits = [line.strip() for line in form.text("limits").splitlines() if line.strip()]
    assume = Assume.parse([NO_BETTER, *limits] if form.text("no_better") else limits) or None
    gamma, epsilon, delta = (form.number(name, 0.05) for name in ("gamma", "epsilon", "delta"))
    question = Question(form.text("metric", "equalized_odds"), gamma, epsilon, delta)
    costs = Costs(form.number("feature", 0.0), form.number("label", 1.0))
    ratio, trial_runs = (
        form.number("ratio", USUAL_RATIO),
        TRIAL_RUNS if form.text("trial_runs") else 0,
    )
    require_in_unit("ratio", ratio)
    denied_rates = denied_rates_by_ratio(cells, ratio)
    with audits.long_work() if trial_runs else nullcontext():
        audit_plan = plan(past, question, costs, denied_rate=denied_rates, trial_runs=trial_runs)
    return {
        "past": past,
        "cells": cells,
        "sent": {  # as they travel with the form
            "cells": json.dumps(cells.to_dict()),
            "coding": past.coding.to_json() if past.coding else "",
        },
        "source": source,
        "notes": past.notes,
        "question": question,
        "costs": costs,
        "ratio": ratio,
        "assume": assume,
        "free": check(past, question, assume=assume),
        "plan": audit_plan,
        "runs": trial_runs,
        "r": denied_rates,
        "form": form,
    }


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
    )
