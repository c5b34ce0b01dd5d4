"""What past decisions show of a rule that cannot be asked."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.audits.exp import ExpAudit
from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.history.past import Past
from equipoise.mixture import Gaussian, MixtureModel, learn_classifier, learn_model
from equipoise.question import Costs, Question
from equipoise.simulation import simulate
from equipoise.worlds import MixtureWorld

PEOPLE = np.random.default_rng(0).normal(size=(4_000, 3))
OTHERS = np.random.default_rng(1).normal(size=(20_000, 3))
SLOPE = np.array([1.0, -2.0, 0.5])
RULES = {
    "threshold": lambda X: X[:, 1] >= 0.2,
    "half_space": lambda X: X @ SLOPE >= 0.4,
}


@pytest.mark.parametrize("family", RULES)
def test_the_regions_are_never_wrong_if_the_class_holds(family: str) -> None:
    decide = RULES[family]
    rule = learn_classifier(PEOPLE, decide(PEOPLE), family)
    sure, refused = np.asarray(rule.approves(OTHERS)), np.asarray(rule.denies(OTHERS))
    truth = decide(OTHERS)
    assert not (sure & ~truth).any()
    assert not (refused & truth).any()
    assert rule.contradictions == 0
    assert rule.unsure == pytest.approx((~sure & ~refused).mean(), abs=0.02)
    assert 0.0 < rule.disagreement() < 0.01


def test_more_decisions_leave_less_open() -> None:
    decide = RULES["half_space"]
    few, many = (
        learn_classifier(PEOPLE[:n], decide(PEOPLE[:n]), "half_space").unsure for n in (400, 4_000)
    )
    assert many < few / 3


def test_a_threshold_downwards_and_on_a_score() -> None:
    down = learn_classifier(PEOPLE, PEOPLE[:, 2] <= -0.1)
    assert np.asarray(down.approves(np.array([[0.0, 0.0, -0.2], [0.0, 0.0, 0.1]]))).tolist() == [
        True,
        False,
    ]
    score = PEOPLE[:, 0] * PEOPLE[:, 1]
    rule = learn_classifier(np.column_stack([PEOPLE, score]), score >= 0.1)
    score = OTHERS[:, 0] * OTHERS[:, 1]
    approved = np.asarray(rule.approves(np.column_stack([OTHERS, score])))
    assert approved.any()
    assert not (approved & (score < 0.1)).any()


@pytest.mark.parametrize(
    ("decide", "family", "message"),
    [
        (lambda X: X @ SLOPE >= 0.4, "threshold", "no threshold on one column"),
        (lambda X: (X**2).sum(axis=1) <= 2.0, "half_space", "no half-space explains"),
        (lambda X: np.zeros(len(X), bool), "threshold", "was approved"),
        (lambda X: np.ones(len(X), bool), "half_space", "was denied"),
    ],
)
def test_a_class_that_does_not_hold_is_refused(decide, family: str, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadData, match=message):
        learn_classifier(PEOPLE, decide(PEOPLE), family)


def test_fresh_decisions_can_refuse_the_class() -> None:
    """One exception in a thousand, unseen by the rows that teach: the fresh ones show it."""
    decided = PEOPLE[:, 1] >= 0.2
    taught = ~learn_classifier(PEOPLE, decided).fresh
    odd = np.flatnonzero(~taught & (PEOPLE[:, 1] > 1.0))[:3]
    decided[odd] = False
    rule = learn_classifier(PEOPLE, decided)
    assert rule.contradictions == 3
    group, outcome = np.full(len(PEOPLE), "A"), np.arange(len(PEOPLE)) % 2
    model = learn_model(PEOPLE, group, decided, outcome, "threshold", Gaussian())
    assert "these decisions" in model.problems["A"] or "contradict" in model.problems["A"]
    assert not model.fits


def test_bad_input() -> None:
    decided = PEOPLE[:, 0] > 0
    with pytest.raises(UnknownName, match="unknown classifier family 'tree'"):
        learn_classifier(PEOPLE, decided, "tree")
    with pytest.raises(InvalidInput, match="one entry per row"):
        learn_classifier(PEOPLE, decided[:5])
    with pytest.raises(BadData, match="finite"):
        learn_classifier(np.full((5, 2), np.nan), np.ones(5))
    group, outcome = np.full(len(PEOPLE), "A"), np.arange(len(PEOPLE)) % 2
    for column, value, message in (
        ("decisions", np.where(decided, "yes", "no"), "'decisions' must be 0 or 1"),
        ("decisions", np.where(outcome, np.nan, decided), "'decisions' must be 0 or 1"),
        ("decisions", decided[:-1], "'decisions' must hold one value"),
        ("outcome", np.where(decided & (outcome == 1), np.nan, 0.0), "for everybody approved"),
    ):
        columns = {"decisions": decided, "outcome": outcome, column: value}
        with pytest.raises(InvalidInput, match=message):
            learn_model(PEOPLE, group, rules="threshold", family=Gaussian(), **columns)
    unknown = np.where(decided, outcome, np.nan)
    assert not learn_model(PEOPLE, group, decided, unknown, "threshold", Gaussian()).problems


WORLD = MixtureWorld.synthetic(
    10.0, approval={"1": 0.6, "0": 0.45}, dimension=2, feature_rows=40_000
)
QUESTION = Question(gamma=0.05, epsilon=0.25, delta=0.05)


@pytest.fixture(scope="module")
def past() -> Past:
    return WORLD.past(seed=1)


@pytest.fixture(scope="module")
def learned(past: Past) -> MixtureModel:
    model: MixtureModel = past.features.learned_model("half_space")
    return model


def test_the_model_behind_a_learnt_rule_is_the_one_behind_the_rule(
    past: Past, learned: MixtureModel
) -> None:
    for group in WORLD.groups:
        for mine, known in zip(learned.of(group), past.model.of(group), strict=True):
            gap = np.abs(mine.theta - known.theta) / mine.standard_error
            assert gap.max() < 5.0
            error = np.hypot(mine.acceptance_error, known.acceptance_error)
            assert abs(mine.acceptance - known.acceptance) < 5.0 * error


def test_what_past_decisions_teach_is_free(past: Past, learned: MixtureModel) -> None:
    """The features of past denied people are in the past data: nothing is charged for them."""
    costs = Costs(0.5, 3.0)
    audit = ExpAudit(past, QUESTION, costs, model=learned)
    assert (audit.phase, audit.cost) == ("coarse", 0.0)
    sim = simulate("exp", WORLD, QUESTION, costs, repeats=1, model=learned, seed=1)
    assert not sim.wrong.any()


def test_the_finding_names_the_class(past: Past, learned: MixtureModel) -> None:
    audit = ExpAudit(past, QUESTION, Costs(0.5, 3.0), model=learned, features=2_000)
    tau = audit.coarse_tau
    audit.take_coarse(
        {g: (round(tau / (1.0 - m.q)), round(tau / m.q)) for g, m in WORLD.mixtures.items()}
    )
    for group, mixture in WORLD.mixtures.items():
        counts = audit.counts[group]
        zero, one = mixture.laws
        rng, ones = np.random.default_rng(3), int(2_000 * mixture.q)
        counts.add(zero.family.sample(zero.theta, 2_000 - ones, rng))
        counts.add(one.family.sample(one.theta, ones, rng))
    audit.take_features()
    assert audit.finding is not None
    assert "follows a half-space rule" in "\n".join(audit.finding.assumptions)
