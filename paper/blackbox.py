"""Black box (section 6 and its appendix): Baseline against RS-Audit on Adult and Law School."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame, concat

from equipoise.audits.estimated_rates import paper_epsilon
from equipoise.bounds import expectation
from equipoise.free_check import check
from equipoise.history.rows_until import draw_counts_in_unlimited_past
from equipoise.question import Costs, Question
from equipoise.simulation import simulate
from equipoise.worlds import CellWorld
from paper.page import Chapter, Claim, Settings, holds, listed, span, where
from paper.pictures import AUDITS, TRUTH, band, legend_below, new_figure, to_svg
from paper.tables import (
    DATASETS,
    PAPER_CLASSIFIERS,
    classify,
    describe_columns,
    read_people,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

QUICK_CLASSIFIERS = PAPER_CLASSIFIERS[::2]
TAUS = (5, 10, 50, 100, 200, 500, 1000)
COSTS = Costs(feature=0.0, label=1.0)
QUESTION = Question(gamma=0.0, epsilon=0.05, delta=0.05)
TOLERANT = Question(gamma=0.05, epsilon=0.05, delta=0.05)
BY_TAU = ("baseline", "rs")
RATIO = ("rs", "baseline")
KEYS = ["dataset", "classifier"]


def run_phases(
    audit: str, world: CellWorld, tau: int, *, repeats: int, rng: np.random.Generator
) -> DataFrame:
    """Run every phase (y, a) of "baseline" or "rs", each on a stream of its own.

    A row per repeat: labels requested, failures among them (outcome 0), and the estimated EOD.
    ``P[f=1, Y=y | A=a]`` is that of the whole table: "to simulate historical data, we use the
    inference on the whole of the dataset". So a group that is never approved has rate 0, where
    Algorithm 1 as printed would wait for ever for its first approved person.
    """
    joint = world.joint  # columns approved 1, approved 0, denied 1, denied 0
    by_outcome = np.stack([joint[:, 1] + joint[:, 3], joint[:, 0] + joint[:, 2]])
    denied = np.clip(np.stack([joint[:, 3], joint[:, 2]]) / by_outcome, 0.0, 1.0)
    phases = []
    for y in (0, 1):
        for a in range(joint.shape[0]):
            block = people_counted(audit, a, joint.shape[0])
            shares = by_outcome[:, block]
            goal = y * len(block) + block.index(a)
            by_goal = draw_counts_in_unlimited_past(rng, tau, [goal], shares.ravel(), repeats)
            counts = by_goal[:, 0]
            # axes: repeat, outcome, group
            asked = rng.binomial(counts.reshape(repeats, 2, len(block)), denied[:, block])
            phases.append(Phase(y, a, counts.sum(axis=1), asked))
    return results_of_phases(audit, world, tau, phases)


class Phase(NamedTuple):
    """One phase (y, a) of all repeats.

    ``length`` has the people counted until the tau-th with outcome y of group a, and ``asked`` the
    denied among them, of shape (repeats, outcomes, groups counted).
    """

    outcome: int
    group: int
    length: NDArray[np.int64]
    asked: NDArray[np.int64]


def people_counted(audit: str, group: int, n_groups: int) -> list[int]:
    """Return the groups whose people a phase counts: its own (RS-Audit), or all (Baseline)."""
    return [group] if audit == "rs" else list(range(n_groups))


def results_of_phases(audit: str, world: CellWorld, tau: int, phases: Sequence[Phase]) -> DataFrame:
    """Return labels, failures and estimated EOD of every repeat, from what its phases counted."""
    joint = world.joint
    repeats = len(phases[0].length)
    labels = np.zeros(repeats, np.int64)
    failures = np.zeros(repeats, np.int64)
    rates = np.zeros((repeats, 2, joint.shape[0]))  # axes: repeat, outcome, group
    for phase in phases:
        labels += phase.asked.sum(axis=(1, 2))
        failures += phase.asked[:, 0].sum(axis=1)
        approved_share = joint[phase.group, 1 - phase.outcome]
        counted_share = joint[people_counted(audit, phase.group, joint.shape[0])].sum()
        rates[:, phase.outcome, phase.group] = approved_share / counted_share * phase.length / tau
    estimate = np.ptp(rates, axis=2).max(axis=1)
    return DataFrame({"labels": labels, "failures": failures, "estimate": estimate})


def run(settings: Settings) -> Chapter:
    """Audit every classifier on every table at every tau."""
    datasets = ["adult", "law"] if settings.law_school else ["adult"]
    classifiers = QUICK_CLASSIFIERS if settings.quick else PAPER_CLASSIFIERS
    truth, many = _audit(datasets, classifiers, settings)
    summary, moves = _summary(truth, many)
    seeing = summary.query("classifier != 'sense_attr'")  # sense_attr looks at nobody
    columns = {d: DataFrame(describe_columns(d, settings.law_school)) for d in datasets}
    return Chapter(
        "Black box: Baseline against RS-Audit",
        WORDS,
        facts={
            "taus": listed(TAUS),
            "repeats": int(many.repeats[0]),
            "seed": settings.seed,
            "question": QUESTION,
            "found": {DATASETS[d].title: where(seeing, dataset=d) for d in datasets},
            "titles": {d: DATASETS[d].title for d in datasets},
            "apart": where(summary, classifier="sense_attr").set_index("table"),
            "spread": moves,
            "free": (summary.free != "INCONCLUSIVE").sum(),
            "all": len(summary),
            "tau_epsilon": paper_epsilon(1000, Question(gamma=0.0, delta=0.01), 2),
            "datasets": datasets,
        },
        tables={
            "ratios": summary[RATIOS.split()],
            "audits": summary[SPENT.split()],
            **{f"{d}-columns": rows for d, rows in columns.items()},
            "means": many,
        },
        pictures={d: to_svg(partial(draw_dataset, summary, many, d)) for d in datasets},
        claims=[
            *_claims(seeing),
            _all_classifiers(summary),
            *_levels(summary),
            *(_columns(rows, d) for d, rows in columns.items()),
        ],
        found={"summary": where(summary, dataset="adult", classifier="all_LR"), "many": many},
        left_out="" if settings.law_school else LEFT_OUT,
    )


def run_own(dataset: str, classifiers: Sequence[str], settings: Settings) -> tuple[DataFrame, str]:
    """Audit registered classifiers on one registered data set, as in Figures 2 and 3.

    Returns a row per classifier (costs at tau = 1000, true and estimated EOD) and the figure, as
    SVG text.
    """
    truth, many = _audit([dataset], classifiers, settings)
    summary, _ = _summary(truth, many)
    return summary, to_svg(partial(draw_dataset, summary, many, dataset))


def _audit(
    datasets: Sequence[str], classifiers: Sequence[str], settings: Settings
) -> tuple[DataFrame, DataFrame]:
    """Return a row per population, and a row per population, audit and tau.

    The first has expected costs at tau = 1000, mean costs where labels are kept between phases, and
    our audit on two questions; the second has means and spreads.
    """
    repeats, ours = (200, 2) if settings.quick else (4000, 20)
    truth, many = [], []
    for dataset, classifier in product(datasets, classifiers):
        at = {"dataset": dataset, "classifier": classifier}
        people = read_people(dataset, settings.law_school)
        table = classify(people, classifier)
        world = table.as_cells
        rs, base = (expectation(name, world, QUESTION, COSTS, tau=1000).cost for name in RATIO)
        kept = partial(simulate, repeats=10 * repeats, seed=settings.seed, tau=1000)
        rs_kept, base_kept = (  # where the past runs dry nothing is spent: sense_attr
            float(kept(name, world, QUESTION, COSTS, reuse_labels=True).cost.mean()) or np.nan
            for name in RATIO
        )
        row = {
            **at,
            "table": DATASETS[dataset].title,
            "approved": float(table.decision.mean()),
            "accuracy": float((table.decision == people.outcome).mean()),
            "true_EOD": world.gap("equalized_odds"),
            "free": str(check(world.past(), QUESTION).verdict),
            "exact": rs / base,
            "labels_kept": rs_kept / base_kept,
            "kept": base_kept / base,
        }
        for question in (QUESTION, TOLERANT):
            sim = simulate("adaptive", world, question, COSTS, repeats=ours, seed=settings.seed)
            verdicts, name = sim.verdict.tolist(), f"gamma={question.gamma:g}"
            row[f"adaptive,_{name}"] = float(sim.cost.mean())
            row[f"verdict,_{name}"] = max(set(verdicts), key=verdicts.count)
            row[f"labels,_{name}"] = float(sim.labels.mean())
        truth.append(row)
        rng = np.random.default_rng(settings.seed)
        for tau, audit in product(TAUS, BY_TAU):
            if settings.paper_seeds:
                made = [
                    run_phases(audit, world, tau, repeats=1, rng=np.random.default_rng(seed))
                    for seed in settings.run_seeds(0)
                ]
                runs = concat(made, ignore_index=True)
            else:
                runs = run_phases(audit, world, tau, repeats=repeats, rng=rng)
            mean, sd = runs.mean(), runs.std()
            spent = {"labels": mean.labels, "cost": mean.failures, "cost_sd": sd.failures}
            guess = {"estimate": mean.estimate, "estimate_sd": sd.estimate}
            many.append({**at, "audit": audit, "tau": tau, "repeats": repeats, **spent, **guess})
    return DataFrame(truth), DataFrame(many)


def _summary(truth: DataFrame, many: DataFrame) -> tuple[DataFrame, float]:
    """Return a row per table and classifier: everything at tau = 1000.

    Also the largest share by which the ratio of the two costs moves from one tau to another.
    """
    by = many.set_index([*KEYS, "tau"])
    base, rs = (by[by.audit == audit] for audit in BY_TAU)
    ratio = rs.cost / base.cost
    error = np.hypot(rs.cost_sd / rs.cost, base.cost_sd / base.cost) / np.sqrt(rs.repeats)
    last = DataFrame(
        {
            "RS/Baseline": ratio,
            "s.e.": ratio * error,
            "its_estimate": rs.estimate,
            "s.d.": rs.estimate_sd,
            "Baseline": base.cost,
            "RS-Audit": rs.cost,
        }
    ).xs(1000, level="tau")
    by_tau = ratio.groupby(KEYS)
    moves = (by_tau.max() / by_tau.min() - 1.0).max()
    return truth.set_index(KEYS).join(last).reset_index(), moves


# -- pictures --------------------------------------------------------------------------------------


def draw_dataset(summary: DataFrame, many: DataFrame, dataset: str) -> Figure:
    """Draw cost against tau and estimated EOD against labels, a row per classifier."""
    shown = where(summary, dataset=dataset)
    figure, panels = new_figure(len(shown), 2, height=2.75)
    for row, classifier in zip(panels, shown.classifier, strict=True):
        draw_classifier(row[0], row[1], where(shown, classifier=classifier), many)
        for axes in row:
            axes.set_title(classifier, loc="left")
    legend_below(figure)
    return figure


def draw_classifier(cost: Axes, estimate: Axes, summary: DataFrame, many: DataFrame) -> None:
    """Draw cost against tau, and estimated EOD against labels requested."""
    at = summary.iloc[0]
    many = where(many, dataset=at.dataset, classifier=at.classifier)
    for audit in BY_TAU:
        band(cost, audit, many, "tau", "cost")
        band(estimate, audit, many, "labels", "estimate")
    name, colour, _, dashes = AUDITS["adaptive"]
    ours, verdict, labels = (at[f"{what},_gamma=0"] for what in ("adaptive", "verdict", "labels"))
    cost.axhline(ours, color=colour, linestyle=dashes, label=f"{name} (no tau)")
    cost.set(xlabel="tau (stopping threshold)", ylabel="cost (failed overrides)", xlim=(0, 1020))
    cost.set_ylim(bottom=-0.03 * cost.get_ylim()[1])
    estimate.axhline(at.true_EOD, color=TRUTH, lw=1.5, label="true EOD")
    effort = f"{labels:,.0f} labels" if labels else "no label"
    words = f"{name}: {verdict}, {effort}"
    estimate.set_title(words, loc="right", fontsize=8.5, fontweight="normal", color=colour)
    settled = many.query("tau >= 10")
    top = max((settled.estimate + settled.estimate_sd).max(), 1.25 * at.true_EOD)
    estimate.set(xscale="log", xlabel="labels requested (log scale)", ylabel="estimated EOD")
    estimate.set_ylim(0, top)


# -- claims and words ------------------------------------------------------------------------------


def _claims(seeing: DataFrame) -> list[Claim]:
    claims = []
    for dataset, rows in seeing.groupby("dataset"):
        why = "" if rows.labels_kept.max() < 0.6 else ". The Baseline's restarts make it"
        claims.append(
            Claim(
                DATASETS[str(dataset)].figure,
                f"{DATASETS[str(dataset)].title}: RS-Audit costs less than the Baseline",
                "“around 50%” (abstract)",
                f"costs {span(rows['RS/Baseline'])} of it, {span(rows.labels_kept)} if both keep "
                "their labels",
                f"holds{why}" if rows["RS/Baseline"].max() <= 0.6 else "does not hold",
            )
        )
    off = (seeing.its_estimate - seeing.true_EOD).abs().max()
    last = where(seeing, dataset="adult", classifier="all_LR").iloc[0]
    return [
        *claims,
        Claim(
            "Figures 1 (top) to 3, left",
            "RS-Audit estimates the true EOD with fewer labels",
            "(plot)",
            f"at tau = 1000 its mean is within {off:.3f} of the truth. Adult, all_LR: "
            f"{last['its_estimate']:.3f} ± {last['s.d.']:.3f}, true {last.true_EOD:.3f}",
            holds(off < 0.05),
        ),
    ]


def _all_classifiers(summary: DataFrame) -> Claim:
    """Compare the saving with what the appendix says of every classifier."""
    apart = where(summary, classifier="sense_attr").set_index("table")["RS/Baseline"]
    seeing = summary[summary.classifier != "sense_attr"]
    ratios = ", ".join(f"{table} {ratio:.2f}" for table, ratio in apart.items())
    return Claim(
        "appendix D.1, Figures 2 and 3",
        "RS-Audit costs about 50% less for all classifiers",
        "“about 50%”. The authors' own figure shows less for sense_attr on Adult (plot)",
        f"costs {span(seeing['RS/Baseline'])} of the "
        f"Baseline for four classifiers. sense_attr: {ratios}",
        holds(apart.max() <= 0.6, "holds but for sense_attr on Adult"),
    )


def _levels(summary: DataFrame) -> list[Claim]:
    """Compare levels that can be read from the authors' figures with ours."""
    adult = where(summary, dataset="adult", classifier="all_LR").iloc[0]
    claims = [
        Claim(
            "Figure 1 (top), level",
            "true EOD of all_LR on Adult",
            "about 0.006 (plot)",
            f"{adult.true_EOD:.3f}",
            "differs. Probable reasons, not tested: the authors' classifier decides on unscaled "
            "rows and has another training sample (notes 21, 23)",
        )
    ]
    law = where(summary, dataset="law", classifier="all_LR")
    if len(law):
        claims.append(
            Claim(
                "Figure 3, level",
                "cost of Baseline and RS-Audit on Law School, all_LR, tau = 1000",
                "about 390, 202 (plot)",
                f"{law.Baseline.item():,.0f}, {law['RS-Audit'].item():,.0f}",
                "the ratio holds, the level differs. Probable reason, not tested: the authors "
                "train on resampled rows with class weights 99:1 (note 21)",
            )
        )
    return claims


def _columns(rows: DataFrame, dataset: str) -> Claim:
    """Compare Table 4 or 5 with the data."""
    held = [name for name in rows.columns if name.endswith("rows")]
    same = {name: int((rows[name] == rows.paper).sum()) for name in held}
    same_type = int((rows.type_in_paper == rows.type_here).sum())
    best = max(same, key=lambda name: same[name])
    missing = len(rows) - same[best]
    other_types = rows[rows.type_in_paper != rows.type_here].column
    type_note = f"; other types here: {', '.join(other_types)}" if len(other_types) else ""
    return Claim(
        "Table 4" if dataset == "adult" else "Table 5",
        f"{DATASETS[dataset].title}: types, ranges, numbers of values of its {len(rows)} columns",
        "types, ranges, counts",
        "; ".join(f"{count} as printed in {name}" for name, count in same.items())
        + f"; {same_type} of {len(rows)} types as printed",
        (f"holds but for {missing}" if missing else f"holds for {best}") + type_note,
    )


LEFT_OUT = (
    "Law School was left out: its licence being unclear it is not shipped; pass --law-school FILE "
    "or set EQUIPOISE_LAW_SCHOOL to your copy of law_school_clean.csv."
)
RATIOS = "table classifier approved accuracy true_EOD RS/Baseline s.e. exact labels_kept"
SPENT = """
    table classifier true_EOD Baseline RS-Audit its_estimate s.d. free adaptive,_gamma=0
    verdict,_gamma=0 adaptive,_gamma=0.05 verdict,_gamma=0.05
"""

WORDS = """
Section 6, Figure 1 (top), and the appendix, Figures 2 and 3, Tables 4 and 5.

Adult (48,842 rows) and Law School (20,798 rows), groups by sex. Five classifiers are trained on
100 and 5000 random rows, with one encoding. Values of tau: {{ taus }}. There are {{ repeats | n }}
runs from seed
{{ seed }} (the paper has five). c_feat = 0, c_lab = 1: the cost is the number of overrides that end
badly. The past is the whole table. The adaptive audit is ours, on “{{ question }}” and on the same
with gamma = 0.05.

{% for name, one in found.items() %}
- {{ name }}: RS-Audit costs {{ one["RS/Baseline"] | span }} of the Baseline for the classifiers
  that look at people (exact {{ one.exact | span }}), and {{ apart["RS/Baseline"][name] | n(3) }}
  for sense_attr. Where both keep their labels from phase to phase the ratio is
  {{ one.labels_kept | span }}: a Baseline that does so costs {{ one.kept | span }} of the printed
  one.
{% endfor %}
- The ratio does not depend on tau: it moves by at most {{ spread | pct(1) }} from tau = 5 to 1000.
- {{ free }} of the {{ all }} audits at gamma = 0 are answered by the past alone: the groups' rates
  cannot be equal whatever the outcomes of the denied are.
- Table 4 describes the rows of Adult without unknown values, not all 48,842.
- tau = 1000 is the paper's largest. By its theorem it is the tau of epsilon = {{ tau_epsilon |
  n(3) }}
  at delta = 0.01, and differences are at most 1. The runs show how estimates settle. They have no
  guarantee.
{% if "law" in datasets %}
- The paper has race in six levels, law_school_clean.csv has two. Race is one covariate of eleven.
{% endif %}

{% for name in datasets %}
{{ picture(name, "Cost against tau (left) and estimated EOD against labels requested (right), " ~
   titles[name] ~ ". Bands: ± one standard deviation of a run.") }}

{% endfor %}
Cost of RS-Audit over cost of the Baseline at tau = 1000: in the runs, exactly, and as the
mean of ten times as many runs where both audits keep their labels from phase to phase. (sense_attr
never approves one of the groups, so there the past runs dry.)

{{ table("ratios") }}

What each audit spends: Baseline and RS-Audit at tau = 1000, which promises nothing, and the
adaptive audit (epsilon = delta = 0.05) with its guarantee. “Free” is what the past alone answers.

{{ table("audits") }}

Tables 4 and 5: type of each column, what the paper says of it, and what the rows hold (a range, or
how many values). A column is numerical if it holds numbers, binary if it has two values, and else
categorical.

{% for name in datasets %}
{{ table(name ~ "-columns") }}

{% endfor %}
"""
