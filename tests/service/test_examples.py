"""The API's description: an example of everything, a page for people, a session that runs."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from pathlib import Path
from typing import Any

import jsonschema_rs

from equipoise.ledger.commands import COMMANDS
from equipoise.service.examples import JSON, operations_of
from equipoise.service.problems import PROBLEM_MEDIA_TYPE, PROBLEM_TYPES
from tests.acceptance.documents import BIN, ROOT
from tests.service.attacking import HOSTILE, log_in
from tests.service.record_examples import record
from tests.support.serving import ASK, Served


def a_free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


def shape_of(value: Any) -> Any:
    """Return the names in an example, whatever its values are."""
    if isinstance(value, dict):
        return {name: shape_of(item) for name, item in sorted(value.items())}
    return [shape_of(item) for item in value] if isinstance(value, list) else None


def test_every_request_and_answer_has_an_example_that_fits_its_schema(served: Served) -> None:
    openapi = served.client().get("/openapi.json").json()
    commands = set()
    kinds = set()
    for operation in operations_of(openapi):
        contents = [operation.description.get("requestBody", {}).get("content", {})]
        contents += [answer["content"] for answer in operation.description["responses"].values()]
        for content in contents:
            for media_type, described in content.items():
                examples = [each["value"] for each in described.get("examples", {}).values()]
                examples += [described["example"]] if "example" in described else []
                assert examples, (operation.method, operation.path, media_type)
                if media_type == PROBLEM_MEDIA_TYPE:
                    kinds.update(each["type"] for each in examples)
                if media_type == JSON and described.get("schema"):
                    schema = {**described["schema"], "components": openapi["components"]}
                    for example in examples:
                        jsonschema_rs.validator_for(schema).validate(example)
                        if isinstance(example, dict) and "commands" in example:
                            commands.add(example["commands"][0]["command"])
    assert commands == set(COMMANDS)
    unsaid = {"method-not-allowed", "internal"}  # which no client can avoid by reading
    assert kinds == {f"urn:equipoise:{kind}" for kind in PROBLEM_TYPES if kind not in unsaid}


def test_the_examples_are_answers_of_this_server(served: Served) -> None:
    """Run ``python -m tests.service.record_examples`` if this fails on purpose."""
    text = (ROOT / "src/equipoise/service/examples.json").read_text(encoding="utf-8")
    recorded = json.loads(json.dumps(record(served)))
    assert shape_of(json.loads(text)) == shape_of(recorded)


def test_readers_see_the_api_as_a_page(served: Served) -> None:
    for role in ("auditor", "approver", "regulator"):
        page = log_in(served, role).get("/docs")
        assert page.status_code == 200
    assert "<code>POST /v1/audits/{audit}/commands</code>" in page.text
    for tag in COMMANDS:
        assert f"&#34;command&#34;: &#34;{tag}&#34;" in page.text
    assert "<script" not in page.text.replace('<script src="/static/dashboard.js" defer>', "")
    assert served.client().get("/docs").headers["location"] == "/login"
    assert served.as_("writer").get("/docs").headers["location"] == "/login"  # no reader


def test_a_writer_learns_what_is_held(served: Served) -> None:
    served.create("held")
    reply = served.result("held", "ask", HOSTILE, role="writer", **ASK)
    assert reply["want"] == "LABEL"
    assert reply["hold"] == 105
    assert (reply["number"], reply["request"], reply["why"]) == (None, None, "")
    reply = served.result("held", "ask", "approved", role="writer", group="B", decision=1)
    assert reply["hold"] == 0


def test_the_session_with_curl_ends_with_a_verdict(tmp_path: Path) -> None:
    guide = (ROOT / "docs/how-to/serve.md").read_text(encoding="utf-8")
    (session,) = re.findall(r"### A session with curl\n.*?```sh\n(.*?)```", guide, re.DOTALL)
    script = session.replace("8100", str(a_free_port()))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f'PATH="{BIN}:$PATH"\n{script}'],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert '"want":"LABEL","hold":100' in done.stdout
    assert '"verdict":"UNFAIR"' in done.stdout
    assert '"kind":"checkpoint"' in done.stdout
    assert '"problem":null' in (tmp_path / "told.json").read_text()
