"""Schemathesis over the whole API with every role: no 5xx, nothing that is not documented."""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from rich.table import Table

from tests.support.postgres import in_memory
from tests.support.serving import ASK, Served, serving
from tests.support.tables import table

PATIENCE = 120.0  # seconds; the machine may be busy with other things
ROLES = ("writer", "auditor", "approver", "regulator", "nobody")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--examples", type=int, default=60, help="per operation, mode and role")
    parser.add_argument("--walks", type=int, default=60, help="of the stateful test, per role")


def run(options: argparse.Namespace) -> Table:
    """Fuzz a fresh server with each role; any failure is raised."""
    out = table("Fuzzed requests", "role", "requests", "answers by status")
    for role in ROLES:
        with (
            tempfile.TemporaryDirectory(dir=in_memory()) as directory,
            serving(directory) as served,
        ):
            seen = fuzz(served, role, options.examples)
            walk(served, role, options.walks)
            words = ", ".join(f"{status}: {n:,}" for status, n in sorted(seen.items()))
            out.add_row(role, f"{sum(seen.values()):,}", words)
    return out


def fuzz(served: Served, role: str, examples: int, *, brief: bool = False) -> Counter[int]:
    """Send valid and invalid requests to every operation; return how often each status came.

    An operation without a query or a body has no invalid requests. ``brief`` sends valid ones to
    every second operation and invalid ones to the others.
    """
    import schemathesis
    from schemathesis.checks import positive_data_acceptance
    from schemathesis.generation import GenerationMode

    # Rules that a schema cannot say (printable names, gamma + epsilon) make valid data refused.
    excluded = [positive_data_acceptance]
    seen: Counter[int] = Counter()
    served.create("fuzzed")
    served.send("fuzzed", "ask", "p", **ASK)
    headers = headers_of(served, role)
    schema = schemathesis.openapi.from_url(f"{served.url}/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]
    for at, operation in enumerate(operations):
        valid_only = not list(operation.query) and not list(operation.body)
        modes = [GenerationMode.POSITIVE] if valid_only else list(GenerationMode)
        for mode in [modes[at % len(modes)]] if brief else modes:
            strategy = operation.as_strategy(generation_mode=mode)

            @settings(
                max_examples=examples,
                deadline=None,
                database=None,
                derandomize=True,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=strategy)
            def send(case: Any) -> None:
                name = case.path_parameters.get("audit")
                if isinstance(name, str) and 0 < len(name) <= 200 and hash(str(case.query)) % 4:
                    case.path_parameters["audit"] = "fuzzed"  # else nothing is ever found
                if case.query and case.query.get("trial_runs") not in (None, 0, "0"):
                    case.query["trial_runs"] = 0  # which take seconds, whoever asks for them
                answer = case.call_and_validate(
                    headers=headers, excluded_checks=excluded, timeout=PATIENCE
                )
                seen[answer.status_code] += 1

            send()
    return seen


def walk(served: Served, role: str, walks: int) -> None:
    """Let calls follow each other, each with what the one before gave."""
    import schemathesis
    from schemathesis.checks import positive_data_acceptance

    headers = headers_of(served, role)
    schema = schemathesis.openapi.from_url(f"{served.url}/openapi.json")

    class Walk(schema.as_state_machine()):  # type: ignore[misc]
        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            return {"headers": headers, "timeout": PATIENCE}

        def validate_response(self, response: Any, case: Any, **more: Any) -> None:
            excluded = [positive_data_acceptance]
            case.validate_response(response, excluded_checks=excluded, headers=headers)

    Walk.run(
        settings=settings(
            max_examples=walks, deadline=None, database=None, derandomize=True,
            stateful_step_count=8, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
    )  # fmt: skip


def headers_of(served: Served, role: str) -> dict[str, str]:
    """Return what a client of this role sends."""
    if role == "nobody":
        return {}
    served.as_(role)
    return {"authorization": f"Bearer {served.tokens[f'{role} of all']}"}
