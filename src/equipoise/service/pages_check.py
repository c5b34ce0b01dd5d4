"""A page that reads past decisions, says what they establish, and prices an audit on them.

Nothing is kept: the counts travel with the form.
"""

from __future__ import annotations

import io
import json
import re
import tempfile
import zipfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import ValidationError

from equipoise.assume import NO_BETTER, Assume
from equipoise.cells import Cells
from equipoise.errors import BadData, EquipoiseError, InvalidInput
from equipoise.free_check import Check, check
from equipoise.history import History
from equipoise.ledger import inputs
from equipoise.planning import plan
from equipoise.question import Costs, Question
from equipoise.rates import METRICS
from equipoise.service import models
from equipoise.service.access import Caller, caller_of
from equipoise.service.api_audits import create_audit
from equipoise.service.forecast import USUAL, assumed, forecast
from equipoise.service.pages_base import Form, FormWithTable, Upload, page
from equipoise.service.problems import Problem
from equipoise.service.tokens import Role

__all__ = ["router"]

router = APIRouter(include_in_schema=False)

REHEARSALS = 12
UNPACKED_LIMIT = 256 << 20
SUFFIXES = (".csv", ".parquet", ".xlsx")
EXAMPLE = "an example: the credit scores of 174,047 people"

Fields = dict[str, str]


@dataclass(frozen=True)
class Asked:
    """Everything that the page's form says."""

    cells: Cells
    question: Question
    costs: Costs
    ratio: float
    source: str
    assume: Assume | None = None
    limits: str = ""

    @property
    def text(self) -> str:
        """The counts as they travel with the form."""
        return json.dumps(self.cells.to_dict())


@router.get("/check")
async def begin(request: Request) -> HTMLResponse:
    """Ask for past decisions."""
    _require_reader(request)
    return page(request, "check.html", asked=None, problem=None, metrics=METRICS)


@router.post("/check")
async def look(request: Request, filled: FormWithTable) -> HTMLResponse:
    """Say what past decisions establish and what an audit would cost."""
    caller, desk = _require_reader(request), request.app.state.desk
    form, upload = filled.words, filled.table
    try:
        if upload is not None and upload.name:
            cells, source = await desk.in_reader(lambda: (_read(upload, form), upload.name))
        elif form.get("example"):
            cells, source = await desk.in_reader(lambda: (_example(), EXAMPLE))
        else:
            cells, source = _counts(form), form.get("source", "")[:200]
        asked = _asked(form, cells, source)
        rehearse = bool(form.get("rehearse"))
        work = partial(_answers, asked, rehearse=rehearse)
        shown = await (desk.in_turn(work) if rehearse else desk.in_reader(work))
    except (EquipoiseError, Problem) as error:
        words = _explain(error)
        return page(request, "check.html", status=422, asked=None, problem=words, metrics=METRICS)
    only = "prices.html" if request.headers.get("x-part") == "prices" else "check.html"
    may_create = caller.role is Role.AUDITOR
    return page(
        request, only, asked=asked, problem=None, metrics=METRICS, may_create=may_create, **shown
    )


@router.post("/audits")
async def create(request: Request, form: Form) -> Response:
    """Begin an audit on the counts of the page."""
    caller, desk, name = _require_reader(request), request.app.state.desk, form.get("name", "")
    if caller.role is not Role.AUDITOR or not caller.may_see(name, name):
        raise Problem("forbidden")
    try:
        asked = _asked(form, _counts(form), "")
        wanted = _new_audit(form, asked)
        row = await desk.in_writer(lambda: create_audit(desk, name, wanted, caller.name))
    except (EquipoiseError, ValidationError, Problem) as error:
        words = _explain(error)
        return page(request, "check.html", status=422, asked=None, problem=words, metrics=METRICS)
    return RedirectResponse(f"/audits/{quote(row.name, safe='')}", 303)


def _require_reader(request: Request) -> Caller:
    caller = caller_of(request)
    if caller.role is Role.WRITER:
        raise Problem("forbidden")
    return caller


def _answers(asked: Asked, *, rehearse: bool) -> dict[str, Any]:
    past = History.from_cells(asked.cells)
    free: Check = check(past, asked.question, assume=asked.assume)
    r = assumed(past, asked.ratio)
    made = None
    if rehearse:
        made = plan(past, asked.question, asked.costs, denied_rate=r, audits=REHEARSALS)
    return {
        "free": free,
        "forecast": forecast(past, asked.question, asked.costs, r),
        "plan": made,
        "rehearsals": REHEARSALS,
    }


def _asked(form: Fields, cells: Cells, source: str) -> Asked:
    inputs.group_names(cells)  # those that no page can show and no audit would take
    limits = [line.strip() for line in form.get("limits", "").splitlines() if line.strip()]
    granted = Assume.parse([NO_BETTER, *limits] if form.get("no_better") else limits)
    question = Question(
        form.get("metric", "equalized_odds"),
        _number(form, "gamma", 0.05),
        _number(form, "epsilon", 0.05),
        _number(form, "delta", 0.05),
    )
    costs = Costs(_number(form, "feature", 0.0), _number(form, "label", 1.0))
    ratio = _number(form, "ratio", USUAL)
    if not 0.0 <= ratio <= 1.0:
        raise InvalidInput(f"'ratio' must be in [0, 1]; got {ratio!r}")
    return Asked(cells, question, costs, ratio, source, granted or None, "\n".join(limits))


def _number(form: Fields, name: str, default: float) -> float:
    text = form.get(name, "").strip()
    try:
        return float(text) if text else default
    except ValueError:
        raise InvalidInput(f"{name!r} must be a number; got {text[:40]!r}") from None


def _counts(form: Fields) -> Cells:
    try:
        found = json.loads(form.get("cells", ""))
        checked = {g: models.GroupCounts(**own).model_dump() for g, own in found.items()}
    except (TypeError, ValueError, AttributeError, RecursionError):
        raise InvalidInput("choose a table of past decisions first") from None
    if not 2 <= len(checked) <= 200:
        raise InvalidInput(f"'cells' must hold 2 to 200 groups; got {len(checked)}")
    return Cells.from_dict(checked)


def _read(upload: Upload, form: Fields) -> Cells:
    suffix = Path(upload.name).suffix.lower()
    if suffix not in SUFFIXES:
        raise InvalidInput(f"a table must be one of {', '.join(SUFFIXES)}; got {suffix or 'none'}")
    columns = {role: form.get(role, "").strip() for role in ("group", "decision", "outcome")}
    for role, column in columns.items():
        if not column:
            raise InvalidInput(f"which column is the {role}?")
    positive = form.get("positive", "").strip() or None
    _require_table(upload)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"past{suffix}"
        path.write_bytes(upload.content)
        try:
            return History.read(str(path), positive=positive, **columns).cells  # type: ignore[arg-type]
        except EquipoiseError as error:  # in the reader's words, not with the server's folders
            raise InvalidInput(str(error).replace(str(path), upload.name)) from None


def _require_table(upload: Upload) -> None:
    """Refuse databases in disguise, and archives that are small only while they are packed."""
    start = upload.content[:16]
    if start.startswith(b"SQLite format 3") or start[8:12] == b"DUCK":
        raise InvalidInput(f"a table must be one of {', '.join(SUFFIXES)}; got a database")
    if not upload.name.lower().endswith(".xlsx"):
        return
    try:
        with zipfile.ZipFile(io.BytesIO(upload.content)) as packed:
            size = sum(part.file_size for part in packed.infolist())
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise BadData(f"cannot read the table: {error}") from None
    if size > UNPACKED_LIMIT:  # reading stops at the size that is declared
        raise InvalidInput(f"a table may unpack to at most {UNPACKED_LIMIT:,} bytes; got {size:,}")


def _example() -> Cells:
    from equipoise.worlds.data import fico_lender

    return fico_lender().history().cells


def _new_audit(form: Fields, asked: Asked) -> models.NewAudit:
    whole = {}
    for name in ("feature", "label"):
        price = getattr(asked.costs, name)
        if price != int(price):
            raise InvalidInput(f"{name!r} must be in whole minor units (cents); got {price:g}")
        whole[name] = int(price)
    budget = form.get("budget", "").strip()
    if budget and not re.fullmatch(r"[0-9]{1,19}", budget):
        raise InvalidInput(f"'budget' must be whole minor units, or nothing; got {budget[:40]!r}")
    question = {n: getattr(asked.question, n) for n in models.QuestionModel.model_fields}
    return models.NewAudit(
        past={g: models.GroupCounts(**c) for g, c in asked.cells.to_dict().items()},
        question=models.QuestionModel(**question),
        costs=models.CostsModel(feature=whole["feature"], label=whole["label"]),
        budget=int(budget) if budget else None,
        currency=form.get("currency", "").strip(),
        decimals=2 if form.get("cents") else 0,
        approvals=["budget", "concluded", "corrected"] if form.get("second") else [],
    )


def _explain(error: Exception) -> str:
    if isinstance(error, Problem):
        return error.words or error.title
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error)
