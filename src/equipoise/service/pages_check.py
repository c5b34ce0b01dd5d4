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
from equipoise.service.forms import Form, Sent, page
from equipoise.service.problems import HttpProblem
from equipoise.service.uploads import Uploads
from equipoise.service.wire import read_cells
from equipoise.worlds.data import fico_lender

router = APIRouter(include_in_schema=False)

TRIAL_RUNS = 12
COLUMNS = ("group", "decision", "outcome")
MEANINGS = [(a, role) for role in ("decision", "outcome") for a in ("positive", "negative")]
WORDS = ("id", "random_accepts", "missing_group", "unknown", "undecided", "repeated",
         "denied_outcomes", "encoding", "date", "since", "until", "max_groups")  # fmt: skip
SEVERAL = ("missing_values", "random_accepts_against")
TITLES = {
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
LIKE_KNOWN = "assume that they are like the known ones of their group"
ARGUMENT = re.compile(r"'({0})'(?= \(--)|\b({0})=(?:COLUMN\b)? ?".format("|".join(TITLES)))
FLAGS = re.compile(
    r"(: positive=\{.*?\}, negative=\{.*?\})? *\((--[^()]*|positive|negative|missing_values)\)"
)
BETWEEN = ";"  # stands between several values in a field
NOTES = 30  # of a table that are shown
LINES_SHOWN, LINE_LENGTH = 30, 1000  # of a message; the time of the expressions above is quadratic
Told = tuple[History, str]
"""Past decisions, and where they come from."""
CODING = TypeAdapter(Coding)
EXAMPLE = "an example: the credit scores of 174,047 people"


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
        async with state.uploads.sent_by(request) as form:
            past = await _past(form, state.uploads)
        shown = await run_in_threadpool(_answers, form, *past, state.audits)
    except UnreadTable as error:
        said = _filled_in(form, error.proposal)
        return _refused(caller, error, said=said, proposed=bool(error.proposal))
    except (EquipoiseError, HttpProblem) as error:
        if isinstance(error, HttpProblem) and error.status_code != 422:
            raise
        return _refused(caller, error, said=_filled_in(form, {}))
    only = "prices.html" if request.headers.get("x-part") == "prices" else "check.html"
    return _page(caller, only, **shown)


@router.post("/audits")
def create(caller: Auditor, request: Request, form: Sent) -> Response:
    """Begin an audit on the counts of the page; where that is refused, show the page again."""
    audits = request.app.state.audits
    try:
        shown = _answers(form, *_sent_along(form), audits)
    except EquipoiseError as error:
        return _refused(caller, error)
    try:
        name = require_name_in_scope(form.word("name"), caller)
        seed = new_seed()
        settings = _settings_of(form, name, seed, shown["past"], shown["question"])
        row = audits.begin(settings, seed, caller)
    except (EquipoiseError, HttpProblem) as error:
        return _refused(caller, error, **shown)
    return RedirectResponse(f"/audits/{quote(row.name, safe='')}", 303)


def _page(caller: Caller, template: str, **more: Any) -> HTMLResponse:
    given: dict[str, Any] = {"cells": None, "problem": None, "proposed": False}
    given |= {"metrics": METRICS, "titles": TITLES, "like_known": LIKE_KNOWN}
    return page(caller, template, **{**given, "said": _filled_in(Form(), {}), **more})


def _refused(caller: Caller, error: Exception, **more: Any) -> HTMLResponse:
    return _page(caller, "check.html", status=422, problem=_for_the_form(str(error)), **more)


def _for_the_form(text: str) -> str:
    """Return a message with the fields' titles in place of what Python and the shell call them.

    Notes and messages may hold what a browser sent, so they are cut before expressions read them.
    """
    text = "\n".join(line[:LINE_LENGTH] for line in text.splitlines()[:LINES_SHOWN])
    text = text.replace("unknown='like_known'", f"“{LIKE_KNOWN}”")
    text = ARGUMENT.sub(lambda found: f"“{TITLES[found[1] or found[2]]}” ", text)
    return FLAGS.sub("", text)


async def _past(form: Form, uploads: Uploads) -> Told:
    """Return past decisions from a table, the example, or the form itself."""
    if form.table is not None:
        for role in COLUMNS:
            if not form.word(role):
                raise InvalidInput(f"which column is the {role}?")
        found = await uploads.read(form.table, options=_reading(form))
        return _history(**found), str(form.table.filename)[:200]
    if form.word("example"):
        lender = await run_in_threadpool(fico_lender)
        return History.from_cells(lender.history().cells), EXAMPLE
    return _sent_along(form)


def _sent_along(form: Form) -> Told:
    """Return the past decisions that the page itself sends back."""
    try:
        cells = json.loads(form.word("cells"))
        past = _history(cells, form.word("notes").splitlines(), form.word("coding"))
    except (TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
        raise InvalidInput("choose a table of past decisions, of 2 to 200 groups, first") from None
    return past, form.word("source")[:200]


def _history(cells: Any, notes: Sequence[str], coding: str | None) -> History:
    """Return past decisions from counts, notes and the JSON of a coding, as a page holds them."""
    said = tuple(map(_for_the_form, notes[:NOTES]))
    past = replace(History.from_cells(read_cells(cells)), notes=said)
    if not coding:
        return past
    read = CODING.validate_json(coding, strict=True)
    if [len(read.columns.get(role, ())) for role in COLUMNS] != [len(read.grouping.labels), 1, 1]:
        raise InvalidInput("'coding' must name the column of each role")
    return replace(past, coding=read)


def _reading(form: Form) -> dict[str, Any]:
    """Return the options of ``History.read`` that the fields say."""

    def several(name: str) -> list[str]:
        return [word.strip() for word in form.word(name).split(BETWEEN) if word.strip()]

    said: dict[str, Any] = {n: form.word(n) for n in (*COLUMNS, *WORDS) if form.word(n)}
    for argument, role in MEANINGS:
        if values := several(f"{argument}_{role}"):
            said.setdefault(argument, {})[role] = values
    if sheet := form.word("sheet"):
        said["table"] = sheet  # the field of this name is the file
    if (most := form.word("max_groups")[:9]).isdecimal():
        said["max_groups"] = int(most)
    return said | {name: several(name) for name in SEVERAL}


def _filled_in(form: Form, proposal: Mapping[str, Any]) -> dict[str, Field]:
    """Return the fields as they were sent, or as a proposal would have them."""
    found = {n: proposal.get(n) for n in (*COLUMNS, *WORDS, *SEVERAL, "sheet")}
    found |= {f"{a}_{role}": proposal.get(a, {}).get(role) for a, role in MEANINGS}
    said = {name: Field(form.word(name)) for name in found}
    for name, given in ((name, given) for name, given in found.items() if given is not None):
        values = given if isinstance(given, list) else [given]
        if any(isinstance(value, Mapping) for value in values):  # one of them is open
            options = [v["choices"] if isinstance(v, Mapping) else [v] for v in values]
            choice = f" {BETWEEN} ".join(" | ".join(map(str, own)) for own in options)
            said[name] = Field(choice=choice)
        else:
            said[name] = Field(f"{BETWEEN} ".join(map(str, values)))
    return said


def _answers(form: Form, past: History, source: str, audits: OpenAudits) -> dict[str, Any]:
    """Return what the page shows of past decisions and of what its form says."""
    cells = past.cells
    inputs.group_names(cells)  # refuses those that no page can show and no audit would take
    limits = [line.strip() for line in form.word("limits").splitlines() if line.strip()]
    assume = Assume.parse([NO_BETTER, *limits] if form.word("no_better") else limits) or None
    gamma, epsilon, delta = (form.number(name, 0.05) for name in ("gamma", "epsilon", "delta"))
    question = Question(form.word("metric", "equalized_odds"), gamma, epsilon, delta)
    costs = Costs(form.number("feature", 0.0), form.number("label", 1.0))
    ratio, runs = form.number("ratio", USUAL_RATIO), TRIAL_RUNS if form.word("trial_runs") else 0
    require_in_unit("ratio", ratio)
    r = denied_rates_by_ratio(cells, ratio)
    with audits.long_work() if runs else nullcontext():
        made = plan(past, question, costs, denied_rate=r, trial_runs=runs)
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
        "plan": made,
        "runs": runs,
        "r": r,
        "form": form,
    }


def _settings_of(form: Form, name: str, seed: str, past: History, question: Question) -> Settings:
    """Return the settings of the audit that the form asks for, or refuse them."""
    decimals = 2 if form.word("cents") else 0
    costs = Costs(
        feature=minor_units("feature", form.word("feature") or "0", decimals),
        label=minor_units("label", form.word("label") or "0", decimals),
    )
    return new_settings(
        name,
        past,
        question,
        costs,
        seed=seed,
        budget=budget_of(form, decimals),
        currency=form.word("currency"),
        decimals=decimals,
        approvals=["budget", "concluded", "corrected"] if form.word("second") else [],
    )
