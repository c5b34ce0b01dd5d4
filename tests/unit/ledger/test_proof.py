"""A recorded finding is computed again, field by field."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from equipoise.errors import BadData
from equipoise.history import History
from equipoise.ledger import LiveAudit
from equipoise.ledger.proof import verify_export
from equipoise.ledger.verify import GENESIS, canonical, digest
from equipoise.question import Costs, Question


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """An audit whose past data alone show who is treated worse."""
    past = History.from_cells(
        {
            "A": {"approved_positive": 9000, "approved_negative": 500, "denied": 500},
            "B": {"approved_positive": 1000, "approved_negative": 500, "denied": 8500},
        }
    )
    question = Question("demographic_parity")
    live = LiveAudit.create("sqlite://", "loans", past, question, Costs(label=100))
    assert live.finding is not None
    assert live.finding.decided_by is not None
    live.export(tmp_path / "loans.jsonl")
    verify_export(tmp_path / "loans.jsonl")
    return tmp_path / "loans.jsonl"


def forge(export: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the recorded finding and hash the chain anew."""
    lines = []
    previous = GENESIS
    for line in export.read_text().splitlines():
        event = json.loads(line)
        if event["type"] == "verdict":
            change(event["data"]["finding"])
        event["prev"] = previous
        body = canonical(event)
        previous = digest(body)
        lines.append(body + "\n")
    export.write_text("".join(lines))


def change_rate(finding: dict[str, Any]) -> None:
    """Claim another interval of a group's rate."""
    rate = next(iter(finding["rates"].values()))
    rate["B"]["upper"] = rate["B"]["upper"] / 2


def change_question(finding: dict[str, Any]) -> None:
    """Claim that another tolerance was asked about."""
    finding["question"]["gamma"] = 0.2


def change_who(finding: dict[str, Any]) -> None:
    """Claim that the groups were the other way round."""
    by = finding["decided_by"]
    finding["decided_by"] = {name: {"A": "B", "B": "A"}.get(v, v) for name, v in by.items()}


def leave_out_who(finding: dict[str, Any]) -> None:
    """Do not say which groups differ."""
    finding["decided_by"] = None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (change_rate, "rates"),
        (change_question, "question"),
        (change_who, "decided_by"),
        (leave_out_who, "decided_by"),
    ],
)
def test_a_forged_finding_is_found(
    export: Path, change: Callable[[dict[str, Any]], None], field: str
) -> None:
    forge(export, change)
    with pytest.raises(BadData, match=f"records the {field}"):
        verify_export(export)


def test_a_verdict_that_nothing_led_to_is_found(export: Path) -> None:
    forge(export, lambda finding: finding.update(verdict="FAIR"))
    with pytest.raises(BadData, match="records the verdict FAIR"):
        verify_export(export)
