"""The theorems: what every audit costs as epsilon shrinks, beside its bounds."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from pandas import DataFrame

from equipoise.bounds import baseline_bound, exp_bound, family_bound, lower_bound, rs_bound
from equipoise.errors import InvalidInput
from equipoise.question import Costs, Question
from equipoise.simulation import Simulation, simulate
from equipoise.worlds import CellWorld, MixtureWorld
from paper.page import Chapter, Claim, Table
from paper.style import AUDITS, legend_below, new_figure
from paper.work import Part, Rows, Settings, Tables, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["lower_bound_pair", "parts", "run_epsilon", "tell"]

NAME = "theorems"
EPSILONS = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
ADAPTIVE = (0.1, 0.05, 0.02)  # label by label: smaller ones need hundreds of thousands
THEOREMS = {"baseline": 1, "rs": 2, "exp": 4}  # audit -> the theorem that bounds its cost
DELTA, P, Q = 0.01, 0.2, 0.2
COSTS = Costs(feature=0.0, label=1.0)
MIXTURE_COSTS = Costs(feature=0.5, label=3.0)


def lower_bound_pair(epsilon: float, p: float = 0.2, q: float = 0.2) -> tuple[CellWorld, CellWorld]:
    """Return the FAIR and the UNFAIR world of the proof of Theorem 3.

    Everything free to see is the same in both: ``P[f=1,Y=1|a] = q/2``, ``P[f=1,Y=0|a] = p/2``.
    Only among the denied of group "1" does the UNFAIR world hide more good people,
    ``P[f=0,Y=1|a=1] = q/2 (1 + 8 epsilon)``. Delta is 0 in the one, above epsilon in the other.

    Parameters
    ----------
    epsilon
        In (0, 1/8).
    p, q
        In (0, 1/3).

    Examples
    --------
    >>> fair, unfair = lower_bound_pair(epsilon=0.1)
    >>> fair.gap("equalized_odds"), round(unfair.gap("equalized_odds"), 4)
    (0.0, 0.1429)
    """
    for name, value, limit in (("epsilon", epsilon, 1 / 8), ("p", p, 1 / 3), ("q", q, 1 / 3)):
        if not 0.0 < value < limit:
            raise InvalidInput(f"{name!r} must be in (0, {limit:.4g}); got {value!r}")
    alike = _counts(q, p, 0.0)
    fair = CellWorld.from_counts({"0": alike, "1": alike})
    unfair = CellWorld.from_counts({"0": alike, "1": _counts(q, p, 4.0 * epsilon * q)})
    return fair, unfair


def _counts(q: float, p: float, hidden: float) -> dict[str, float]:
    return {
        "approved_positive": q / 2.0,
        "approved_negative": p / 2.0,
        "denied_positive": q / 2.0 + hidden,
        "denied_negative": 1.0 - q - p / 2.0 - hidden,
    }


def parts(settings: Settings) -> list[Part]:
    """Return one part per world and epsilon."""
    chosen = ADAPTIVE[:1] if settings.quick else ADAPTIVE
    few, many, more = (2, 20, 50) if settings.quick else (6, 200, 1000)
    made = []
    for epsilon in EPSILONS:
        common = {"epsilon": epsilon, "seed": settings.seed}
        made.append(Part(f"{NAME}/mixture-{epsilon:g}", run_mixture, {"repeats": many, **common}))
        for world in ("fair", "unfair"):
            adaptive = few if epsilon in chosen else 0
            arguments = {"world": world, "repeats": more, "adaptive": adaptive, **common}
            made.append(Part(f"{NAME}/{world}-{epsilon:g}", run_epsilon, arguments))
    return made


def run_epsilon(world: str, epsilon: float, repeats: int, adaptive: int, seed: int) -> Tables:
    """Price one world of the lower-bound family.

    ``bound`` is the upper bound of Theorem 1 or 2, ``least`` is C*, ``theorem_3`` the paper's own
    lower bound.
    """
    place = dict(zip(("fair", "unfair"), lower_bound_pair(epsilon, P, Q), strict=True))[world]
    question = Question(gamma=0.0, epsilon=epsilon, delta=DELTA)
    floors: dict[str, Value] = {
        "least": float(lower_bound(place, question, COSTS)),
        "theorem_3": family_bound(epsilon, DELTA, P, Q, COSTS, fair=world == "fair").cost,
    }
    rows: Rows = []
    for audit, bound in (("baseline", baseline_bound), ("rs", rs_bound)):
        sim = simulate(audit, place, question, COSTS, repeats=repeats, seed=seed)
        rows.append({**_priced(world, audit, sim, bound(place, question, COSTS).cost), **floors})
    if adaptive:
        sim = simulate("adaptive", place, question, COSTS, repeats=adaptive, seed=seed)
        rows.append({**_priced(world, "adaptive", sim), **floors})
    return {"costs": rows}


def run_mixture(epsilon: float, repeats: int, seed: int) -> Tables:
    """Price Exp-Audit as published where its assumptions hold: known laws, 7 sigma apart."""
    world = MixtureWorld.synthetic(14.0)
    cells = CellWorld(world.cells, world.r)
    question = Question(gamma=0.0, epsilon=epsilon, delta=DELTA)
    exp = simulate(
        "exp", world, question, MIXTURE_COSTS, repeats=repeats, seed=seed, weights="published"
    )
    rs = simulate("rs", cells, question, MIXTURE_COSTS, repeats=repeats, seed=seed)
    most, most_rs = (bound(cells, question, MIXTURE_COSTS).cost for bound in (exp_bound, rs_bound))
    return {"costs": [_priced("mixture", "exp", exp, most), _priced("mixture", "rs", rs, most_rs)]}


def _priced(
    world: str, audit: str, sim: Simulation, bound: float | None = None
) -> dict[str, Value]:
    """Return the mean cost, how often it is within its theorem's bound, and how often wrong."""
    return {
        "world": world,
        "epsilon": sim.question.epsilon,
        "audit": audit,
        "runs": len(sim.cost),
        "cost": float(sim.cost.mean()),
        "se": float(sim.cost.std(ddof=1)) / len(sim.cost) ** 0.5,
        "wrong": float(sim.wrong.mean()),
        "bound": bound,
        "within": None if bound is None else float(np.mean(sim.cost <= bound)),
    }


# -- the picture -----------------------------------------------------------------------------------


def _draw(rows: DataFrame) -> Figure:
    figure, panels = new_figure(2, 2, height=4.0)
    titles = {
        "fair": "gap = 0: FAIR",
        "unfair": "gap > epsilon: UNFAIR",
        "mixture": "Mixture, c_feat = 0.5, c_lab = 3",
    }
    flat = [*panels[0], *panels[1]]
    for axes, (world, title) in zip(flat, titles.items(), strict=False):
        _draw_world(axes, rows[rows.world == world])
        cost = "cost (log scale)" if world == "mixture" else "cost (failed overrides, log scale)"
        axes.set(title=title, xscale="log", yscale="log", ylabel=cost)
    _draw_shares(flat[-1], rows)
    for axes in flat:
        axes.set_xlabel("epsilon (log scale)")
    legend_below(figure, flat[:-1], columns=3)
    return figure


def _draw_world(axes: Axes, rows: DataFrame) -> None:
    """Draw every audit's cost, the upper bound of its theorem, and the lower bounds."""
    for audit, here in rows.groupby("audit", sort=False):
        name, colour, marker, dashes = AUDITS[str(audit)]
        axes.errorbar(
            here.epsilon, here.cost, 2 * here.se,
            color=colour, marker=marker, linestyle=dashes, capsize=2, label=name,
        )  # fmt: skip
        if audit in THEOREMS:
            label = f"Theorem {THEOREMS[str(audit)]}, upper bound"
            axes.plot(here.epsilon, here.bound, color=colour, lw=0.8, alpha=0.7, label=label)
    floor = rows[(rows.audit == "rs") & rows.least.notna()]
    if len(floor):
        name, colour, *_ = AUDITS["bound"]
        axes.plot(floor.epsilon, floor.least, color=colour, label=name)
        label = "Theorem 3, lower bound"
        axes.plot(floor.epsilon, floor.theorem_3, color=colour, linestyle=":", label=label)


def _draw_shares(axes: Axes, rows: DataFrame) -> None:
    """Draw every audit's mean cost as a share of its theorem's bound."""
    for audit, theorem in THEOREMS.items():
        here = _of(rows, "mixture" if audit == "exp" else "unfair", audit)
        name, colour, marker, dashes = AUDITS[audit]
        label = f"{name} / Theorem {theorem}"
        shares = here.cost / here.bound
        axes.plot(here.epsilon, shares, color=colour, marker=marker, ls=dashes, label=label)
    axes.axhline(1.0, color="#555555", lw=1.2)
    axes.text(0.05, 1.003, "the theorem's bound", fontsize=8.5, ha="center", va="bottom")
    axes.set(title="Cost as a share of the bound", xscale="log", ylim=(0.8, 1.05))
    axes.set_ylabel("mean cost / upper bound")
    axes.legend(fontsize=8.5, loc="lower center")


# -- the chapter -----------------------------------------------------------------------------------


def tell(found: dict[str, DataFrame], settings: Settings) -> Chapter:
    """Return the chapter."""
    worlds = {"fair": 0, "unfair": 1, "mixture": 2}
    rows = found["costs"].sort_values(
        ["world", "epsilon"],
        ascending=[True, False],
        key=lambda c: c.replace(worlds),
        kind="stable",
    )
    pair, exp = rows[rows.world != "mixture"], _of(rows, "mixture", "exp")
    baseline, rs = (_of(rows, "unfair", audit) for audit in ("baseline", "rs"))
    first, last = rs.iloc[0], rs.iloc[-1]
    shrinks = math.log(last.epsilon / first.epsilon)
    ours = pair[pair.audit == "adaptive"]
    bounded = pair[pair.audit != "adaptive"]
    slopes = {
        "rs": math.log(last.cost / first.cost) / shrinks,
        "least": math.log(last.least / first.least) / shrinks,
    }
    times = baseline.iloc[-1].cost / last.cost
    return Chapter(
        NAME,
        "The theorems as epsilon shrinks",
        WORDS,
        facts={
            "p": P,
            "q": Q,
            "delta": DELTA,
            "seed": settings.seed,
            "bounded": bounded,
            "first": first,
            "last": last,
            "slopes": slopes,
            "times": times,
            "multiples": ours.cost / ours.least,
            "exp": exp,
        },
        tables={
            "costs": Table(
                "Mean cost against the bounds: Theorem 1 bounds the Baseline and Theorem 2 "
                "RS-Audit from above, C* and Theorem 3 every audit from below.",
                pair,
                COLUMNS | {"least": "C*", "theorem_3": "Theorem 3"},
            ),
            "theorem-4": Table(
                "Exp-Audit as published, and RS-Audit in the same world, against Theorems 4 and 2.",
                rows[rows.world == "mixture"],
                COLUMNS,
            ),
        },
        pictures={
            "costs": (
                "Cost against epsilon in the two worlds of the lower bound. Upper bounds are thin "
                "lines, lower bounds green. Below: Exp-Audit and Theorem 4 where its assumptions "
                "hold (left), and every audit's mean cost as a share of its own bound (right).",
                partial(_draw, rows),
            )
        },
        claims=[
            Claim(
                "Theorems 1 and 2",
                "cost within the bound, error at most delta = 0.01",
                "1 - delta",
                f"{bounded.within.min():.1%} within, at most {bounded.wrong.max():.1%} wrong",
                _promise(bounded),
            ),
            Claim(
                "Theorem 3",
                "RS-Audit is within logarithms of the lower bound",
                "1/epsilon²",
                f"grows like epsilon^{slopes['rs']:.2f}, C* like epsilon^{slopes['least']:.2f}; "
                f"{last.cost / last.least:,.0f} times C*",
                "holds as an order",
            ),
            Claim(
                "Theorem 4",
                "Exp-Audit's cost within the bound, under separation",
                "1 - delta",
                f"{exp.within.min():.1%} within, at most {exp.wrong.max():.1%} wrong",
                _promise(exp),
            ),
        ],
    )


def _promise(rows: DataFrame) -> str:
    kept = rows.within.min() >= 1.0 - DELTA and rows.wrong.max() <= DELTA
    return "holds" if kept else "does not hold"


def _of(rows: DataFrame, world: str, audit: str) -> DataFrame:
    return rows[(rows.world == world) & (rows.audit == audit)]


COLUMNS = {
    "world": "world",
    "epsilon": "epsilon",
    "audit": "audit",
    "cost": "mean cost",
    "se": "± s.e.",
    "bound": "upper bound",
    "within": "within it",
    "wrong": "wrong",
}

WORDS = """
Theorems 1 to 4. The two worlds of the lower bound's proof (p = {{ p }}, q = {{ q }}) are alike in
everything that is free to see; the gap is 0 in the one and above epsilon in the other. gamma = 0,
delta = {{ delta }}, c_feat = 0, c_lab = 1; tau by the theorem; exact draws from seed {{ seed }}.
Theorem 4 needs features: the synthetic population with known laws 7 standard deviations apart,
where Algorithm 2's assumptions hold; c_feat = 0.5, c_lab = 3.

- In every world at least {{ "{:.1%}".format(bounded.within.min()) }} of the runs of Baseline and
  RS-Audit stay below the upper bound of their theorem, and at most
  {{ "{:.1%}".format(bounded.wrong.max()) }} of their verdicts are wrong, where
  {{ "{:.0%}".format(delta) }} are allowed.
- Between epsilon = {{ first.epsilon }} and {{ last.epsilon }} RS-Audit's cost grows like
  epsilon^{{ "%.2f" | format(slopes.rs) }} and C* like epsilon^{{ "%.2f" | format(slopes.least) }}
  (unfair world): as an order the lower bound is attained.
- The constant is what an auditor pays: at epsilon = {{ last.epsilon }} RS-Audit costs
  {{ "%.3g" | format(last.cost) }}, {{ "{:,.0f}".format(last.cost / last.least) }} times C* =
  {{ "%.3g" | format(last.least) }}; Theorem 3 asks for {{ "%.3g" | format(last.theorem_3) }}. The
  groups are of equal size here, and the Baseline costs {{ "%.2f" | format(times) }} times RS-Audit.
- The adaptive audit, where it was run, costs {{ "%.1f" | format(multiples.min()) }} to
  {{ "%.1f" | format(multiples.max()) }} times C*.
- At least {{ "{:.1%}".format(exp.within.min()) }} of Exp-Audit's runs stay below the bound of
  Theorem 4, and at most {{ "{:.1%}".format(exp.wrong.max()) }} of its verdicts are wrong.
- The proof of Theorem 3 has gamma = 0; its last line drops q from the denominator, and log(1/(4
  delta)) needs delta < 1/4.

{{ picture("costs") }}

{{ table("costs") }}

{{ table("theorem-4") }}
"""
