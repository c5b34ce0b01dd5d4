"""Examples in the OpenAPI description: of every command, request and answer.

The answers are those of a real server. ``python -m tests.service.record_examples`` records them in
``examples.json``, and a test compares them with the schemas.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any, NamedTuple

from equipoise.ledger.commands import COMMANDS, EXAMPLES
from equipoise.service.problems import PROBLEM_MEDIA_TYPE, PROBLEM_TYPES, HttpProblem

JSON = "application/json"


def with_examples(openapi: dict[str, Any]) -> dict[str, Any]:
    """Add an example to every request and answer of an OpenAPI description, and return it."""
    recorded = _recorded_answers()
    for operation in operations_of(openapi):
        recorded_example = recorded.get(f"{operation.method} {operation.path}", {})
        request_content = operation.description.get("requestBody", {}).get("content", {})
        if JSON in request_content:
            if operation.path.endswith("/commands"):
                request_content[JSON]["examples"] = _command_examples()
            else:
                request_content[JSON]["example"] = recorded_example["request"]
        for status, answer in operation.description["responses"].items():
            contents = answer["content"]
            if PROBLEM_MEDIA_TYPE in contents:
                # The framework describes the model as plain JSON, which no refusal is.
                schema = contents.pop(JSON)["schema"]
                examples = _problem_examples(int(status))
                contents[PROBLEM_MEDIA_TYPE] = {"schema": schema, "examples": examples}
                continue
            for media_type, content in contents.items():
                content["example"] = recorded_example["answers"][media_type]
    return openapi


class Operation(NamedTuple):
    """One method of one path, as an OpenAPI description has it."""

    method: str
    path: str
    description: dict[str, Any]


def operations_of(openapi: Mapping[str, Any]) -> Iterator[Operation]:
    """Yield every operation of an OpenAPI description."""
    for path, methods in openapi["paths"].items():
        for method, description in methods.items():
            yield Operation(method.upper(), path, description)


def _recorded_answers() -> dict[str, Any]:
    text = resources.files("equipoise.service").joinpath("examples.json").read_text("utf-8")
    recorded: dict[str, Any] = json.loads(text)
    return recorded


def _command_examples() -> dict[str, Any]:
    """Return an example of every command, by its tag."""
    examples = {}
    for tag, command_class in COMMANDS.items():
        command = {"command": tag, **EXAMPLES[tag]}
        summary = (command_class.__doc__ or tag).partition("\n")[0]
        examples[tag] = {"summary": summary, "value": {"commands": [command]}}
    return examples


def _problem_examples(status: int) -> dict[str, Any]:
    """Return the problems of a status, by their type."""
    examples = {}
    for kind, (status_of_kind, title) in PROBLEM_TYPES.items():
        if status_of_kind == status:
            examples[kind] = {"summary": title, "value": HttpProblem(kind).to_dict()}
    return examples
