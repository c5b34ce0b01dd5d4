"""The nearest population of a group against a dense grid of populations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import rel_entr

from equipoise.bounds.nearest_population import GroupPopulation
from equipoise.rates import RATES
from tests.profiles import quick
from tests.unit.bounds.brute_force import Array, kl

NAMES = (
    ("true_positive_rate",),
    ("false_positive_rate",),
    ("accuracy",),
    ("false_omission_rate",),
    ("true_positive_rate", "false_positive_rate"),
)
STEPS = 56


def populations() -> Array:
    """All cells of the confusion matrix on a grid: rows of tp, fp, fn, tn that sum to 1."""
    grid = np.arange(1, STEPS)
    tp, fp, fn = (axis.ravel() for axis in np.meshgrid(grid, grid, grid))
    inside = tp + fp + fn < STEPS
    cells = np.stack([tp, fp, fn, STEPS - tp - fp - fn])[:, inside]
    return np.asarray(cells / STEPS)


GRID = populations()


@pytest.mark.parametrize("names", NAMES, ids=" and ".join)
@pytest.mark.parametrize("seed", range(quick(4, full=20)))
def test_no_population_of_the_range_is_nearer(names: tuple[str, ...], seed: int) -> None:
    """None of the grid takes less, and another optimiser, begun at its best, as much."""
    rng = np.random.default_rng([seed, len(names)])
    p = rng.dirichlet([3, 2, 4])
    r = float(rng.uniform(0.1, 0.9))
    rows, labels = 10 ** rng.uniform(0, 3, 2)
    rates = [RATES[name] for name in names]
    tp, fp, fn, tn = GRID
    is_inside = np.ones(len(tp), dtype=bool)
    lowest, highest = [], []
    for rate in rates:
        part, whole = rate.fraction(p[0], p[1], p[2] * r, p[2] * (1 - r))
        centre = float(np.clip(part / whole + rng.normal(0, 0.15), 0.1, 0.9))
        lowest.append(centre - 0.05)
        highest.append(centre + 0.05)
        grid_part, grid_whole = rate.fraction(tp, fp, fn, tn)  # type: ignore[arg-type]
        value = grid_part / grid_whole
        is_inside &= (lowest[-1] <= value) & (value <= highest[-1])
    denied = fn + tn
    past = rel_entr(p[0], tp) + rel_entr(p[1], fp) + rel_entr(p[2], denied)
    information = rows * past + labels * kl(r, fn / denied)
    best = np.where(is_inside, information, np.inf).argmin()

    def total(log_cells: Array) -> float:
        cells = np.exp(log_cells) / np.exp(log_cells).sum()
        s = cells[2] + cells[3]
        own_past = rel_entr(p, [cells[0], cells[1], s]).sum()
        return float(rows * own_past + labels * kl(r, np.array([cells[2] / s]))[0])

    def room(log_cells: Array) -> Array:
        values = [part / whole for part, whole in (q.fraction(*np.exp(log_cells)) for q in rates)]
        return 10 * np.array([np.subtract(values, lowest), np.subtract(highest, values)]).ravel()

    polished = minimize(
        total,
        np.log(GRID[:, best]),
        constraints=[{"type": "ineq", "fun": room}],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-10},
    )
    group = GroupPopulation(p.tolist(), r, rows, rates)
    likely = (np.zeros(1), np.ones(1))
    found = group.distances(labels, np.array([lowest]), np.array([highest]), likely)
    assert found.total[0] <= information[best]
    assert found.total[0] == pytest.approx(polished.fun, rel=1e-3, abs=1e-4)
    assert found.total[0] == pytest.approx(found.past[0] + labels * found.label[0])


def test_the_true_rates_take_no_information_and_impossible_ones_all() -> None:
    group = GroupPopulation((0.3, 0.1, 0.6), 0.25, 1000.0, [RATES["true_positive_rate"]])
    lowest = np.array([[0.6], [0.0], [1.1]])
    highest = np.array([[0.7], [1.0], [1.2]])
    likely = (np.full(3, 0.25), np.full(3, 0.25))
    found = group.distances(50.0, lowest, highest, likely)
    assert found.total.tolist() == [0.0, 0.0, np.inf]


def test_a_known_r_leaves_the_past_alone() -> None:
    group = GroupPopulation((0.3, 0.1, 0.6), 0.25, 1000.0, [RATES["true_positive_rate"]])
    lowest, highest = np.array([[0.7]]), np.array([[1.0]])
    likely = (np.zeros(1), np.ones(1))
    known = group.distances(np.inf, lowest, highest, likely)
    many = group.distances(1e9, lowest, highest, likely)
    assert known.label[0] == 0.0
    assert known.total[0] == pytest.approx(many.total[0], rel=1e-4)


def test_a_group_without_denied_people_has_no_labels() -> None:
    """Another population may have denied people; labels of the true one cannot rule it out."""
    group = GroupPopulation((0.8, 0.2, 0.0), 0.0, 100.0, [RATES["true_positive_rate"]])
    lowest, highest = np.array([[0.0]]), np.array([[0.9]])
    likely = (np.zeros(1), np.ones(1))
    few, many = (group.distances(n, lowest, highest, likely) for n in (1.0, 1e6))
    assert few.total[0] == many.total[0] > 0.0
    # Ninths of the approved with outcome 1 as denied people with outcome 1 make the rate 0.9.
    shares = np.array([0.8, 0.2]) / (1 + 0.8 / 9)
    assert few.total[0] <= 100 * float(rel_entr([0.8, 0.2], shares).sum()) + 1e-9
