"""``tau="exact"`` at the boundaries of the question: wrong verdicts stay within their level."""

from __future__ import annotations

import math

import numpy as np
import pytest

import equipoise as eq
from equipoise.audits.estimated_rates import paper_tau
from equipoise.finding import Finding
from equipoise.worlds import CellWorld
from tests.profiles import quick

RUNS = quick(1_000, full=20_000)
COSTS = eq.Costs()


def boundary_world(tpr: float, gap: float, groups: int = 2) -> CellWorld:
    """Return groups of which the first has this true positive rate, the others a lower one."""
    shares = {}
    for number in range(groups):
        rate = tpr if number == 0 else tpr - gap
        good = 0.5
        shares[f"g{number}"] = (good * rate, 0.05, 0.95 - good * rate, 0.0)
    with_r = {group: (p1, p0, s, (0.5 - p1) / s) for group, (p1, p0, s, _) in shares.items()}
    return CellWorld.from_shares(with_r)


@pytest.mark.parametrize("audit", ["rs", "baseline"])
@pytest.mark.parametrize("history_size", [None, 400_000])
@pytest.mark.parametrize(("epsilon", "groups"), [(0.2, 2), (0.1, 2), (0.2, 4)])
def test_wrong_verdicts_at_the_boundary(
    audit: str, history_size: int | None, epsilon: float, groups: int
) -> None:
    gamma, delta = 0.1, 0.1
    question = eq.Question("equal_opportunity", gamma=gamma, epsilon=epsilon, delta=delta)
    allowed = delta + 3.0 * math.sqrt(delta * (1.0 - delta) / RUNS)
    for gap, wrong in ((gamma, "UNFAIR"), (gamma + epsilon, "FAIR")):
        world = boundary_world(0.98, gap, groups)
        sim = eq.simulate(
            audit,
            world,
            question,
            COSTS,
            tau="exact",
            repeats=RUNS,
            history_size=history_size,
            seed=5,
        )
        assert (sim.verdict == wrong).mean() <= allowed
        assert (sim.verdict == "INCONCLUSIVE").mean() <= 0.01
        within = (sim.lower <= gap + 1e-12) & (gap - 1e-12 <= sim.upper)
        assert 1.0 - within.mean() <= allowed


def test_it_needs_far_fewer_labels_than_the_printed_threshold() -> None:
    question = eq.Question("equal_opportunity", gamma=0.1, epsilon=0.2)
    world = boundary_world(0.9, 0.1)
    printed = paper_tau(question, 2)
    for size, factor in ((None, 40.0), (400_000, 12.0)):
        audit = eq.RSAudit(world.past(size), question, COSTS, tau="exact")
        assert printed / audit.tau > factor
    history = world.past()
    finding = _finish(eq.RSAudit(history, question, COSTS, tau="exact"), world)
    assert finding.guaranteed
    assert any("smallest threshold" in line for line in finding.assumptions)


def _finish(audit: eq.RSAudit, world: CellWorld) -> Finding:
    rng = np.random.default_rng(1)
    while audit.finding is None:
        for person in world.draw(2_000, rng):
            if audit.finding is not None:
                break
            ticket = audit.ask(person.group, person.decision)
            if ticket.want is eq.Want.LABEL:
                audit.tell(ticket, person.outcome)
    return audit.finding


def test_a_short_past_ends_by_the_free_check_at_half_the_level() -> None:
    """The two endings share delta, so the free check is as strict as at half of it."""
    question = eq.Question("equal_opportunity", gamma=0.05, epsilon=0.05, delta=0.1)
    world = boundary_world(0.95, 0.5)
    history = world.past(3_000, 1)
    exact = eq.BaselineAudit(history, question, COSTS, tau="exact").finding
    half = eq.check(history, eq.Question("equal_opportunity", gamma=0.05, epsilon=0.05, delta=0.05))
    assert exact is not None
    assert exact.verdict == half.verdict
    assert (exact.lower, exact.upper) == pytest.approx((half.lower, half.upper))


@pytest.mark.parametrize("tau", ["Exact", "paper", 0, 1.5, True])
def test_other_thresholds_are_refused(tau: object) -> None:
    world = boundary_world(0.9, 0.1)
    with pytest.raises(eq.errors.InvalidInput, match="'tau' must be a whole number"):
        eq.RSAudit(world.past(), eq.Question("equal_opportunity"), COSTS, tau=tau)  # type: ignore[arg-type]
