"""``/docs``: the API as a page for people, with an example of every request and answer.

It is made on the server. The pages that web frameworks offer load scripts from elsewhere, which no
page of this server does.
"""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from equipoise.service.access import Reader
from equipoise.service.examples import Operation, operations_of
from equipoise.service.forms import render_page

router = APIRouter(include_in_schema=False)


@router.get("/docs")
def docs(caller: Reader, request: Request) -> HTMLResponse:
    """Show every endpoint, what it takes and what it answers."""
    openapi = request.app.openapi()
    operations = [_describe(operation) for operation in operations_of(openapi)]
    return render_page(caller, "api.html", operations=operations, section="/docs")


def _describe(operation: Operation) -> dict[str, Any]:
    """Return what the page shows of an operation."""
    description = operation.description
    parameters = [
        (parameter["name"], parameter["in"], parameter.get("description", ""))
        for parameter in description.get("parameters", ())
    ]
    examples = []
    # First what is sent, then every answer that is no error. OpenAPI has one example or several.
    for content in description.get("requestBody", {}).get("content", {}).values():
        if "examples" in content:
            named_examples = content["examples"].values()
            examples += [(example["summary"], example["value"]) for example in named_examples]
        else:
            examples.append(("Request", content["example"]))
    for status, answer in description["responses"].items():
        if status.startswith("2"):
            for media_type, content in answer["content"].items():
                examples.append((f"Answer {status}, {media_type}", content["example"]))
    return {
        "method": operation.method,
        "path": operation.path,
        "text": description.get("description", ""),
        "parameters": parameters,
        "examples": [(title, _as_text(value)) for title, value in examples],
        "problems": [status for status in description["responses"] if not status.startswith("2")],
    }


def _as_text(example: object) -> str:
    if isinstance(example, str):
        return example
    return json.dumps(example, indent=2, ensure_ascii=False)
