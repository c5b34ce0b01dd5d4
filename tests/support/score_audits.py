"""Audits that look, at the boundaries: helpful, useless and lying scores, delays and write-offs."""

from __future__ import annotations

import numpy as np

import equipoise as eq
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.audits.scores import Assist
from equipoise.protocol import Ticket, Want
from equipoise.worlds import CellWorld

Run = dict[str, float]

QUESTION = eq.Question("false_omission_parity", gamma=0.05, epsilon=0.25, delta=0.05)
SIDES = {"FAIR": (0.3, 0.3 + QUESTION.gamma), "UNFAIR": (0.2, 0.2 + QUESTION.threshold + 1e-6)}
SCORES = ("helpful", "useless", "lying")
MOST = 1_500  # people who ever come
LATE = "late, any score"
POINTS = [f"{side}, {rest}" for side in SIDES for rest in (*(f"{s} score" for s in SCORES), LATE)]


def score_of(kind: str, outcome: int, labels: int, rng: np.random.Generator) -> float:
    """Return a score: one that helps, one of noise, one that knows and turns its coat.

    The liar tells the truth for 40 labels, then the contrary for 40, and so on.
    """
    if kind == "useless":
        return float(rng.normal())
    if kind == "helpful":
        return float(rng.normal() + 2.0 * outcome)
    turned = (labels // 40) % 2 == 1
    return float((outcome != turned) + 0.01 * rng.normal())


def one(point: str, seed: int, most: int = MOST) -> Run:
    """Run one audit; late: failures show soon, successes late, and a tenth are written off."""
    side, rest = point.split(", ", 1)
    late = rest == LATE
    kind = SCORES[seed % len(SCORES)] if late else rest.removesuffix(" score")
    rng = np.random.default_rng([seed, POINTS.index(point)])
    shares = {g: (0.2, 0.2, 0.6, r) for g, r in zip("AB", SIDES[side], strict=True)}
    world = CellWorld.from_shares(shares)
    audit = AdaptiveAudit(world.past(), QUESTION, eq.Costs(), assist=Assist())
    waiting: list[tuple[int, Ticket, int]] = []
    for now in range(most):
        if audit.finding is not None:
            break
        group = "AB"[int(rng.integers(2))]
        outcome = int(rng.random() < world.r[group])
        seen = score_of(kind, outcome, audit.labels, rng)
        ticket = audit.ask(group, 0, score=seen, draw=float(rng.random()))
        if ticket.want is Want.LABEL:
            wait = int(rng.geometric(0.05 if outcome else 0.5)) if late else 0
            waiting.append((now + wait, ticket, outcome))
        for due in [x for x in waiting if x[0] <= now]:
            waiting.remove(due)
            if audit.finding is None:
                _settle(audit, due[1], due[2], lost=late and rng.random() < 0.1)
    for _, ticket, outcome in waiting:
        if audit.finding is None:
            _settle(audit, ticket, outcome, lost=False)
    verdict = audit.conclude().verdict
    inconclusive = verdict is eq.Verdict.INCONCLUSIVE
    right = QUESTION.truth(abs(world.r["A"] - world.r["B"]) - 1e-12 * (side == "FAIR"))
    return {"wrong": float(not inconclusive and verdict not in right), "none": float(inconclusive)}


def _settle(audit: AdaptiveAudit, ticket: Ticket, outcome: int, *, lost: bool) -> None:
    if lost:
        audit.withdraw(ticket)
    else:
        audit.tell(ticket, outcome)
