"""A ledger of an audit that looks before it asks: what it keeps, repeats, and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise import Costs, LiveAudit, Question, Want
from equipoise.audits.scores import Assist
from equipoise.errors import InvalidInput, LedgerError
from equipoise.ledger.state import AuditState, replay
from equipoise.ledger.verify import Broken, canonical, digest, verify
from equipoise.worlds import CellWorld

WORLD = CellWorld.from_shares({"A": (0.3, 0.2, 0.5, 0.3), "B": (0.3, 0.2, 0.5, 0.36)})
QUESTION = Question("false_omission_parity", gamma=0.05, epsilon=0.1)


def create(ledger: str, **options: Any) -> LiveAudit:
    options.setdefault("options", {"assist": Assist(max_price=400)})
    return LiveAudit.create(ledger, "loans", WORLD.past(), QUESTION, Costs(1, 100), **options)


def come(live: LiveAudit, people: int, seed: int = 0) -> dict[str, int]:
    """Let denied people come and tell those asked, now and then with a correction or a loss."""
    rng, wants = np.random.default_rng(seed), {want.value: 0 for want in Want}
    for n in range(people):
        group, name = "AB"[int(rng.integers(2))], f"p{seed}-{n}"
        outcome = int(rng.random() < WORLD.r[group])
        score, price = float(rng.normal() + 3.0 * outcome), int(rng.integers(50, 400))
        reply = live.ask(name, group, 0, score=score, price=price, version="1")
        wants[reply.want.value] += 1
        if reply.want is Want.LABEL:
            assert reply.hold == 1 + price
            if n % 40 == 7:
                live.withdraw(name)
            else:
                live.tell(name, outcome)
            if n % 40 == 8:
                live.correct(name, 1 - outcome, "typing error")
        elif n % 10 == 9:  # noted, since nobody asked, and wrong
            live.tell(name, outcome)
            live.correct(name, 1 - outcome, "typing error")
    return wants


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, LiveAudit, dict[str, int]]:
    ledger = f"{tmp_path_factory.mktemp('looks')}/ledger.db"
    live = create(ledger, budget=60_000)
    return ledger, live, come(live, 260)


Lived = tuple[str, LiveAudit, dict[str, int]]


def test_people_are_looked_at_and_the_books_agree(lived: Lived) -> None:
    _, live, wants = lived
    assert wants["SCORE_ONLY"] > 20
    status = live.status()
    assert status.states["SCORE_ONLY"] == wants["SCORE_ONLY"]
    assert "people looked at" in str(status)
    live.verify()  # the chain, the books, every decision and the statistics anew


def test_another_program_is_where_this_one_is(lived: Lived) -> None:
    ledger, live, _ = lived
    other = LiveAudit.open(ledger, "loans")
    for n in range(20):
        first = other.ask(f"late{n}", "A", 0, score=float(n % 5), price=60)
        again = live.ask(f"late{n}", "A", 0, score=-9.0, price=399)
        assert (again.want, again.hold, again.request) == (first.want, first.hold, first.request)
        assert again.repeated
    other.verify()


def test_an_export_shows_every_draw(lived: Lived, tmp_path: Path) -> None:
    """With the seed anybody can repeat the draws; a changed one does not pass."""
    _, live, _ = lived
    target = tmp_path / "audit.jsonl"
    live.export(target)
    lines = target.read_bytes().splitlines(keepends=True)
    assert verify(lines).states["SCORE_ONLY"] > 20
    for change in ("draw", "pi", "price", "range"):
        with pytest.raises(Broken):
            verify(forged(lines, change))


def forged(lines: list[bytes], change: str) -> list[bytes]:
    """Return an export in which somebody who was observed was drawn otherwise, chained anew."""
    events, prev, done = [], "", False
    for line in lines:
        event = json.loads(line)
        look = event["data"].get("observation")
        if prev:
            event["prev"] = prev
        if look is not None and event["data"]["want"] == "LABEL" and look["pi"] < 1 and not done:
            wrong = {"draw": 2**53 - 1, "pi": 1e-12, "price": 401, "range": [0.0, 0.5]}
            look[change], done = wrong[change], True
        body = canonical(event)
        prev = digest(body)
        events.append(body.encode() + b"\n")
    assert done
    return events


@pytest.mark.parametrize(
    ("seen", "rule"),
    [
        ({"score": float("inf")}, "'score' must be a finite number"),
        ({"price": 401}, "declared 'max_price', 400"),
        ({"price": 1.5}, "price"),
    ],
)
def test_what_cannot_be_used_leaves_no_trace(lived: Lived, seen: dict[str, Any], rule: str) -> None:
    _, live, _ = lived
    before = live.checkpoint().seq
    with pytest.raises(InvalidInput, match=rule):
        live.ask("stranger", "A", 0, **seen)
    assert live.checkpoint().seq == before


def close_both_groups(ledger: str) -> LiveAudit:
    """Hold so much that no further request at its worst fits the budget."""
    live = LiveAudit.create(
        ledger, "loans", WORLD.past(), QUESTION, Costs(0, 10), budget=250,
        options={"assist": Assist(max_price=100)},
    )  # fmt: skip
    for n, price in enumerate((90, 90, 1, 1)):
        live.ask(f"p{n}", "AB"[n % 2], 0, price=price)
    return live


@pytest.mark.parametrize("corrected", [False, True])
def test_what_the_budget_closed_stays_closed_in_every_program(
    corrected: bool, tmp_path: Path
) -> None:
    ledger = f"{tmp_path}/ledger.db"
    one = close_both_groups(ledger)
    other = LiveAudit.open(ledger, "loans")
    one.tell("p0", 1)  # 90 are free again: enough for a price of 1
    if corrected:
        one.correct("p0", 0, "typing error")
        one.correct("p0", 1, "right the first time")
    for n, live in enumerate((one, other, LiveAudit.open(ledger, "loans"))):
        reply = live.ask(f"late {n}", "A", 0, price=1)
        assert (reply.want, reply.why) == (Want.NOTHING, "budget")
        live.verify()
    one.set_budget(900, "worth it")
    assert other.ask("later", "A", 0, price=1).want is Want.LABEL
    other.verify()


def test_a_verdict_for_want_of_money_lasts(tmp_path: Path) -> None:
    ledger = f"{tmp_path}/ledger.db"
    live = close_both_groups(ledger)
    live.tell("p0", 1)
    live.tell("p1", 1)
    assert live.finding is not None
    assert "what is left does not cover one more request" in live.finding.reason
    again = LiveAudit.open(ledger, "loans")
    assert again.finding == live.finding
    assert again.ask("late", "A", 0, price=1).want is Want.NOTHING
    assert again.finding == live.finding
    again.verify()


def test_a_changed_look_is_named(lived: Lived) -> None:
    live = lived[1]
    events = [json.loads(line) for line in live.lines()]
    at = next(i for i, e in enumerate(events) if e["data"].get("want") == "SCORE_ONLY")
    state = AuditState(strict=True)
    events[at]["data"]["observation"]["m"] += 1e-6
    with pytest.raises(LedgerError, match=rf"event {at + 1} says .* m=.* the audit says .* m="):
        replay([canonical(event) for event in events], state)


def test_people_looked_at_can_be_listed(lived: Lived) -> None:
    live = lived[1]
    assert len(live.people(states=("SCORE_ONLY",))) == live.status().states["SCORE_ONLY"] > 0


def test_a_ledger_s_draws_are_its_own(ledger: str) -> None:
    with pytest.raises(InvalidInput, match="'seed' of 'assist' is the ledger's own"):
        create(ledger, options={"assist": Assist(seed=1)})
    with pytest.raises(InvalidInput, match="'assist' must be an Assist"):
        create(ledger, options={"assist": "yes"})
    plain = create(ledger, options={})
    with pytest.raises(InvalidInput, match="'score' is for audits that look"):
        plain.ask("p", "A", 0, score=0.5)


def test_whoever_is_erased_and_asked_about_again_is_drawn_anew(tmp_path: Path) -> None:
    live = create(str(tmp_path / "ledger.db"))
    for _ in range(2):
        if live.ask("again", "A", 0, score=0.3, price=60).want is Want.LABEL:
            live.tell("again", 1)
        live.erase("again")
    live.export(tmp_path / "events.jsonl")
    lines = (tmp_path / "events.jsonl").read_text(encoding="utf-8").splitlines()
    draws = [draw for line in lines for draw in _draws(json.loads(line))]
    assert len(draws) == len(set(draws)) == 2
    live.verify()


def _draws(value: Any) -> list[int]:
    if isinstance(value, dict):
        own = [value["draw"]] if isinstance(value.get("draw"), int) else []
        return own + [draw for part in value.values() for draw in _draws(part)]
    return [draw for part in value for draw in _draws(part)] if isinstance(value, list) else []
