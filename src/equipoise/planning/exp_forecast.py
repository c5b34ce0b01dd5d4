"""Forecast of Exp-Audit: when features are cheap and labels dear, what it costs and assumes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from equipoise.audits.tau_audits import can_answer
from equipoise.bounds import Price, exp_bound, rs_expectation
from equipoise.bounds.theorems import per_arrival, shares_of_outcomes
from equipoise.display import Progress, silent
from equipoise.errors import EquipoiseError
from equipoise.history.past import Past
from equipoise.levels import exp_level
from equipoise.mixture.exp_model import Branch, ExpConstants, choose_branch
from equipoise.mixture.model import MixtureModel
from equipoise.planning.forecast import Forecast
from equipoise.planning.guessing import guess_r, price_range
from equipoise.question import Costs, Question
from equipoise.rates import METRICS
from equipoise.worlds import CellWorld

__all__ = ["exp_expectation", "forecast_exp"]


def forecast_exp(
    history: Past, question: Question, costs: Costs, progress: Progress = silent
) -> Forecast | None:
    """Return Exp-Audit's forecast, None if it cannot answer the metric.

    With a model of the past's features (``history.model``) the way it would take is tested at the
    guess; without one the forecast is that of MAP counts, and the row says what is missing.
    """
    if not can_answer(question, by_features=True) or METRICS[question.metric].is_free:
        return None
    guess = CellWorld(history.cells, guess_r(history.cells))
    model = history.model
    branches = None if model is None else _branches(model, guess, question)
    least, most = price_range(
        lambda r: exp_expectation(CellWorld(history.cells, r), question, costs), guess.r
    )
    price = exp_expectation(guess, question, costs, branches)
    if branches is not None:
        price = min(price, _by_labels(guess, question, costs), key=lambda p: p.cost)
    rival = rs_expectation(guess, question, costs).cost
    assumes = [
        "the features of each outcome in each group follow one exponential family, also where "
        "nobody was approved",
        "the laws of the two outcomes are estimated well enough and far enough apart; the audit "
        "tests this and otherwise goes over to labels, at RS-Audit's price on top",
    ]
    if rival > 0.0 and price.cost < float("inf"):
        assumes.append(
            f"at the guess it costs {price.cost / rival:.2g} times RS-Audit; it pays off where "
            "c_lab P[Y=0|f=0] is several times c_feat"
        )
    missing: tuple[str, ...] = ()
    if model is None:
        missing = ("features of past approved people: fit equipoise.mixture.fit_model to them",)
    elif branches is not None:
        missing = tuple(f"group {g!r}: {b.why}" for g, b in branches.items() if b.way == "fallback")
    return Forecast(
        audit="exp",
        guess=price,
        least=least,
        most=most,
        bound=exp_bound(guess, question, costs),
        guarantees=f"wrong with probability at most {question.strictest:g} if the mixture model "
        "holds (Theorem 4)",
        assumes=tuple(assumes),
        missing=missing,
    )


def exp_expectation(
    world: CellWorld,
    question: Question,
    costs: Costs,
    branches: Mapping[str, Branch] | None = None,
) -> Price:
    """Return the expected price of coarse labels and features.

    ``branches`` say how many features each group takes, MAP counts' if left out; where one of
    them finds no way by features the price is that of labels.

    Examples
    --------
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> print(exp_expectation(world, Question(epsilon=0.1), Costs(feature=0.05)))
    727,524 for 22,143.7 labels and 1.41436e+07 feature vectors
    """
    if branches is not None and any(b.way == "fallback" for b in branches.values()):
        return _by_labels(world, question, costs)
    constants, q = _constants(world, question), shares_of_outcomes(world)
    total = _coarse(world, question, costs)
    for a, (group, price) in enumerate(zip(world.groups, per_arrival(world, costs), strict=True)):
        share = float(q[:, a].sum())
        smaller = float(q[:, a].min()) / share
        if smaller <= 0.0:
            return Price(float("inf"), float("inf"), float("inf"))
        features = constants.map_features(smaller)
        if branches is not None:
            features = branches[group].features
        denied = price.labels / share
        total += Price(features=features * denied, cost=features * denied * costs.of(group).feature)
    return total


def _by_labels(world: CellWorld, question: Question, costs: Costs) -> Price:
    """Return the price of coarse labels and then RS-Audit at half the error probability."""
    half = replace(
        question, delta=exp_level(question), delta_wrong_fair=None, delta_wrong_unfair=None
    )
    return _coarse(world, question, costs) + rs_expectation(world, half, costs)


def _coarse(world: CellWorld, question: Question, costs: Costs) -> Price:
    q, tau = shares_of_outcomes(world), _constants(world, question).coarse_tau
    if q.min() <= 0.0:
        return Price(float("inf"), float("inf"), float("inf"))
    prices = per_arrival(world, costs)
    return sum((float(tau * (1.0 / q[:, a]).sum()) * p for a, p in enumerate(prices)), Price())


def _constants(world: CellWorld, question: Question) -> ExpConstants:
    return ExpConstants(question.epsilon, exp_level(question), len(world.cells))


def _branches(
    model: MixtureModel, guess: CellWorld, question: Question
) -> dict[str, Branch] | None:
    constants, q = _constants(guess, question), shares_of_outcomes(guess)
    found = {}
    for a, group in enumerate(guess.groups):
        share = q[:, a] / q[:, a].sum()
        try:
            fits = model.of(group)
        except EquipoiseError as error:
            found[group] = Branch("fallback", str(error))
            continue
        if share.min() <= 0.0:
            return None
        found[group] = choose_branch(fits, (float(share[0]), float(share[1])), constants)
    return found
