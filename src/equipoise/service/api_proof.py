"""What proves an audit: its events, checkpoints, verification, export and report."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from equipoise.errors import BadData, LedgerError
from equipoise.ledger import LiveAudit
from equipoise.ledger.writer import stamp
from equipoise.report import Report, to_html, to_markdown
from equipoise.service import models
from equipoise.service.problems import Problem
from equipoise.service.tokens import Mark, TokenStore
from equipoise.service.visit import Auditing, Reading, Visit, problems

__all__ = ["export_of", "new_checkpoint", "new_verification", "report_of", "router"]

router = APIRouter(prefix="/v1/audits/{audit}", responses=problems(), tags=["proof"])

Form = Literal["html", "md", "json"]
MEDIA = {"html": "text/html", "md": "text/markdown", "json": "application/json"}
# A report is a file of its own, with its style inside; nothing in it may run.
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"


@router.get("/events", response_model=models.EventsPage)
async def events(
    visit: Reading,
    after: Annotated[int, Query(ge=0, lt=2**53, description="Those with larger numbers.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> JSONResponse:
    """Return what happened, a page at a time."""

    def look(live: LiveAudit) -> dict[str, object]:
        head = live.checkpoint().seq
        found = list(live.events(after=after, limit=limit))
        return {"events": found, "next": found[-1]["seq"] if found else after, "head": head}

    return JSONResponse(await visit.desk.read(look))


@router.get(
    "/report",
    response_class=Response,
    responses={200: {"content": {media: {} for media in MEDIA.values()}}},
)
async def report(visit: Reading, form: Form = "html") -> Response:
    """Return the report: HTML for people, Markdown, JSON for programs."""
    return await report_of(visit, form)


@router.get(
    "/export",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/jsonl": {}}}},
)
async def export(visit: Reading) -> Response:
    """Return every event as a file that anybody can check."""
    return await export_of(visit)


@router.get("/checkpoints", response_model=models.CheckpointsPage)
async def checkpoints(visit: Reading, request: Request) -> JSONResponse:
    """Return the ends of the chain that were handed out, the latest first."""
    store: TokenStore = request.app.state.store
    uid = visit.desk.row.uid
    marks = await visit.desk.write(lambda: store.marks(uid, "checkpoint"))
    names = models.CheckpointModel.model_fields
    found = [{name: getattr(mark, name) for name in names} for mark in marks]
    return JSONResponse({"checkpoints": found})


@router.post("/checkpoints", response_model=models.CheckpointModel)
async def checkpoint(visit: Reading, request: Request) -> JSONResponse:
    """Hand out the present end of the chain, to keep elsewhere."""
    mark = await new_checkpoint(visit, request.app.state.store)
    names = models.CheckpointModel.model_fields
    return JSONResponse({name: getattr(mark, name) for name in names})


@router.post("/verifications", response_model=models.Verification)
async def verify(visit: Auditing, request: Request) -> JSONResponse:
    """Check chain, money, tables and statistics; takes as long as the audit is long."""
    return JSONResponse(await new_verification(visit, request.app.state.store))


async def report_of(visit: Visit, form: Form) -> Response:
    """Return the report as a download."""

    def made(_: LiveAudit) -> str:
        found: Report = visit.desk.weighing.weigh().report
        if form == "json":
            return found.to_json(indent=2)
        return to_html(found) if form == "html" else to_markdown(found)

    text = await visit.desk.read(made)
    return Response(
        text, media_type=f"{MEDIA[form]}; charset=utf-8", headers=_file(visit, f"report.{form}")
    )


async def export_of(visit: Visit) -> Response:
    """Return the export as a download, a few events at a time: nobody waits for a slow reader."""
    upto = (await visit.desk.read(lambda live: live.checkpoint())).seq
    lines = (f"{line}\n" for line in visit.desk.reader.lines(upto))
    return StreamingResponse(
        lines, media_type="application/jsonl", headers=_file(visit, "export.jsonl")
    )


async def new_checkpoint(visit: Visit, store: TokenStore) -> Mark:
    """Hand out a checkpoint and remember that it was."""

    def make(live: LiveAudit) -> Mark:
        point = live.checkpoint()
        now = stamp(datetime.now(UTC))
        return Mark(point.audit, "checkpoint", point.seq, point.hash, now, visit.caller.name, "")

    mark = await visit.desk.read(make)
    await visit.desk.write(lambda: store.add_mark(mark))
    return mark


async def new_verification(visit: Visit, store: TokenStore) -> dict[str, object]:
    """Verify against every checkpoint that was handed out, and remember what came of it."""
    uid, actor = visit.desk.row.uid, visit.caller.name

    def check() -> dict[str, object]:
        known = [(mark.seq, mark.hash) for mark in store.marks(uid, "checkpoint", 1000)]
        now = stamp(datetime.now(UTC))
        try:
            summary = visit.desk.reader.verify(known)
        except (LedgerError, BadData) as error:
            head = visit.desk.reader.checkpoint()
            store.add_mark(Mark(uid, "broken", head.seq, head.hash, now, actor, str(error)))
            raise Problem("ledger-broken", str(error)) from error
        store.add_mark(Mark(uid, "verified", summary.events, summary.head, now, actor, ""))
        return {
            "events": summary.events,
            "head": summary.head,
            "verdict": summary.verdict,
            "checkpoints": len(known),
        }

    return await visit.desk.in_turn(check)


def _file(visit: Visit, name: str) -> dict[str, str]:
    own = quote(visit.desk.name, safe="")
    return {
        "content-disposition": f"attachment; filename*=UTF-8''{own}-{name}",
        "content-security-policy": REPORT_POLICY,
    }
