from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from equipoise.cells import Cells, GroupCells
from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.history.past import Past
from equipoise.mixture import (
    Exponential,
    Gaussian,
    HalfSpace,
    MixtureModel,
    PastFeatures,
    Poisson,
    StructuralConstants,
    check_assumptions,
    known_law,
    separation_needed,
    trunc_est_constants,
)
from equipoise.mixture.families import Array
from equipoise.mixture.model_checks import ModelChecks, SelfCheck
from equipoise.worlds import MixtureWorld

WORLD = MixtureWorld.synthetic(6.0, approval={"1": 0.6, "0": 0.4}, dimension=2)
CUTS = {g: m.accepts for g, m in WORLD.mixtures.items()}


def approved(size: int = 40_000, seed: int = 0) -> tuple[Array, Array, Array]:
    people = WORLD.draw(size, seed)
    keep = people.decision == 1
    assert people.features is not None
    return people.features[keep], np.array(WORLD.groups)[people.group[keep]], people.outcome[keep]


def model_of_approved(
    X: ArrayLike, group: ArrayLike, outcome: ArrayLike, accepts: Any, family: Gaussian
) -> MixtureModel:
    """Fit to approved people, all of them."""
    decision = np.ones(len(np.asarray(X)))
    return PastFeatures(X, group, decision, outcome, accepts, family, held_out=0.0).model


def free_checks(model: MixtureModel, past: Past) -> list[SelfCheck]:
    checks = ModelChecks(model, past, epsilon=0.0)  # nothing is too small to matter
    checks.check_for_free()
    return checks.self_checks


def test_a_model_recovers_the_laws_and_checks_itself() -> None:
    model = model_of_approved(*approved(), CUTS, Gaussian("spherical"))
    for group, mixture in WORLD.mixtures.items():
        for fit, law in zip(model.of(group), mixture.laws, strict=True):
            assert np.all(np.abs(fit.theta - law.theta) < 5.0 * fit.standard_error)
        free = model.free_rates(group)
        assert free == pytest.approx([law.acceptance for law in mixture.laws], abs=0.1)
    assert all(check.passed for check in free_checks(model, WORLD.past()))


def test_the_self_check_of_a_wrong_family_fails() -> None:
    """Cubed features are no Gaussians: the fits say so, and the acceptances do not add up."""
    X, group, outcome = approved(10_000)
    warped = {g: (lambda Z, cut=cut: cut(np.cbrt(Z))) for g, cut in CUTS.items()}
    model = model_of_approved(X**3, group, outcome, warped, Gaussian("full"))
    assert not model.problems
    assert any(fit.plainly_wrong for pair in model.fits.values() for fit in pair)
    assert any("FAILS" in str(check) for check in free_checks(model, WORLD.past()))


def test_sampling_error_of_the_past_enters_the_check() -> None:
    cells = Cells({"1": GroupCells(*(1_000 * s for s in WORLD.cells["1"].shares))})
    (exact,) = free_checks(WORLD.model, Past(cells, exact=True))
    (finite,) = free_checks(WORLD.model, Past(cells))
    assert exact.standard_error == 0.0
    assert finite.standard_error > 0.01
    assert "holds" in str(finite)


def test_a_group_without_a_model_says_why() -> None:
    X, group, outcome = approved(2_000)
    keep = ~((group == "0") & (outcome == 1)) | (np.arange(len(group)) < 20)
    model = model_of_approved(X[keep], group[keep], outcome[keep], CUTS, Gaussian("full"))
    assert "too few" in model.problems["0"]
    with pytest.raises(BadData, match="there is no model of group '0'"):
        model.of("0")
    with pytest.raises(BadData, match="no model of group '7': all approved people"):
        model.of("7")


def test_the_decision_maker_must_be_told_the_group() -> None:
    X, group, outcome = approved(4_000)
    told = model_of_approved(X, group, outcome, lambda Z, g: CUTS[g](Z), Gaussian("spherical"))
    assert set(told.fits) == {"0", "1"}
    with pytest.raises(InvalidInput, match=r"must take \(X, group\)"):
        model_of_approved(X, group, outcome, lambda Z: CUTS["0"](Z), Gaussian())
    with pytest.raises(UnknownName, match="group in 'accepts'"):
        model_of_approved(X, group, outcome, {"1": CUTS["1"]}, Gaussian())
    with pytest.raises(InvalidInput, match="must map groups"):
        model_of_approved(X, group, outcome, 3, Gaussian())
    unaware = model_of_approved(X, group, outcome, lambda Z, g: CUTS["0"](Z), Gaussian())
    assert "does not see the group" in unaware.problems["1"]


def test_columns_of_a_model_must_fit_together() -> None:
    X, group, outcome = approved(4_000)
    with pytest.raises(InvalidInput, match=r"'group' must .* each of the \d+ rows of 'X'"):
        model_of_approved(X, group[:-1], outcome, CUTS, Gaussian())
    with pytest.raises(InvalidInput, match="leave out people of unknown outcome"):
        model_of_approved(X, group, outcome - 1, CUTS, Gaussian())


# -- the theorem's constants ---------------------------------------------------------------------


def test_the_theorems_constants_by_hand() -> None:
    tame = StructuralConstants(kappa=1.0, lam=1.0, lipschitz=1.0, alpha=0.9)
    got = trunc_est_constants(tame, epsilon=0.5, delta=0.1, dimension=2)
    alpha, far = 0.9, 0.25 - 2.0 * np.log(0.9)
    kappa_f = 0.5 * (alpha**2 * np.exp(-6.0 * far**2) / 4.0) ** 2
    lambda_f = np.exp(6.0 * far**2) / alpha**2
    rho2 = 2.0 * (lambda_f + 1.0) + 9.0 * (12.0 * far**2 - 4.0 * np.log(alpha) + 0.25) ** 2
    assert np.exp(got.log_kappa_f) == pytest.approx(kappa_f)
    assert np.exp(got.log_lambda_f) == pytest.approx(lambda_f)
    assert np.exp(2.0 * got.log_rho) == pytest.approx(rho2)
    assert np.exp(got.log_n) == pytest.approx(2.0 * np.log(10.0) / 0.25)
    steps = rho2 / (kappa_f**2 * 0.25) * np.log(far / 0.25)
    assert np.exp(got.log_m) == pytest.approx(steps)
    assert np.exp(got.log_eta) == pytest.approx(kappa_f * 0.25 / (2.0 * rho2))
    assert got.repeats == 30


def test_the_theorems_constants_stay_finite_where_the_numbers_do_not() -> None:
    family = Gaussian("full")
    bounds = family.curvature(family.pack(np.full(5, 2.0), 4.0), radius=0.1)
    constants = StructuralConstants(*bounds, alpha=0.1, degree=2)
    wild = trunc_est_constants(constants, epsilon=0.01, delta=0.01, dimension=20)
    assert 1e3 < wild.log_m < np.inf
    assert "m = 10^" in str(wild)


@pytest.mark.parametrize(
    "wrong", [{"beta": 0.5}, {"beta": np.nan}, {"kappa": 0.0}, {"lam": np.nan}, {"degree": "2"}]
)
def test_constants_that_are_none(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=f"'{next(iter(wrong))}' must be"):
        StructuralConstants(**{"kappa": 1.0, "lam": 1.0, "lipschitz": 1.0, **wrong})


def test_the_separation_condition_asks_for_far_more_than_the_map_oracle_needs() -> None:
    """11 standard deviations with beta = L, which the paper leaves free; 241 with beta = 1."""
    # The synthetic data: variance 4, so theta = mu/4 and Hess W = 4 I; W is Lipschitz with the
    # longest mean, which is about as long as the distance that comes out.
    for length, beta, apart in ((24.0, 24.0, 11.4), (482.0, 1.0, 241.0)):
        bounds = StructuralConstants(1.0, 4.0, length, beta=beta)
        needed = 4.0 / 2.0 * separation_needed(bounds, epsilon=0.1, q=0.7)  # standard deviations
        assert needed == pytest.approx(apart, rel=0.05)
    tame = StructuralConstants(1.0, 1.0, 1.0)
    strict, lax = (separation_needed(tame, epsilon=e, q=0.3) for e in (0.01, 0.1))
    assert strict > lax


def test_assumption_1_is_checked_for_the_constants_that_fits_support() -> None:
    known = Gaussian(4.0 * np.eye(2))
    cut = HalfSpace([0.0, 1.0])
    for apart, holds in ((30.0, True), (4.0, False)):
        laws = tuple(known_law(known, known.pack([m, 0.0]), cut) for m in (0.0, apart))
        c, problems = check_assumptions(MixtureModel({"A": laws}), "A", epsilon=0.1, q=0.3)
        assert (not problems) is holds
        assert c.alpha == pytest.approx(0.5)
        assert (c.kappa, c.lam) == pytest.approx((1.0, 4.0))
        assert c.lipschitz == pytest.approx(apart + 4.0 / c.beta)
    assert "separation: |theta_1 - theta_0| is 1, below" in problems[0]
    # the curvature bounds hold on the balls that beta promises
    family = Gaussian("full")
    full = tuple(known_law(family, family.pack([m, 0.0], 0.5 * np.eye(2)), cut) for m in (0.0, 3.0))
    c, _ = check_assumptions(MixtureModel({"7": full}), 7, epsilon=0.1, q=0.3)
    rng = np.random.default_rng(0)
    for law in full:
        step = rng.normal(size=len(law.theta))
        theta = law.theta + step / np.linalg.norm(step) / c.beta
        t = family.statistics(family.sample(theta, 40_000, rng))
        values = np.linalg.eigvalsh(np.cov(t.T))
        assert c.kappa <= values[0] * 1.1
        assert values[-1] <= c.lam * 1.1
    counts = Poisson()
    laws = tuple(known_law(counts, np.array([t]), lambda X: X[:, 0] >= 1) for t in (0.0, 2.0))
    _, problems = check_assumptions(MixtureModel({"A": laws}), "A", epsilon=0.1, q=0.3)
    assert any("log-concavity is about densities" in line for line in problems)
    # balls that reach theta = 0, which is no law, are halved
    waits = Exponential()
    laws = tuple(known_law(waits, np.array([t]), lambda X: X[:, 0] >= 1) for t in (-0.75, -0.25))
    c, _ = check_assumptions(MixtureModel({"A": laws}), "A", epsilon=0.1, q=0.3)
    assert c.beta >= 8.0


def test_groups_may_be_numbers_and_lists_are_refused_by_name() -> None:
    X, group, outcome = approved(4_000)
    numbers = np.array([int(g) for g in group.tolist()])

    def accepts(Z: Array, a: int) -> Array:
        return np.asarray(CUTS[str(a + 0)](Z))  # a is a number: text could not be added to

    by_number = model_of_approved(X, numbers, outcome, accepts, Gaussian("spherical"))
    by_name = model_of_approved(X, group, outcome, CUTS, Gaussian("spherical"))
    assert set(by_number.fits) == set(by_name.fits) == {"0", "1"}
    assert by_number.of("1")[0].theta == pytest.approx(by_name.of("1")[0].theta, rel=1e-4)
    lists = [[y] * (1 + i % 2) for i, y in enumerate(outcome.tolist())]
    with pytest.raises(InvalidInput, match="'outcome' must hold one value, and no list"):
        model_of_approved(X, group, lists, CUTS, Gaussian())
    with pytest.raises(InvalidInput, match="'group' must hold one value, and no list"):
        model_of_approved(X, [[g] for g in group], outcome, CUTS, Gaussian())


def test_the_fit_does_not_see_what_the_weights_read() -> None:
    people = WORLD.draw(6_000, 5)
    names = np.array(people.groups)[people.group]
    past = PastFeatures(
        people.features, names, people.decision, people.outcome, CUTS, Gaussian("spherical")
    )
    points, _, _, _, taught = past._rows
    for group in WORLD.groups:
        unseen = past.unseen(group)
        assert not set(map(tuple, points[taught])) & set(map(tuple, unseen))
        share = np.mean(names == group)
        assert len(unseen) == pytest.approx(3_000 * share, rel=0.1)
        denied = 1.0 - np.mean(np.asarray(CUTS[group](unseen)))
        truth = WORLD.cells[group].shares[2]
        assert denied == pytest.approx(truth, abs=5.0 * np.sqrt(0.25 / len(unseen)))


def test_half_spaces_are_checked() -> None:
    with pytest.raises(InvalidInput, match="finite non-zero vector"):
        HalfSpace([0.0, 0.0])
