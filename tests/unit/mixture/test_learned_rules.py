"""What past decisions show of a rule that cannot be asked."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from equipoise._arrays import Array
from equipoise.audits.exp_audit import ExpAudit
from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.history.past import Past
from equipoise.mixture import Gaussian, MixtureModel, PastFeatures
from equipoise.mixture.decision_maker import Bits
from equipoise.mixture.learned_rules import LearntRule, learn_rule
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


def learn(X: Array, approved: Bits, kind: str = "threshold") -> LearntRule:
    return learn_rule(X, np.asarray(approved), kind, seed=0)


def unsure(rule: LearntRule) -> float:
    return float((~rule.approves(OTHERS) & ~rule.denies(OTHERS)).mean())


@pytest.mark.parametrize("kind", RULES)
def test_the_regions_are_never_wrong_if_the_class_holds(kind: str) -> None:
    decide = RULES[kind]
    rule = learn(PEOPLE, decide(PEOPLE), kind)
    truth = decide(OTHERS)
    assert not (rule.approves(OTHERS) & ~truth).any()
    assert not (rule.denies(OTHERS) & truth).any()
    said = re.search(r"unsure about ([\d.]+)% of people", rule.description)
    assert said is not None
    assert float(said[1]) / 100.0 == pytest.approx(unsure(rule), abs=0.02)
    assert ", 0 of 2," in rule.description
    assert rule.fresh.mean() == pytest.approx(0.7, abs=0.03)


def test_more_decisions_leave_less_open() -> None:
    decide = RULES["half_space"]
    few, many = (unsure(learn(PEOPLE[:n], decide(PEOPLE[:n]), "half_space")) for n in (400, 4_000))
    assert many < few / 3


def test_a_threshold_downwards_and_on_a_score() -> None:
    down = learn(PEOPLE, PEOPLE[:, 2] <= -0.1)
    two = np.array([[0.0, 0.0, -0.2], [0.0, 0.0, 0.1]])
    assert down.approves(two).tolist() == [True, False]
    score = PEOPLE[:, 0] * PEOPLE[:, 1]
    rule = learn(np.column_stack([PEOPLE, score]), score >= 0.1)
    score = OTHERS[:, 0] * OTHERS[:, 1]
    approved = rule.approves(np.column_stack([OTHERS, score]))
    assert approved.any()
    assert not (approved & (score < 0.1)).any()


@pytest.mark.parametrize(
    ("decide", "kind", "message"),
    [
        (lambda X: X @ SLOPE >= 0.4, "threshold", "no threshold on one column"),
        (lambda X: (X**2).sum(axis=1) <= 2.0, "half_space", "no half-space explains"),
        (lambda X: np.zeros(len(X), bool), "threshold", "was approved"),
        (lambda X: np.ones(len(X), bool), "half_space", "was denied"),
    ],
)
def test_a_class_that_does_not_hold_is_refused(decide, kind: str, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadData, match=message):
        learn(PEOPLE, decide(PEOPLE), kind)


def test_fresh_decisions_can_refuse_the_class() -> None:
    """One exception in a thousand, unseen by the rows that teach: the fresh ones show it."""
    decided = PEOPLE[:, 1] >= 0.2
    odd = np.flatnonzero(learn(PEOPLE, decided).fresh & (PEOPLE[:, 1] > 1.0))[:3]
    decided[odd] = False
    with pytest.raises(BadData, match=r"contradict the class of rules: .* 3 of 2,\d+ fresh"):
        learn(PEOPLE, decided)
    group, outcome = np.full(len(PEOPLE), "A"), np.arange(len(PEOPLE)) % 2
    past = PastFeatures(PEOPLE, group, decided, outcome, "threshold", Gaussian(), held_out=0.0)
    assert "contradict" in past.model.problems["A"]
    assert not past.model.fits


def test_bad_input() -> None:
    decided = PEOPLE[:, 0] > 0
    group, outcome = np.full(len(PEOPLE), "A"), np.arange(len(PEOPLE)) % 2
    past = PastFeatures(PEOPLE, group, decided, outcome, "threshold", Gaussian(), held_out=0.0)
    with pytest.raises(UnknownName, match="unknown class of rules in 'accepts' 'tree'"):
        replace(past, accepts="tree").model  # noqa: B018
    for column, value, message in (
        ("decision", np.where(decided, "yes", "no"), "'decision' must be 0 or 1"),
        ("decision", np.where(outcome, np.nan, decided), "'decision' must be 0 or 1"),
        ("decision", decided[:-1], "'decision' must hold one value"),
        ("outcome", np.where(decided & (outcome == 1), np.nan, 0.0), "for everybody approved"),
        ("held_out", 1.0, r"'held_out' must be in \[0, 1\)"),
    ):
        with pytest.raises(InvalidInput, match=message):
            replace(past, **{column: value}).model  # type: ignore[arg-type]  # noqa: B018
    unknown = np.where(decided, outcome, np.nan)
    assert not replace(past, outcome=unknown).model.problems


WORLD = MixtureWorld.synthetic(
    10.0, approval={"1": 0.6, "0": 0.45}, dimension=2, feature_rows=40_000
)
QUESTION = Question(gamma=0.05, epsilon=0.25, delta=0.05)


@pytest.fixture(scope="module")
def past() -> Past:
    return WORLD.past(seed=1)


@pytest.fixture(scope="module")
def learned(past: Past) -> MixtureModel:
    model: MixtureModel = replace(past.features, accepts="half_space").model
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
    audit.finish_coarse_phase(
        {g: (round(tau / (1.0 - m.q)), round(tau / m.q)) for g, m in WORLD.mixtures.items()}
    )
    for group, mixture in WORLD.mixtures.items():
        counts = audit.feature_counts[group]
        zero, one = mixture.laws
        rng, ones = np.random.default_rng(3), int(2_000 * mixture.q)
        counts.add(zero.family.sample(zero.theta, 2_000 - ones, rng))
        counts.add(one.family.sample(one.theta, ones, rng))
    audit.finish_feature_phase()
    assert audit.finding is not None
    assert "follows a half-space rule" in "\n".join(audit.finding.assumptions)
