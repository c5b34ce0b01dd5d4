"""The rule between features and labels: the paper's separation condition, and no rule at all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.audits.exp_audit import ExpAudit
from equipoise.audits.rs_audit import RSAudit
from equipoise.errors import InvalidInput, UnknownName
from equipoise.mixture import (
    Gaussian,
    HalfSpace,
    StructuralConstants,
    check_assumptions,
    separation_needed,
)
from equipoise.protocol import Want
from equipoise.question import Costs, Question, Verdict
from equipoise.simulation import run, simulate
from equipoise.worlds import CellWorld, MixtureWorld
from equipoise.worlds.mixture import GroupMixture
from tests.profiles import quick

QUESTION = Question(gamma=0.05, epsilon=0.5, delta=0.05)
COSTS = Costs(feature=0.5, label=3.0)
SMALL = {"tau": 2_000, "coarse_tau": 100, "features": 500}


def separated_world(distance: float) -> MixtureWorld:
    """Return laws with the identity as known covariance: theta is the mean."""
    family = Gaussian(np.eye(2))
    mixtures = {}
    for group, q in (("A", 0.6), ("B", 0.4)):
        thetas = family.pack([0.0, 0.0]), family.pack([distance, 0.0])
        mixtures[group] = GroupMixture.of(0.5, q, family, thetas, HalfSpace([0.0, 1.0]))
    return MixtureWorld(mixtures)


FAR = separated_world(8.0)
NEAR = separated_world(3.0)


def test_the_worlds_lie_on_either_side_of_the_condition() -> None:
    for world, problems in ((FAR, 0), (NEAR, 1)):
        for group in world.groups:
            _, found = check_assumptions(world.model, group, epsilon=QUESTION.epsilon, q=0.5)
            assert len(found) == problems


@pytest.mark.parametrize("weights", ["auto", "published"])
def test_separated_laws_are_counted_by_map_and_the_finding_names_the_rule(weights: str) -> None:
    audit = ExpAudit(FAR.past(), QUESTION, COSTS, weights=weights, switch="separation", **SMALL)
    finding = run(audit, FAR, 0)
    assert finding.verdict is Verdict.FAIR
    assert {branch.way for branch in audit.branches.values()} == {"map"}
    assert all(separation.is_met for separation in audit.separations.values())
    text = str(finding)
    assert "decided by the paper's separation condition (1)" in text
    assert "|theta_1 - theta_0| is 8, at least" in text
    assert "separation was not tested" not in text


@pytest.mark.parametrize(
    "weights", quick(["auto"], full=["auto", "map", "likelihood", "published"])
)
def test_a_violated_condition_switches_to_rs_audit_before_features_are_bought(weights: str) -> None:
    audit = ExpAudit(NEAR.past(), QUESTION, COSTS, weights=weights, switch="separation", **SMALL)
    finding = run(audit, NEAR, 0)
    assert isinstance(audit.label_audit, RSAudit)
    assert audit.features == 0
    assert "the separation condition is violated: group 'A': |theta_1 - theta_0|" in finding.reason
    assert any("separation condition (1)" in line for line in finding.assumptions)
    assert audit.fallback_question.delta == QUESTION.delta / 2.0  # either ending may err


def test_the_default_rule_is_named_too() -> None:
    finding = run(ExpAudit(FAR.past(), QUESTION, COSTS, **SMALL), FAR, 0)
    assert any("self-checks of model and weights" in line for line in finding.assumptions)


def test_with_the_rule_the_proofs_number_of_features_is_bought() -> None:
    audit = ExpAudit(FAR.past(), QUESTION, COSTS, switch="separation", coarse_tau=100)
    audit.finish_coarse_phase(dict.fromkeys(FAR.groups, (250, 200)))
    smaller = min(100 / 250, 100 / 200)
    for branch in audit.branches.values():
        assert branch.features == audit.constants.map_features(smaller)


def test_explicit_weights_keep_their_way_after_the_condition() -> None:
    options = {"weights": "likelihood", "switch": "separation", **SMALL}
    audit = ExpAudit(FAR.past(), QUESTION, COSTS, **options)  # type: ignore[arg-type]
    run(audit, FAR, 0)
    assert {branch.way for branch in audit.branches.values()} == {"likelihood"}


def test_given_constants_are_those_of_the_condition() -> None:
    constants = StructuralConstants(kappa=0.5, lam=1.0, lipschitz=9.0, beta=9.0)
    audit = ExpAudit(
        FAR.past(), QUESTION, COSTS, switch="separation", constants=constants, coarse_tau=100
    )
    audit.finish_coarse_phase(dict.fromkeys(FAR.groups, (200, 200)))
    needed = separation_needed(constants, epsilon=QUESTION.epsilon, q=0.5)
    assert {separation.needed for separation in audit.separations.values()} == {needed}
    assert audit.phase == ("features" if needed <= 8.0 else "fallback")


def test_self_checks_only_warn_where_separation_decides() -> None:
    moved = separated_world(8.0)
    wrong = {
        group: (laws[0], replace(laws[1], acceptance=0.9 * laws[1].acceptance))
        for group, laws in moved.model.fits.items()
    }
    model = replace(moved.model, fits=wrong)
    options = {"model": model, **SMALL}
    assert ExpAudit(FAR.past(), QUESTION, COSTS, **options).phase == "fallback"  # type: ignore[arg-type]
    audit = ExpAudit(FAR.past(), QUESTION, COSTS, switch="separation", **options)  # type: ignore[arg-type]
    finding = run(audit, FAR, 0)
    assert finding.warnings
    assert finding.reason.startswith("although the model contradicts itself")


def test_arguments_that_do_not_fit_together_are_refused() -> None:
    past = FAR.past()
    with pytest.raises(UnknownName, match="unknown switch 'separated'"):
        ExpAudit(past, QUESTION, COSTS, switch="separated")
    with pytest.raises(InvalidInput, match="continues as RS-Audit"):
        ExpAudit(past, QUESTION, COSTS, switch="separation", fallback="adaptive")
    with pytest.raises(InvalidInput, match="switch='separation' only"):
        ExpAudit(past, QUESTION, COSTS, constants=StructuralConstants(1.0, 1.0, 1.0))
    with pytest.raises(InvalidInput, match="'constants' must be"):
        ExpAudit(past, QUESTION, COSTS, switch="separation", constants=3)  # type: ignore[arg-type]


# -- Algorithm 2 to the letter --------------------------------------------------------------------


def test_published_counts_denied_people_however_many_come() -> None:
    audit = ExpAudit.published(FAR.past(), QUESTION, COSTS, model=FAR.model, coarse_tau=100)
    people = FAR.draw(4_000, 0)
    n_denied = 0
    for person in people:
        if person.decision == 0:
            n_denied += 1
            ticket = audit.ask(person.group, person.decision)
            if ticket.want is Want.LABEL:
                audit.tell(ticket, person.outcome, person.features)
        if audit.phase == "features":
            break
    assert n_denied > 200  # today's default stops after 32 of them
    assert audit.finding is None
    assert audit.phase == "features"


def test_an_empty_denominator_is_inconclusive() -> None:
    audit = ExpAudit.published(
        FAR.past(), QUESTION, COSTS, model=FAR.model, coarse_tau=100, features=50
    )
    audit.finish_coarse_phase(dict.fromkeys(FAR.groups, (200, 200)))
    for counts in audit.feature_counts.values():
        counts.add(np.zeros((50, 2)))  # all of them look like outcome 0
    audit.finish_feature_phase()
    finding = audit.finding
    assert finding is not None
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "P[f=1 | Y=1] has an empty denominator" in finding.reason
    assert finding.estimate is None


def test_published_does_not_clip_rates() -> None:
    audit = ExpAudit.published(
        FAR.past(), QUESTION, COSTS, model=FAR.model, coarse_tau=100, features=100
    )
    audit.finish_coarse_phase(dict.fromkeys(FAR.groups, (200, 200)))
    for counts in audit.feature_counts.values():
        points = np.zeros((100, 2))
        points[:10, 0] = 8.0  # a tenth of outcome 1, where the true share is 0.4 or 0.6
        counts.add(points)
    audit.finish_feature_phase()
    assert audit.finding is not None
    rates = audit.finding.rates["true_positive_rate"]
    assert rates["A"].estimate == pytest.approx(0.3 / 0.1, rel=0.1)


# -- what users see -------------------------------------------------------------------------------


def test_a_simulation_says_how_many_runs_labels_decided_and_why() -> None:
    sim = simulate("exp", NEAR, QUESTION, COSTS, repeats=4, switch="separation", **SMALL)
    assert (sim.features == 0).all()
    summary = sim.summary()
    assert summary.decided_by_labels == 1.0
    assert "100.0% of the runs were decided by labels" in str(sim)
    assert "because the separation condition is violated" in str(sim)
    by_features = simulate("exp", FAR, QUESTION, COSTS, repeats=2, switch="separation", **SMALL)
    assert by_features.summary().decided_by_labels == 0.0
    assert "by labels" not in str(by_features)
    cells = CellWorld(FAR.cells, FAR.r)
    assert simulate("rs", cells, QUESTION, COSTS, repeats=2).summary().decided_by_labels is None


class Classifier:
    """What scikit-learn users have at hand."""

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        return (X[:, 0] > 0.0).astype(int)


@pytest.mark.parametrize("make", [ExpAudit, ExpAudit.published])
def test_a_classifier_with_data_is_told_how_to_ask(make: type[ExpAudit]) -> None:
    X = np.zeros((4, 2))
    with pytest.raises(InvalidInput, match=r"got Classifier.*PastFeatures\(X, group, decision"):
        make(Classifier(), X, np.zeros(4))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="'history' must be past decisions"):
        RSAudit(Classifier(), X, np.zeros(4))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="'question' must be a Question"):
        make(FAR.past(), X, np.zeros(4))  # type: ignore[arg-type]
