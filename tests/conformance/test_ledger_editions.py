"""A ledger names the edition of its statistics; another edition reads it and never misreads it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from equipoise import evidence
from equipoise.errors import ProtocolError
from equipoise.evidence import EDITION
from equipoise.ledger import LiveAudit
from equipoise.ledger.proof import verify_export
from tests.conformance import editions
from tests.conformance.ledgers import create, run

NEXT = EDITION + 1
STORED = Path(editions.__file__).parent
LEDGERS = sorted(STORED.glob("edition-*.db"))


@pytest.fixture
def become(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Make this program one of another edition."""

    def change_edition(edition: int) -> None:
        monkeypatch.setattr(evidence, "EDITION", edition)

    return change_edition


def test_the_present_edition_has_a_ledger_of_its_own() -> None:
    assert STORED / f"edition-{EDITION}.db" in LEDGERS


@pytest.mark.parametrize("edition", [EDITION, NEXT])
@pytest.mark.parametrize("name", ["loans", "adaptive", "compared"])
@pytest.mark.parametrize("stored", LEDGERS, ids=lambda path: path.stem)
def test_a_ledger_is_read_verified_and_continued_under_every_edition(
    stored: Path, name: str, edition: int, ledger: str, become: Callable[[int], None]
) -> None:
    audit = LiveAudit.open(shutil.copy(stored, ledger), name)
    before = audit.status()
    become(edition)
    audit = LiveAudit.open(ledger, name)
    assert (before.people, before.edition) == (40, EDITION)
    assert "anna" in before.actors
    proof = audit.verify()
    assert (proof.seq, proof.edition) == (before.events, before.edition)
    if before.edition != edition:
        assert proof.statistics.startswith("not repeated")
        audit.upgrade("a new release")
    row = audit.people(states=("RESERVED", "OVERDUE"))[0]
    assert audit.tell(str(row.person), 1).state == "REVEALED"
    assert not audit.ask("somebody new", "B", 0).repeated
    assert audit.verify([(before.events, before.head)]).statistics.startswith("repeated")
    assert audit.replay().to_json() == audit.status().to_json()


def test_another_edition_is_named_read_and_not_continued(
    ledger: str, become: Callable[[int], None], tmp_path: Path
) -> None:
    live = create(ledger)
    run(live, 40, share_told=0.7)
    before, head = live.status(), live.export(tmp_path / "a.jsonl")
    waiting = live.people(states=("RESERVED",))[0].person
    become(NEXT)
    again = LiveAudit.open(ledger, "loans")
    for write in (
        lambda: again.ask("new", "A", 0),
        lambda: again.tell(waiting, 1),
        lambda: again.so_far(),
    ):
        with pytest.raises(
            ProtocolError, match=rf"edition {EDITION} .*has edition {NEXT}.*upgrade\(why\)"
        ) as refused:
            write()
        assert refused.value.refusal is not None
        assert refused.value.refusal.code == "other-edition"
    status = again.status()
    assert (status.spent, status.groups, status.events) == (
        *(before.spent, before.groups, before.events),
    )
    assert f"EDITION     {EDITION} of the statistics; this program has {NEXT}" in str(status)
    shown = [again.verify(), verify_export(tmp_path / "a.jsonl", head=head.hash)]
    for one in shown:
        assert (one.edition, one.seq, one.spent) == (EDITION, before.events, before.spent)
        assert one.statistics.startswith(f"not repeated: this program has edition {NEXT}")
        assert f"chain, books and money; statistics (edition {EDITION}) not repeated" in str(one)


def test_chain_and_money_are_checked_under_every_edition(
    ledger: str, become: Callable[[int], None], tmp_path: Path
) -> None:
    live = create(ledger)
    run(live, 40)
    live.export(tmp_path / "a.jsonl")
    become(NEXT)
    text = (tmp_path / "a.jsonl").read_text()
    (tmp_path / "a.jsonl").write_text(text.replace('"cost":5', '"cost":4', 1))
    with pytest.raises(ValueError, match="broken"):
        verify_export(tmp_path / "a.jsonl")


def test_an_upgrade_is_an_event_that_weighs_what_is_recorded_anew(
    ledger: str, become: Callable[[int], None], tmp_path: Path
) -> None:
    live = create(ledger, approvals=("upgraded",), actor="anna")
    run(live, 60, share_told=0.8)
    become(NEXT)
    anna = LiveAudit.open(ledger, "loans", actor="anna")
    number = anna.upgrade("a new release").number
    assert number is not None
    assert anna.acting_as("bert").approve(number).state == "UPGRADED"
    assert anna.upgrade("again").repeated
    done = [event for event in anna.events() if event["type"] == "upgraded"]
    assert [(e["data"]["before"], e["data"]["edition"]) for e in done] == [(EDITION, NEXT)]
    assert not anna.ask("new", "A", 0).repeated
    shown = anna.verify()
    assert (shown.edition, shown.statistics) == (
        *(NEXT, f"repeated, every decision made anew since the upgrade; edition {EDITION} decided "
        "before it"),
    )  # fmt: skip
    assert anna.replay().to_json() == anna.status().to_json()
    become(EDITION)
    with pytest.raises(ProtocolError, match=f"edition {NEXT} of the statistics"):
        LiveAudit.open(ledger, "loans").ask("newer", "A", 0)


def test_a_program_that_is_open_while_another_upgrades_stops(
    ledger: str, become: Callable[[int], None]
) -> None:
    old = create(ledger)
    run(old, 20)
    become(NEXT)
    LiveAudit.open(ledger, "loans").upgrade("a new release")
    become(EDITION)
    with pytest.raises(ProtocolError, match=f"edition {NEXT} of the statistics"):
        old.ask("new", "A", 0)
