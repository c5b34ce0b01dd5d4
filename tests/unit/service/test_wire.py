"""The JSON of the API: what is written has the fields that OpenAPI describes, and no secrets."""

from __future__ import annotations

from dataclasses import fields

import pytest
from pydantic import TypeAdapter

from equipoise import Want
from equipoise.finding import Finding
from equipoise.ledger import Reply, Status
from equipoise.ledger.commands import COMMANDS
from equipoise.ledger.store import AuditRow
from equipoise.ledger.verify import PersonRecord
from equipoise.planning import Plan
from equipoise.service import wire

FINDING_KEYS = (
    "question verdict lower upper reason estimate rates cost labels features score_only decided_by "
    "guaranteed missing assumptions warnings p_hat q_hat shares currency decimals proof "
    "error_level range_level contradiction"
)
RESULT_KEYS = {
    "Finding": FINDING_KEYS,
    "Check": f"{FINDING_KEYS} approved_only denied_as_failures base_rates",
    "Status": "name audit edition events head time groups cap spent reserved overrun currency "
    "decimals max_in_flight max_in_flight_groups conflicts late erased unscrubbed concluded paused "
    "proposals actors finding taken_back drift left_out waiting question cache_differs_at",
    "Plan": "question costs free cases others recommended advice notes times budget arrivals "
    "requests_before_outcomes obstacle",
    # what is inside of them
    "Arrivals": "per_day first_day last_day",
    "BudgetChance": "budget chances smallest_margin open_cases",
    "CaseTime": "case first_outcomes typical_end earliest_end latest_end",
    "Comparison": "by against direction within leave_out",
    "Costs": "feature label groups",
    "DriftTest": "what group past now people unknown evidence threshold alarm",
    "Forecast": "scenario cost labels people rows trial_runs verdicts",
    "GroupShares": "denied approved_good denied_good",
    "GroupTally": "approved denied states in_flight positive negative spent reserved overrun",
    "Interval": "lower upper estimate",
    "Merge": "name groups cost people",
    "Obstacle": "groups rows denied people_with cost_without people_without merge case leave_out "
    "past_rows rows_needed margin remaining_case",
    "OpenRequests": "requested needed days",
    "OtherAudit": "audit price missing",
    "Price": "labels features cost",
    "Proposal": "number command arguments actor time",
    "Question": "metric gamma epsilon delta delta_wrong_fair delta_wrong_unfair compare",
    "Scenario": "kind r gap expect ratio name",
    "Separation": "rate higher lower",
    "WaitingGroup": "group days has_arrived turned_away",
}
"""Class -> its keys in JSON."""
COMMAND_KEYS = {
    "ask": "key person group decision score price version",
    "tell": "key person outcome",
    "execute": "key person",
    "withdraw": "key person",
    "overdue": "key person",
    "write_off": "key person",
    "correct": "key person outcome why",
    "erase": "key person",
    "conclude": "key why",
    "pause": "key why",
    "resume": "key why",
    "set_budget": "key budget why",
    "set_limits": "key max_in_flight max_in_flight_groups why",
    "set_random_accepts": "key random_accepts corrected why",
    "upgrade": "key why",
    "approve": "key proposal",
    "reject": "key proposal why",
}
"""Tag of a command -> its keys in JSON, beside ``command``."""


@pytest.mark.parametrize("result_class", [Finding, Status, Plan])
def test_results_have_the_keys_that_clients_know(result_class: type) -> None:
    schema = TypeAdapter(result_class).json_schema(mode="serialization")
    schemas = {**schema["$defs"], result_class.__name__: schema}
    keys = {
        name: " ".join(described["properties"])
        for name, described in schemas.items()
        if "properties" in described  # enumerations have none
    }
    assert keys == {name: RESULT_KEYS[name] for name in keys}


def test_commands_have_the_keys_that_clients_know() -> None:
    keys = {
        tag: " ".join(field.name for field in fields(command_class))
        for tag, command_class in COMMANDS.items()
    }
    assert keys == COMMAND_KEYS


def test_rows_are_written_with_the_described_fields_and_without_secrets() -> None:
    record = PersonRecord(
        number=1, group_name="A", decision=0, want="LABEL", state="RESERVED", request=1, hold=100
    )
    written = wire.person_json(record)
    assert list(written) == list(wire.PersonRecord.model_fields)
    assert {field.name for field in fields(record)} - set(written) == {"salt", "who", "place"}
    row = AuditRow(name="loans", seed="00" * 32)
    assert list(wire.audit_json(row)) == list(wire.AuditRow.model_fields)
    assert {field.name for field in fields(row)} - set(wire.audit_json(row)) == {"seed"}


def test_a_reply_is_written_as_a_client_reads_it() -> None:
    reply = Reply("p-17", state="RESERVED", want=Want.LABEL, hold=100, number=3, why="x")
    assert wire.reply_json(reply) == reply.to_dict()
    assert Reply.from_dict(wire.reply_json(reply)) == reply


def test_schemas_keep_their_names_when_classes_are_renamed() -> None:
    described = {
        "components": {"schemas": {"Comparison-Input": {"title": "Comparison"}, "Plan": {}}},
        "paths": [{"$ref": "#/components/schemas/Comparison-Input"}, 1, None],
    }
    assert wire.with_schema_names(described) == {
        "components": {"schemas": {"Compare-Input": {"title": "Compare"}, "Plan": {}}},
        "paths": [{"$ref": "#/components/schemas/Compare-Input"}, 1, None],
    }
