"""Readings kept in TOML files: written, read again, and overridden by what is said beside them."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import equipoise as eq
from equipoise.cli import app
from equipoise.errors import InvalidInput
from equipoise.history.saved_readings import save_reading
from tests.unit.history.test_problems import LOANS, messy


def test_a_kept_reading_says_what_is_wrong_with_it(tmp_path: Path) -> None:
    kept = tmp_path / "loans.toml"
    (tmp_path / "loans.csv").write_text("race,d,y\nA,1,1\n")
    with pytest.raises(InvalidInput, match=r"cannot read .*No such file"):
        eq.History.read(kept)
    for text, message in {
        "source = ?": "cannot read .*line 1",
        "group = 'race'\ndecision = 'd'\noutcome = 'y'": "'source' as a list must hold one or more",
        "source = 'loans.csv'\ngrup = 'race'": "Did you mean 'group'",
        "source = 'loans.csv'\ngroup = 'race'": "Which column holds the decision",
        "source = 'none.csv'\ngroup = 'race'": "File not found",
    }.items():
        kept.write_text(text)
        with pytest.raises(InvalidInput, match=message):
            eq.History.read(kept)


def test_what_is_kept_is_read_alike_and_what_is_given_goes_first(tmp_path: Path) -> None:
    data = messy().assign(day="2024-01-31")
    data.to_csv(tmp_path / "loans.csv", index=False)
    said: dict[str, Any] = LOANS | {
        "positive": {"decision": "Approved", "outcome": ["Paid"]},
        "negative": {"decision": ["Declined"], "outcome": "Default"},
        "missing_values": ["Withdrawn", "Open"],
        "missing_group": 'not "stated"\\ \N{SNOWMAN}\x7f',
        "unknown": "bounds",
        "undecided": "leave_out",
        "id": "id",
        "date": "day",
        "since": datetime.date(2024, 1, 1),
    }
    kept = tmp_path / "kept.toml"
    save_reading(kept, tmp_path / "loans.csv", said)
    assert eq.History.read(kept) == eq.History.read([str(tmp_path / "loans.csv")], **said)
    assert "Nemo" in eq.History.read(str(kept), missing_group="Nemo").cells.groups
    save_reading(tmp_path / "second.toml", kept, {"missing_group": "Nemo"})
    assert "Nemo" in eq.History.read(tmp_path / "second.toml").cells.groups
    for source, where, message in (
        ("postgresql://me:secret@host/bank", kept, "password"),
        ("loans.csv", tmp_path / "kept.json", r"ending in \.toml"),
        ("loans.csv", tmp_path / "none" / "kept.toml", "cannot write"),
    ):
        with pytest.raises(InvalidInput, match=message):
            save_reading(where, source, said)


def test_what_is_said_beside_a_kept_reading_goes_first_role_by_role(tmp_path: Path) -> None:
    """``--positive COLUMN=VALUE`` knows the kept columns and leaves the other role's value."""
    data = messy().dropna(subset="race").query("decision != 'Withdrawn' and status != 'Open'")
    data.rename(columns={"decision": "ok"}).to_csv(tmp_path / "loans.csv", index=False)
    kept, again = tmp_path / "kept.toml", tmp_path / "again.toml"
    said = LOANS | {"decision": "ok"}
    for positive in ({"ok": "Approved", "status": "Paid"}, ["Approved", "Paid"]):
        save_reading(kept, tmp_path / "loans.csv", {**said, "positive": positive})
        cells = eq.History.read(kept).cells
        turned = eq.History.read(kept, positive={"status": "Default"}).cells
        for group, own in cells.items():
            assert turned[group].approved_positive == own.approved_negative
            assert turned[group].denied == own.denied
        for flag in ("status=Default", "outcome=Default"):
            command = ["check", str(kept), "--positive", flag, "--save", str(again)]
            done = CliRunner().invoke(app, command)
            assert done.exit_code == 0, done.output
            assert eq.History.read(again).cells == turned
    refused = CliRunner().invoke(app, ["check", str(kept), "--positive", "status=Defualt"])
    assert refused.exit_code == 2
    assert "--positive names 'Defualt', which is not a value of column 'status'" in refused.output
