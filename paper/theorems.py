"""The theorems: what every audit costs as epsilon shrinks, beside its bounds."""

from __future__ import annotations

import math
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from pandas import DataFrame
from scipy.special import ndtri

from equipoise.bounds import family_bound, lower_bound, upper_bound
from equipoise.mixture import Gaussian, HalfSpace, check_assumptions, measure_separation
from equipoise.question import Costs, Question
from equipoise.simulation import Simulation, simulate
from equipoise.worlds import CellWorld, MixtureWorld, lower_bound_pair
from equipoise.worlds.mixture import GroupMixture
from paper.page import Chapter, Claim, Settings, holds, where
from paper.pictures import AUDITS, legend_below, new_figure, to_svg
from paper.synthetic import DIMENSION, SHARES
from paper.synthetic import Q as BASE_RATES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILONS = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
ADAPTIVE = (0.1, 0.05, 0.02)  # label by label: smaller ones need hundreds of thousands
THEOREMS = {"baseline": 1, "rs": 2, "exp": 4}  # audit -> the theorem that bounds its cost
DELTA, P, Q = 0.01, 0.2, 0.2
COSTS = Costs(feature=0.0, label=1.0)
MIXTURE_COSTS = Costs(feature=0.5, label=3.0)
SIGMAS_APART = 9.0  # condition (1) asks for up to 7.8 here
APPROVAL = {"1": 0.6, "0": 0.5}

Row = dict[str, object]


def run_epsilon(world: str, epsilon: float, repeats: int, adaptive: int, seed: int) -> list[Row]:
    """Price the audits in one world of the lower-bound family."""
    place = lower_bound_pair(epsilon, P, Q)[world == "unfair"]
    question = Question(gamma=0.0, epsilon=epsilon, delta=DELTA)
    theorem_3 = family_bound(epsilon, DELTA, P, Q, COSTS, fair=world == "fair").cost
    floors = {"C*": float(lower_bound(place, question, COSTS)), "Theorem_3": theorem_3}
    rows: list[Row] = []
    for audit, runs in (("baseline", repeats), ("rs", repeats), ("adaptive", adaptive)):
        if runs:
            sim = simulate(audit, place, question, COSTS, repeats=runs, seed=seed)
            rows.append({**_priced(world, audit, place, sim), **floors})
    return rows


def separated_world() -> MixtureWorld:
    """Return a population that meets Assumptions 1 and 2 at every epsilon of the chapter.

    Five features with the identity as known covariance, so theta is the mean and kappa = lambda =
    1. The means lie ``SIGMAS_APART`` apart; shares and base rates are those of the synthetic
    population. The classifier cuts across, so both outcomes are approved equally often.
    """
    family = Gaussian(np.eye(DIMENSION))
    mixtures = {}
    for name, share in SHARES.items():
        cut = HalfSpace(np.eye(DIMENSION)[1], -float(ndtri(APPROVAL[name])))
        good = family.pack(np.zeros(DIMENSION))
        bad = family.pack(SIGMAS_APART * np.eye(DIMENSION)[0])
        mixtures[name] = GroupMixture.of(share, BASE_RATES[name], family, (bad, good), cut)
    return MixtureWorld(mixtures)


def least_separation(world: MixtureWorld) -> tuple[float, float]:
    """Return |theta_1 - theta_0| and the most that condition (1) asks for at any epsilon.

    Raises
    ------
    ValueError
        If an assumption is not met.
    """
    asked = []
    for epsilon, (group, mixture) in product(EPSILONS, world.mixtures.items()):
        _, problems = check_assumptions(world.model, group, epsilon=epsilon, q=mixture.q)
        if problems:
            raise ValueError(f"epsilon = {epsilon}, group {group}: {'; '.join(problems)}")
        separation = measure_separation(world.model, group, epsilon=epsilon, q=mixture.q)
        asked.append(separation.needed)
    return separation.distance, max(asked)


def run_mixture(epsilon: float, repeats: int, seed: int) -> list[Row]:
    """Price Exp-Audit as published where its assumptions hold, with known laws."""
    world = separated_world()
    cells = CellWorld(world.cells, world.r)
    question = Question(gamma=0.0, epsilon=epsilon, delta=DELTA)
    run = partial(simulate, question=question, costs=MIXTURE_COSTS, repeats=repeats, seed=seed)
    exp, rs = run("exp", world, weights="published"), run("rs", cells)
    return [_priced("mixture", "exp", cells, exp), _priced("mixture", "rs", cells, rs)]


def _priced(world: str, audit: str, cells: CellWorld, sim: Simulation) -> Row:
    """Return the mean cost, how often it is within its theorem's bound, and how often wrong."""
    bound = math.nan
    if audit in THEOREMS:
        bound = upper_bound(audit, cells, sim.question, sim.costs).cost
    return {
        "world": world,
        "epsilon": sim.question.epsilon,
        "audit": audit,
        "cost": float(sim.cost.mean()),
        "s.e.": float(sim.cost.std(ddof=1)) / len(sim.cost) ** 0.5,
        "bound": bound,
        "within": float(np.mean(sim.cost <= bound)) if audit in THEOREMS else math.nan,
        "wrong": float(sim.wrong.mean()),
    }


def run(settings: Settings) -> Chapter:
    """Price every world at every epsilon."""
    chosen = ADAPTIVE[:1] if settings.quick else ADAPTIVE
    few, many, more = (2, 20, 50) if settings.quick else (6, 200, 1000)
    made: list[Row] = []
    for world in ("fair", "unfair"):
        for epsilon in EPSILONS:
            adaptive = few if epsilon in chosen else 0
            made += run_epsilon(world, epsilon, more, adaptive, settings.seed)
    for epsilon in EPSILONS:
        made += run_mixture(epsilon, many, settings.seed)
    rows = DataFrame(made)
    pair, exp = rows[rows.world != "mixture"], where(rows, world="mixture", audit="exp")
    ours, bounded = where(pair, audit="adaptive"), pair[pair.audit != "adaptive"]
    rs, base = (where(rows, world="unfair", audit=audit) for audit in ("rs", "baseline"))
    last = rs.iloc[-1]
    return Chapter(
        "The theorems as epsilon shrinks",
        WORDS,
        facts={
            "seed": settings.seed,
            "last": last,
            "times": base.iloc[-1].cost / last.cost,
            "multiples": ours.cost / ours["C*"],
            "share": bounded.cost / bounded.bound,
            "exp": exp.cost / exp.bound,
            "separation": least_separation(separated_world()),
        },
        tables={"costs": rows},
        pictures={"costs": to_svg(partial(_draw, rows))},
        claims=_claims(rs, bounded, exp),
    )


def _draw(rows: DataFrame) -> Figure:
    """Draw every audit's cost, the upper bound of its theorem, and the lower bounds."""
    figure, panels = new_figure(1, 3, width=10.5, height=4.2)
    titles = ("gap = 0: FAIR", "gap > epsilon: UNFAIR", "Mixture, c_feat = 0.5, c_lab = 3")
    for axes, world, title in zip(panels[0], ("fair", "unfair", "mixture"), titles, strict=True):
        here = where(rows, world=world)
        for audit in here.audit.unique():
            mine = where(here, audit=audit)
            name, colour, marker, dashes = AUDITS[audit]
            axes.plot(mine.epsilon, mine.cost, color=colour, marker=marker, ls=dashes, label=name)
            if audit in THEOREMS:
                label = f"Theorem {THEOREMS[audit]}, upper bound"
                axes.plot(mine.epsilon, mine.bound, color=colour, lw=0.8, alpha=0.7, label=label)
        if world != "mixture":
            floor, (name, colour, *_) = where(here, audit="rs"), AUDITS["bound"]
            axes.plot(floor.epsilon, floor["C*"], color=colour, label=name)
            axes.plot(floor.epsilon, floor.Theorem_3, color=colour, ls=":", label="Theorem 3")
        axes.set(title=title, xscale="log", yscale="log", ylabel="cost (log scale)")
        axes.set_xlabel("epsilon (log scale)")
    legend_below(figure, columns=4)
    return figure


def _claims(rs: DataFrame, bounded: DataFrame, exp: DataFrame) -> list[Claim]:
    fair, unfair = lower_bound_pair(0.1, P, Q)
    gaps = [world.gap("equalized_odds") for world in (fair, unfair)]
    alike = [np.allclose(fair.cells[g].shares, unfair.cells[g].shares) for g in fair.groups]
    first, last = rs.iloc[0], rs.iloc[-1]
    slope, slope_of_bound = (
        math.log(last[name] / first[name]) / math.log(last.epsilon / first.epsilon)
        for name in ("cost", "C*")
    )

    def kept(theorem: str, says: str, rows: DataFrame) -> Claim:
        within, wrong = rows.within.min(), rows.wrong.max()
        ours = f"{within:.1%} within, at most {wrong:.1%} wrong"
        return Claim(
            theorem, says, "1 - delta", ours, holds(within >= 1.0 - DELTA and wrong <= DELTA)
        )

    return [
        Claim(
            "Tables 1 and 2",
            "two worlds alike in all that is free to see, gap 0 and above epsilon = 0.1",
            "2 epsilon/(1 + 4 epsilon) = 0.143",
            f"{gaps[0]:g} and {gaps[1]:.3f}",
            holds(all(alike) and gaps[0] == 0.0 and gaps[1] > 0.1),
        ),
        kept("Theorems 1 and 2", "cost within the bound, error at most delta = 0.01", bounded),
        Claim(
            "Theorem 3",
            "RS-Audit is within logarithms of the lower bound",
            "1/epsilon²",
            f"grows like epsilon^{slope:.2f}, C* like epsilon^{slope_of_bound:.2f}, "
            f"{last.cost / last['C*']:,.0f} times C*",
            "holds as an order" if abs(slope - slope_of_bound) < 0.2 else "does not hold",
        ),
        kept(
            "Theorem 4",
            "Exp-Audit's cost within the bound and error at most delta, where condition (1) holds",
            exp,
        ),
    ]


WORDS = """
The two worlds of the lower bound's proof (p = 0.2, q = 0.2) are alike in everything that is free to
see. The gap is 0 in the one and above epsilon in the other. gamma = 0, delta = 0.01, c_feat = 0,
c_lab = 1, tau by the theorem, exact draws from seed {{ seed }}. Theorem 4 needs features: a
population with known laws that meets Assumptions 1 and 2 at every epsilon shown. |theta_1 -
theta_0| is {{ separation[0] | n(3) }} there, and condition (1) asks for at most {{ separation[1] |
n(3) }} (`mixture.check_assumptions`). There c_feat = 0.5, c_lab = 3. Theorem 3 is
`bounds.family_bound`:
on the fair world it adds over both groups.

- The constant is what an auditor pays: at epsilon = {{ last.epsilon }} in the unfair world RS-Audit
  costs {{ last.cost | n(3) }}, {{ (last.cost / last["C*"]) | n }} times C* = {{ last["C*"] | n(3)
  }}. Theorem 3 asks for {{ last.Theorem_3 | n(3) }}. The groups are of equal size here, and the
  Baseline costs {{ times | n(3) }} times RS-Audit.
- The adaptive audit, where it was run, costs {{ multiples.min() | n(2) }} to {{ multiples.max() |
  n(2) }} times C*.
- Baseline and RS-Audit spend {{ share | span }} of their bounds, Exp-Audit {{ exp | span }}.

{{ picture("costs", "Cost against epsilon in the two worlds of the lower bound, and where Theorem
4's assumptions hold. Upper bounds are thin lines, lower bounds green." | replace("\n", " ")) }}

Mean cost against the bounds: Theorem 1 bounds the Baseline, Theorem 2 RS-Audit and Theorem 4
Exp-Audit from above. C* and Theorem 3 bound every audit from below.

{{ table("costs") }}
"""
