"""What the recovered parameters are good for (remark after Algorithm 2).

First the Bayes classifier: how much more it errs than the best one, as epsilon shrinks. Then the
frontier between fairness and accuracy, held against the frontier of the true laws.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame
from scipy.special import expit, ndtr

from equipoise.mixture import (
    BayesClassifier,
    FairnessAccuracyCurve,
    PastFeatures,
    fairness_accuracy_curve,
    likelihood_weight,
)
from equipoise.mixture.decision_maker import sobol
from equipoise.mixture.fairness_accuracy import RATE_DRAWS
from equipoise.worlds.mixture import MixtureWorld
from paper.page import Chapter, Claim, Settings, holds, number, where
from paper.pictures import legend_below, new_figure, to_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILONS = (0.5, 0.25, 0.1, 0.05)
ROWS_TIMES_EPSILON_SQUARED = 1_000  # past rows, half of which teach the laws: 400,000 at 0.05
EXCESS_POINTS = 2**16  # per law and group, on which two classifiers are compared
DEVIATION = 2.0  # of every feature in the synthetic population
SEPARATIONS = {"2 standard deviations": 2.0 * DEVIATION, "the paper's 4.65": 4.65 * DEVIATION}
METRICS = ("equal_opportunity", "equalized_odds")
TOLERANCES = np.arange(0.01, 0.201, 0.01)
FRONTIER_PAST_ROWS = 200_000  # the paper's synthetic past
AUDITED_APPROVAL = {"1": 0.9, "0": 0.8}  # of outcome 1, by the audited classifier
AUDITED_TILT = 1.0  # radians: pi/2 would tell the outcomes apart best
EXACT_THRESHOLDS = 1_500  # per group, of the exact frontier
COLOURS = ("#0072B2", "#D55E00")
EXACT_COLOUR = "#009E73"

Floats = NDArray[np.float64]


def run(settings: Settings) -> Chapter:
    """Measure the excess error over epsilon, and the frontier against the exact one."""
    repeats = 2 if settings.quick else 20
    epsilons = EPSILONS[:2] if settings.quick else EPSILONS
    errors = _excess_errors(epsilons, repeats, settings.seed)
    slopes = _slopes(errors)
    world = MixtureWorld.synthetic(
        SEPARATIONS["2 standard deviations"],
        approval=AUDITED_APPROVAL,
        tilt=AUDITED_TILT,
        seed=settings.seed,
    )
    curves = {metric: _curves(world, metric, settings.seed) for metric in METRICS}
    frontier = _compare_frontiers(world, curves)
    audited = _audited(world, curves)
    return Chapter(
        "The recovered parameters: Bayes classifier and frontier",
        WORDS,
        facts={
            "repeats": repeats,
            "seed": settings.seed,
            "rows": ROWS_TIMES_EPSILON_SQUARED,
            "past": FRONTIER_PAST_ROWS,
            "largest": float(errors.excess_over_epsilon.max()),
            "slopes": ", ".join(f"{slope:.2g} (means at {name})" for name, slope in slopes.items()),
            "faster": FASTER if min(slopes.values()) > 1.5 else "",
            "points": RATE_DRAWS,
            "known_off": float(frontier.known_laws_off.abs().max()),
            "fitted_off": float(frontier.fitted_laws_off.abs().max()),
            "three_errors": float(frontier.three_standard_errors.max()),
            "audited": audited,
        },
        tables={
            "errors": errors,
            "frontier": frontier[frontier.index % 5 == 4],  # every fifth gap
            "all-frontiers": frontier,
            "audited": audited,
        },
        pictures={
            "errors": to_svg(partial(_draw_errors, errors)),
            "frontier": to_svg(partial(_draw_frontiers, world, curves)),
        },
        claims=_claims(errors, frontier),
    )


# -- the Bayes classifier --------------------------------------------------------------------------


def recover(past: PastFeatures, groups: tuple[str, ...]) -> BayesClassifier:
    """Return the classifier of fitted laws, with weights from features that the fit did not see."""
    model = past.model
    weights = {group: likelihood_weight(past.unseen(group), model.of(group)) for group in groups}
    return BayesClassifier(model, weights)


def best_classifier(world: MixtureWorld) -> BayesClassifier:
    """Return the classifier that knows the true laws and weights."""
    return BayesClassifier(world.model, {g: mixture.q for g, mixture in world.mixtures.items()})


def excess_error(
    recovered: BayesClassifier, best: BayesClassifier, shares: Mapping[str, float]
) -> float:
    """Return how much more often a classifier errs than the best one, on points that fill the laws.

    It is ``E |2 P[Y=1 | x] - 1|`` over the people on whom the two disagree. The difference of two
    error rates is the same, and far less precise: each person on whom they disagree would count
    fully, also where both outcomes are nearly as likely.
    """
    total = 0.0
    for group, q in best.weights.items():
        for law, law_share in zip(best.model.of(group), (1.0 - q, q), strict=True):
            uniforms = sobol(law.family.dimension(law.theta), EXCESS_POINTS, seed=0)
            points = law.family.from_uniforms(law.theta, uniforms)
            log_odds = best.log_odds(points, group)
            disagree = (log_odds >= 0.0) != (recovered.log_odds(points, group) >= 0.0)
            regret = np.abs(2.0 * expit(log_odds) - 1.0) * disagree
            total += shares[group] * law_share * float(regret.mean())
    return total


def _excess_errors(epsilons: tuple[float, ...], repeats: int, seed: int) -> DataFrame:
    rows = []
    for (name, separation), epsilon in product(SEPARATIONS.items(), epsilons):
        n_rows = math.ceil(ROWS_TIMES_EPSILON_SQUARED / epsilon**2)
        world = replace(MixtureWorld.synthetic(separation, seed=seed), feature_rows=n_rows)
        best = best_classifier(world)
        shares = {group: mixture.share for group, mixture in world.mixtures.items()}
        least_error = best.error_rate(group_shares=shares)
        excess = []
        distances = []
        for repeat in range(repeats):
            past = world.past(None, np.random.default_rng([seed, repeat])).features
            recovered = recover(past, world.groups)
            excess.append(excess_error(recovered, best, shares))
            distances.append(_largest_distance(recovered, best))
        rows.append(
            {
                "separation": name,
                "epsilon": epsilon,
                "past_rows": n_rows,
                "parameters_off": float(np.mean(distances)),
                "Bayes_error": least_error,
                "excess": float(np.mean(excess)),
                "excess_sd": float(np.std(excess, ddof=1)),
                "excess_over_epsilon": float(np.mean(excess)) / epsilon,
            }
        )
    return DataFrame(rows)


def _largest_distance(recovered: BayesClassifier, best: BayesClassifier) -> float:
    """Return the largest distance of a recovered theta or q from the true one."""
    distances = []
    for group, q in best.weights.items():
        distances.append(abs(recovered.weights[group] - q))
        pairs = zip(recovered.model.of(group), best.model.of(group), strict=True)
        distances += [float(np.linalg.norm(fit.theta - law.theta)) for fit, law in pairs]
    return max(distances)


def _slopes(errors: DataFrame) -> dict[str, float]:
    """Return the power of epsilon with which the excess error falls, per separation."""
    slopes = {}
    for name in SEPARATIONS:
        rows = where(errors, separation=name).query("excess > 0")
        slopes[name] = float(np.polyfit(np.log(rows.epsilon), np.log(rows.excess), 1)[0])
    return slopes


# -- the frontier ----------------------------------------------------------------------------------


def _curves(world: MixtureWorld, metric: str, seed: int) -> dict[str, FairnessAccuracyCurve]:
    """Return the package's curve with the true laws, and with laws and weights from a past."""
    shares = {group: mixture.share for group, mixture in world.mixtures.items()}
    best = best_classifier(world)
    past = replace(world, feature_rows=FRONTIER_PAST_ROWS).past(None, seed).features
    recovered = recover(past, world.groups)
    return {
        "known": fairness_accuracy_curve(best.model, best.weights, metric, group_shares=shares),
        "fitted": fairness_accuracy_curve(
            recovered.model, recovered.weights, metric, group_shares=shares
        ),
    }


def exact_frontier(world: MixtureWorld, metric: str, tolerances: Floats) -> Floats:
    """Return the best accuracy for each gap allowed, by formulas and by trying all thresholds.

    Two Gaussians of one covariance at Mahalanobis distance D: the log ratio of a person is normal
    with mean ± D²/2 and variance D². Only for two groups.
    """
    rates = []
    accuracies = []
    for mixture in world.mixtures.values():
        law_zero, law_one = mixture.laws
        distance = float(np.linalg.norm(law_one.mean - law_zero.mean)) / DEVIATION
        cuts = distance * np.linspace(-8.0, 8.0, EXACT_THRESHOLDS)
        bayes_cut = math.log((1.0 - mixture.q) / mixture.q)
        cuts = np.sort(np.append(cuts, bayes_cut))
        tpr = ndtr((distance**2 / 2.0 - cuts) / distance)
        fpr = ndtr((-(distance**2) / 2.0 - cuts) / distance)
        rates.append(tpr[None] if metric == "equal_opportunity" else np.stack([tpr, fpr]))
        accuracies.append(mixture.share * (mixture.q * tpr + (1.0 - mixture.q) * (1.0 - fpr)))
    # axes: rate, threshold of the first group, threshold of the second group
    gaps = np.abs(rates[0][:, :, None] - rates[1][:, None, :]).max(axis=0)
    accuracy = accuracies[0][:, None] + accuracies[1][None, :]
    return np.array([accuracy[gaps <= tolerance].max() for tolerance in tolerances])


def _compare_frontiers(
    world: MixtureWorld, curves: dict[str, dict[str, FairnessAccuracyCurve]]
) -> DataFrame:
    rows = []
    for metric, by_laws in curves.items():
        exact = exact_frontier(world, metric, TOLERANCES)
        for tolerance, accuracy in zip(TOLERANCES, exact, strict=True):
            known = by_laws["known"].best_accuracy(tolerance)
            fitted = by_laws["fitted"].best_accuracy(tolerance)
            rows.append(
                {
                    "metric": metric.replace("_", " "),
                    "gap_allowed": tolerance,
                    "exact": accuracy,
                    "known_laws": known,
                    "known_laws_off": known - accuracy,
                    "fitted_laws": fitted,
                    "fitted_laws_off": fitted - accuracy,
                    "three_standard_errors": 3.0
                    * math.sqrt(accuracy * (1.0 - accuracy) / RATE_DRAWS),
                }
            )
    return DataFrame(rows)


def _audited(world: MixtureWorld, curves: dict[str, dict[str, FairnessAccuracyCurve]]) -> DataFrame:
    """Return gap and accuracy of the audited classifier: true, by known and by fitted laws."""
    rows = []
    true_accuracy = 0.0
    for group, mixture in world.mixtures.items():
        approved_good, _, denied = world.cells[group].shares
        true_accuracy += mixture.share * (approved_good + denied * (1.0 - world.r[group]))
    for metric, by_laws in curves.items():
        rows.append(
            {
                "metric": metric.replace("_", " "),
                "true_gap": world.gap(metric),
                "gap_by_fitted_laws": by_laws["fitted"].audited.gap,
                "true_accuracy": true_accuracy,
                "accuracy_by_fitted_laws": by_laws["fitted"].audited.accuracy,
                "best_accuracy_at_its_gap": by_laws["known"].best_accuracy(
                    by_laws["known"].audited.gap
                ),
            }
        )
    return DataFrame(rows)


# -- pictures, claims and words --------------------------------------------------------------------


def _draw_errors(errors: DataFrame) -> Figure:
    figure, panels = new_figure(1, 1, width=6.5, height=4.0)
    axes = panels[0][0]
    for (name, colour), marker in zip(
        zip(SEPARATIONS, COLOURS, strict=True), ("o", "s"), strict=True
    ):
        rows = where(errors, separation=name)
        label = f"excess error, means {name} apart"
        if name.startswith("the"):
            label = "excess error, the paper's 4.65 standard deviations"
        axes.errorbar(
            rows.epsilon, rows.excess, yerr=rows.excess_sd, color=colour, marker=marker,
            capsize=3, label=label,
        )  # fmt: skip
    axes.plot(EPSILONS, EPSILONS, color=EXACT_COLOUR, ls="--", label="epsilon")
    axes.set(xscale="log", yscale="log", xlabel="epsilon (log scale)")
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.set_ylabel("excess error (log scale)")
    legend_below(figure, columns=1)
    return figure


def _draw_frontiers(
    world: MixtureWorld, curves: dict[str, dict[str, FairnessAccuracyCurve]]
) -> Figure:
    figure, panels = new_figure(1, 2, height=3.8)
    fine = np.linspace(0.005, 0.2, 79)
    for axes, (metric, by_laws) in zip(panels[0], curves.items(), strict=True):
        exact = exact_frontier(world, metric, fine)
        axes.plot(100.0 * fine, 100.0 * exact, color=EXACT_COLOUR, lw=2.5, label="exact frontier")
        fitted = by_laws["fitted"]
        shown = fitted.gap <= 0.2
        axes.step(
            100.0 * fitted.gap[shown], 100.0 * fitted.accuracy[shown], where="post",
            color=COLOURS[0], ls="--", label="frontier by recovered parameters",
        )  # fmt: skip
        audited = fitted.audited
        axes.plot(
            100.0 * audited.gap, 100.0 * audited.accuracy, "o", color=COLOURS[1],
            label="audited classifier, by recovered parameters",
        )  # fmt: skip
        axes.set_title(metric.replace("_", " "), loc="left")
        lowest = min(audited.accuracy, float(exact.min()))
        axes.set_ylim(100.0 * lowest - 1.0, 100.0 * float(exact.max()) + 1.0)
        axes.set_xlabel("gap between the groups, percentage points")
        axes.set_ylabel("accuracy over everybody, %")
    legend_below(figure, columns=2)
    return figure


def _claims(errors: DataFrame, frontier: DataFrame) -> list[Claim]:
    largest = float(errors.excess_over_epsilon.max())
    is_bounded = largest < 1.0
    off = float(frontier.known_laws_off.abs().max())
    off_with_fitted_laws = float(frontier.fitted_laws_off.abs().max())
    allowed = float(frontier.three_standard_errors.max())
    return [
        Claim(
            "Remark 4",
            "the recovered parameters give a classifier within O(epsilon) of the Bayes error",
            "O(epsilon)",
            f"excess at most {number(largest, 2)} times epsilon, at epsilon = "
            f"{', '.join(f'{e:g}' for e in sorted(set(errors.epsilon), reverse=True))}",
            holds(is_bounded),
        ),
        Claim(
            "Remark 4",
            "fairness and accuracy can be traded off by the recovered parameters",
            "no number",
            f"frontier within {number(off, 2)} of the exact one with the true laws (three standard "
            f"errors {number(allowed, 2)}), within {number(off_with_fitted_laws, 2)} with fitted "
            "laws",
            holds(off <= allowed),
        ),
    ]


FASTER = (
    ": faster than the remark says, because at the best classifier a small error of the parameters "
    "changes the error rate to second order only"
)

WORDS = """
Section 5, remark on the recovered parameters. The paper gives no experiment for it.

**Bayes classifier.** The synthetic population with means 2 and 4.65 standard deviations apart. For
each epsilon the past has {{ rows | n }}/epsilon² rows. Half of them teach the laws, and the
features of the other half give the weights. `mixture.BayesClassifier` takes both. Its error is held
against that of the classifier that knows the true laws ({{ repeats }} pasts, seed {{ seed }}).

- The excess error is at most {{ largest | n(2) }} times epsilon, so the remark's O(epsilon) holds.
  It falls like epsilon to the power {{ slopes }}{{ faster }}.

{{ picture("errors",
"Error of the recovered Bayes classifier beyond the Bayes error, against epsilon.
Bars: ± one standard deviation of a past." | replace("\\n", " ")) }}

{{ table("errors") }}

**Fairness and accuracy.** Means 2 standard deviations apart. `mixture.fairness_accuracy_curve`
gives the best accuracy for each gap, over thresholds on the posterior, one per group. Known laws:
the curve from the true laws and weights. Fitted laws: from a past of {{ past | n }} rows. Exact:
the formula for two normal laws, all pairs of thresholds tried.

- With known laws the curve differs from the exact frontier by at most {{ known_off | n(2) }}, where
  three standard errors of its {{ points | n }} points are {{ three_errors | n(2) }}. With fitted
  laws the difference is at most {{ fitted_off | n(2) }}.
- The audited classifier is a point below the frontier: with its own gap, thresholds on the
  posterior would be right more often (last column of the first table).

{{ picture("frontier", "Best accuracy for each gap: exact, and by recovered parameters, with the
audited classifier." | replace("\\n", " ")) }}

{{ table("audited") }}

{{ table("frontier") }}
"""
