"""Every audit lives in the ledger: asked and told late, reopened, replayed, verified."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from equipoise.ledger import LiveAudit
from equipoise.ledger.commands import Correct
from equipoise.ledger.proof import verify_export
from equipoise.protocol import Want
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld
from tests.profiles import quick

CELLS = CellWorld.from_shares({"A": (0.45, 0.15, 0.40, 0.5), "B": (0.15, 0.15, 0.70, 0.3)})
CASES: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "adaptive": ("adaptive", CELLS, {}),
    "rs": ("rs", CELLS, {"tau": 20}),
    "baseline": ("baseline", CELLS, {"tau": 20}),
}


def begin(ledger: str, case: str, **more: Any) -> LiveAudit:
    audit, world, options = CASES[case]
    question = Question("equal_opportunity", gamma=0.1, epsilon=0.2, delta=0.1)
    costs = Costs(feature=5, label=100)
    return LiveAudit.create(
        ledger, case, world.past(3000, 0), question, costs, audit=audit, options=options, **more
    )


@pytest.mark.parametrize("case", CASES)
def test_an_audit_survives_delays_and_restarts(ledger: str, case: str, tmp_path: Path) -> None:
    live = begin(ledger, case, max_in_flight=30)
    world = CASES[case][1]
    rng = random.Random(0)
    waiting: list[tuple[str, int]] = []
    for number, person in enumerate(world.draw(400, 1)):
        if number % 130 == 129:
            live.close_ledger()
            live = LiveAudit.open(ledger, case)
        reply = live.ask(f"p{number}", person.group, person.decision)
        if reply.want is not Want.NOTHING:
            waiting.append((reply.person, person.outcome))
        while len(waiting) > 20 or (waiting and rng.random() < 0.5):
            live.tell(*waiting.pop(rng.randrange(len(waiting))))
        if reply.why == "decided":
            break
    live.verify()
    assert live.replay().to_json() == live.status().to_json()
    checkpoint = live.export(tmp_path / "export.jsonl")
    proof = verify_export(tmp_path / "export.jsonl", head=checkpoint.hash)
    assert proof.seq == checkpoint.seq
    assert proof.statistics == "repeated, every decision made anew"


@pytest.mark.parametrize("case", ["adaptive", "rs"])
def test_the_verdict_does_not_depend_on_the_order_of_outcomes(ledger: str, case: str) -> None:
    rng, found = random.Random(1), set()
    people = [(f"p{i}", p.group, p.decision, p.outcome) for i, p in enumerate(CELLS.draw(600, 2))]
    for attempt in range(2):
        audit, _, options = CASES[case]
        question = Question("equal_opportunity", gamma=0.1, epsilon=0.2, delta=0.1)
        live = LiveAudit.create(
            ledger,
            f"{case} {attempt}",
            CELLS.past(quick(None, full=3000), 0),
            question,
            Costs(label=1),
            audit=audit,
            options=options,
        )
        replies = live.ask_many([row[:3] for row in people])
        asked = {reply.person for reply in replies if reply.want is Want.LABEL}
        messages = [(person, y) for person, _, _, y in people if person in asked]
        messages += rng.choices(messages, k=50)
        rng.shuffle(messages)
        live.tell_many(messages)
        finding = live.so_far()
        found.add(finding.verdict)  # which may come before all outcomes are told
        live.verify()
    assert len(found) == 1


@pytest.mark.parametrize("case", CASES)
def test_corrections_are_survived_by_every_audit(case: str) -> None:
    live, world = begin("sqlite://", case), CASES[case][1]
    for number, person in enumerate(world.draw(300, 1)):
        reply = live.ask(f"p{number}", person.group, person.decision)
        if reply.want is not Want.NOTHING:
            live.tell(reply.person, person.outcome)
    known = live.people(states=("REVEALED",))
    wrong = [Correct(row.person, 1 - row.outcome, "swapped") for row in known[::4]]
    assert not any(reply.problem for reply in live.run(wrong))
    live.verify()
    for number, person in enumerate(world.draw(100, 2)):
        reply = live.ask(f"later {number}", person.group, person.decision)
        if reply.want is not Want.NOTHING:
            live.tell(reply.person, person.outcome)
    live.verify()
