from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from equipoise.errors import BadData, InvalidInput
from equipoise.mixture import Exponential, Gaussian, HalfSpace
from equipoise.question import Question
from equipoise.worlds import GroupMixture, MixtureWorld


def test_the_synthetic_population_is_the_papers() -> None:
    world = MixtureWorld.synthetic(6.0)
    assert {g: m.share for g, m in world.mixtures.items()} == {"1": 0.7, "0": 0.3}
    assert {g: m.q for g, m in world.mixtures.items()} == {"1": 0.7, "0": 0.4}
    for mixture in world.mixtures.values():
        zero, one = mixture.laws
        assert np.linalg.norm(zero.mean - one.mean) == pytest.approx(6.0)
        assert one.covariance == pytest.approx(4.0 * np.eye(5))
        assert np.abs(one.mean).max() <= 1.0


def test_cells_follow_from_the_laws() -> None:
    world = MixtureWorld.synthetic(3.0, approval={"1": 0.6, "0": 0.3}, tilt=0.7)
    people = world.draw(200_000, 1)
    for i, (group, mixture) in enumerate(world.mixtures.items()):
        rows = people.group == i
        p1, p0, s = world.cells[group].shares
        y, f = people.outcome[rows], people.decision[rows]
        error = 5.0 * np.sqrt(0.25 / rows.sum())
        assert y.mean() == pytest.approx(mixture.q, abs=error)
        assert (y * f).mean() == pytest.approx(p1, abs=error)
        assert ((1 - y) * f).mean() == pytest.approx(p0, abs=error)
        assert y[f == 0].mean() == pytest.approx(world.r[group], abs=2.0 * error)
        assert p1 + p0 + s == pytest.approx(1.0)
    assert people.group.mean() == pytest.approx(0.3, abs=0.01)


def test_a_classifier_across_the_separation_gives_the_rates_asked_for() -> None:
    world = MixtureWorld.synthetic(8.0, approval={"1": 0.75, "0": 0.5})
    assert world.gap("equal_opportunity") == pytest.approx(0.25)
    assert world.gap("predictive_equality") == pytest.approx(0.25)


def test_the_past_brings_a_model() -> None:
    world = MixtureWorld.synthetic(6.0, dimension=2)
    assert world.past().model is world.model
    estimated = replace(world, feature_rows=20_000).past(seed=1)
    assert estimated.exact
    assert estimated.model.of("1")[0].size > 1_000
    finite = world.past(20_000, 1)
    assert not finite.exact
    assert finite.cells.total == 20_000
    assert finite.rows_until(10, Question())[1, "1"] >= 10
    sizes = sum(fit.size for pair in finite.model.fits.values() for fit in pair)
    approved = finite.cells["1"].approved + finite.cells["0"].approved
    assert sizes == pytest.approx(0.5 * approved, rel=0.1)  # the other half is for the weights


def test_other_families_and_fitted_models_make_worlds() -> None:
    family = Exponential()
    cut = HalfSpace([1.0], 0.4)
    mixtures = {
        g: GroupMixture.of(0.5, q, family, (np.array([-2.0]), np.array([-0.5])), cut)
        for g, q in (("A", 0.3), ("B", 0.6))
    }
    world = MixtureWorld(mixtures)
    assert world.cells["A"].shares[0] == pytest.approx(0.3 * np.exp(-0.2))
    fitted = world.past(30_000, 0).model
    again = MixtureWorld(
        {g: GroupMixture(0.5, q, fitted.of(g), cut) for g, q in (("A", 0.3), ("B", 0.6))}
    )
    assert again.gap("equalized_odds") < 0.1
    assert again.draw(10, 0).features is not None


def test_bad_worlds_are_refused() -> None:
    with pytest.raises(InvalidInput, match="approval of group 0"):
        MixtureWorld.synthetic(2.0, approval={"1": 0.5, "0": 1.0})
    with pytest.raises(BadData, match="holds nobody of group"):
        MixtureWorld.synthetic(2.0).past(1, 0)
    family = Gaussian("spherical")
    theta = family.pack([0.0], [[1.0]])
    with pytest.raises(InvalidInput, match="'q' must be in"):
        GroupMixture.of(0.5, 1.0, family, (theta, theta), HalfSpace([1.0]))
