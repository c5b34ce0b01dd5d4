"""One table of audits, and options that are refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.audits.base import Audit
from equipoise.audits.catalogue import AUDITS, audit_class, check_options, options_of
from equipoise.errors import InvalidInput, UnknownName
from equipoise.ledger import LiveAudit
from equipoise.question import Costs, Question
from equipoise.simulation import simulate
from equipoise.worlds import CellWorld

WORLD = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
WRONG = [
    ("adaptive", {"tau": 500}, r"option of the audit 'adaptive': 'tau'.* have it: baseline, exp"),
    ("adaptive", {"assist": "much"}, "'assist' must be an Assist.*; got 'much'"),
    ("rs", {"tua": 5}, "'tua'. Did you mean 'tau'"),
    ("rs", {"tau": "5"}, "'tau' must be a whole number .*; got '5'"),
    ("rs", {"tau": True}, "'tau' must be a whole number .*; got True"),
    ("rs", {"tau": 0}, "'tau' must be a whole number of at least 1"),
    ("baseline", {"reuse_labels": "yes"}, "'reuse_labels' must be true or false"),
    ("exp", {"weights": 3}, "unknown weights '3'"),
]


@pytest.mark.parametrize("name", AUDITS)
def test_every_reference_leads_somewhere(name: str) -> None:
    assert issubclass(audit_class(name), Audit)
    assert audit_class(name).name == name
    assert "budget" in options_of(audit_class(name))


@pytest.mark.parametrize(("audit", "options", "words"), WRONG)
def test_bad_options_are_refused_by_name_everywhere(
    audit: str, options: dict[str, object], words: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match=words):
        simulate(audit, WORLD, Question(), Costs(), repeats=1, history_size=500, **options)  # type: ignore[arg-type]
    if audit == "exp":  # a Python and simulation audit: no ledger keeps it
        return
    ledger = tmp_path / "ledger.db"
    with pytest.raises(InvalidInput, match=words):
        LiveAudit.create(
            str(ledger), "a", WORLD.past(), Question(), Costs(), audit=audit, options=options
        )
    assert not ledger.exists()


def test_the_ledger_takes_its_budget_by_itself() -> None:
    with pytest.raises(UnknownName, match="'budget' is given by itself here"):
        LiveAudit.create(
            "sqlite://", "a", WORLD.past(), Question(), Costs(), options={"budget": 5.0}
        )


def test_a_class_of_your_own_brings_its_own_options() -> None:
    class Patient(AdaptiveAudit):
        name = "patient"

        def __init__(self, *data: object, patience: int = 3) -> None:
            super().__init__(*data)  # type: ignore[arg-type]
            self.patience = patience

    check_options(Patient, {"patience": 4})
    with pytest.raises(UnknownName, match="option of the audit 'patient': 'assist'"):
        check_options(Patient, {"assist": None})
