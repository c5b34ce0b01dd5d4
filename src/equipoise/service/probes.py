"""Whether the server lives, is ready, and what it counts."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel

from equipoise.service.access import caller_of
from equipoise.service.problems import Problem
from equipoise.service.tokens import READERS
from equipoise.service.visit import problems

__all__ = ["router"]

router = APIRouter(tags=["probes"])


class Alive(BaseModel):
    """All is well."""

    status: Literal["ok"] = "ok"


@router.get("/livez", response_model=Alive)
async def livez() -> JSONResponse:
    """Say that the process answers."""
    return JSONResponse({"status": "ok"})


@router.get("/readyz", response_model=Alive, responses={503: problems()[503]})
async def readyz(request: Request) -> JSONResponse:
    """Say whether the ledger can be written and still holds what was seen of it."""
    desk = request.app.state.desk
    try:
        await desk.in_reader(desk.require_ready)
    except Exception:
        raise Problem("storage-unavailable") from None
    return JSONResponse({"status": "ok"})


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, 401: problems()[401], 403: problems()[403]},
)
async def metrics(request: Request) -> Response:
    """Return what the server counts; a reader's token for every audit is needed."""
    caller = caller_of(request)
    if caller.role not in READERS or caller.audit is not None:
        raise Problem("forbidden")
    text = await request.app.state.desk.in_reader(request.app.state.metrics.text)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
