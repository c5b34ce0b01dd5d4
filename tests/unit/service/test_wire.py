"""The JSON of the API: what is written has the fields that OpenAPI describes, and no secrets."""

from __future__ import annotations

from dataclasses import fields

from equipoise import Want
from equipoise.ledger import Reply
from equipoise.ledger.store import AuditRow
from equipoise.ledger.verify import PersonRecord
from equipoise.service import wire


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
