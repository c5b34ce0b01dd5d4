"""Black box (section 5 and its appendix): Baseline against RS-Audit on Adult and Law School."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from equipoise.bounds import baseline_expectation, paper_epsilon, rs_expectation
from equipoise.identify import check
from equipoise.paper.blackbox_pictures import draw_dataset, draw_ratios
from equipoise.paper.chapter import Chapter, make_chapter, words_of
from equipoise.paper.classifiers import CLASSIFIERS, classify, decide, read_people
from equipoise.paper.dataset_tables import compare_rows, describe_columns
from equipoise.paper.kept_work import Part, Record, real
from equipoise.paper.label_phases import run_phases
from equipoise.paper.settings import Settings
from equipoise.question import Costs, Question
from equipoise.simulation import simulate
from equipoise.worlds import CellWorld

__all__ = ["parts", "run_classifier", "tell"]

NAME = "blackbox"
TITLES = {"adult": "Adult", "law": "Law School"}
TAUS = (5, 10, 50, 100, 200, 500, 1000)
SEEDS = (1092, 42, 13, 729, 333)
COSTS = Costs(feature=0.0, label=1.0)
QUESTION = Question(gamma=0.0, epsilon=0.05, delta=0.05)
TOLERANT = Question(gamma=0.05, epsilon=0.05, delta=0.05)


def parts(settings: Settings) -> list[Part]:
    """Return one part per table and classifier."""
    datasets = ["adult"] + (["law"] if settings.law_school is not None else [])
    made = []
    for dataset in datasets:
        path = settings.law_school if dataset == "law" else None
        for classifier in CLASSIFIERS:
            arguments = {
                "dataset": dataset,
                "classifier": classifier,
                "repeats": 200 if settings.quick else 4000,
                "adaptive": 2 if settings.quick else 20,
                "seed": settings.seed,
                "law_path": None if path is None else str(path),
                "law_digest": None if path is None else _digest(path),
            }
            made.append(Part(f"{NAME}/{dataset}/{classifier}", run_classifier, arguments))
        names = ("dataset", "law_path", "law_digest")
        described = {name: arguments[name] for name in names}
        made.append(Part(f"{NAME}/{dataset}/columns", describe_columns, described))
    return [*made, Part(f"{NAME}/complete", compare_rows, {})]


def run_classifier(
    dataset: str,
    classifier: str,
    repeats: int,
    adaptive: int,
    seed: int,
    law_path: str | None,
    law_digest: str | None,
) -> list[Record]:
    """Audit one classifier at every tau; ``law_digest`` only says which file was read."""
    people = read_people(dataset, law_path)
    decision = decide(people, classifier)
    world = classify(people, decision).as_cells
    name: Record = {"dataset": dataset, "classifier": classifier}
    records = [{**name, **row} for row in _runs(world)]
    many = _many(world, repeats, seed)
    records += [{**name, **row} for row in many]
    records += [{**name, "kind": "adaptive", **_adaptive(world, QUESTION, adaptive, seed)}]
    records += [{**name, "kind": "tolerant", **_adaptive(world, TOLERANT, adaptive, seed)}]
    truth: Record = {
        "kind": "truth",
        "rows": len(people),
        "approved": float(decision.mean()),
        "accuracy": float((decision == people.outcome).mean()),
        "eod": world.difference("equalized_odds"),
        "free": str(check(world.past(), QUESTION).verdict),
    }
    for reuse in (False, True):
        rs, base = (
            price(world, QUESTION, COSTS, tau=1000, reuse_labels=reuse).cost
            for price in (rs_expectation, baseline_expectation)
        )
        truth |= {f"ratio_{'reuse' if reuse else 'analytic'}": rs / base}
        truth |= {
            f"rs{'_reuse' if reuse else ''}": rs,
            f"baseline{'_reuse' if reuse else ''}": base,
        }
    return [*records, {**name, **truth}]


def _runs(world: CellWorld) -> list[Record]:
    """Return the paper's five seeds."""
    rows: list[Record] = []
    for seed in SEEDS:
        for audit in ("baseline", "rs"):
            rng = np.random.default_rng(seed)
            for tau in TAUS:
                run = run_phases(audit, world, tau, repeats=1, rng=rng)
                rows.append(
                    {
                        "kind": "run",
                        "audit": audit,
                        "tau": tau,
                        "seed": seed,
                        "labels": int(run.labels[0]),
                        "cost": int(run.failures[0]),
                        "estimate": float(run.estimate[0]),
                    }
                )
    return rows


def _many(world: CellWorld, repeats: int, seed: int) -> list[Record]:
    """Return means and spreads over many runs, and the cost ratio at every tau."""
    rng = np.random.default_rng(seed)
    rows: list[Record] = []
    for tau in TAUS:
        costs = {}
        for audit, price in (("baseline", baseline_expectation), ("rs", rs_expectation)):
            run = run_phases(audit, world, tau, repeats=repeats, rng=rng)
            costs[audit] = run.failures
            rows.append(
                {
                    "kind": "many",
                    "audit": audit,
                    "tau": tau,
                    "repeats": repeats,
                    "labels": float(run.labels.mean()),
                    "cost": float(run.failures.mean()),
                    "cost_sd": float(run.failures.std(ddof=1)),
                    "cost_expected": price(world, QUESTION, COSTS, tau=tau).cost,
                    "estimate": float(run.estimate.mean()),
                    "estimate_sd": float(run.estimate.std(ddof=1)),
                }
            )
        rs, base = costs["rs"], costs["baseline"]
        ratio = float(rs.mean() / base.mean())
        relative = [float(c.std(ddof=1) / c.mean()) for c in (rs, base)]
        rows.append(
            {
                "kind": "ratio",
                "tau": tau,
                "ratio": ratio,
                "ratio_se": ratio * math.hypot(*relative) / repeats**0.5,
            }
        )
    return rows


def _adaptive(world: CellWorld, question: Question, repeats: int, seed: int) -> Record:
    sim = simulate("adaptive", world, question, COSTS, repeats=repeats, seed=seed)
    guesses = sim.estimate[~np.isnan(sim.estimate)]
    return {
        "audit": "adaptive",
        "repeats": repeats,
        "verdict": max(set(sim.verdict.tolist()), key=sim.verdict.tolist().count),
        "wrong": int(sim.wrong.sum()),
        "labels": float(sim.labels.mean()),
        "cost": float(sim.cost.mean()),
        "cost_sd": float(sim.cost.std(ddof=1)),
        "estimate": float(guesses.mean()) if len(guesses) else None,
        "estimate_sd": float(guesses.std(ddof=1)) if len(guesses) > 1 else None,
    }


def tell(records: Sequence[Record], settings: Settings) -> Chapter:
    """Return the chapter."""
    datasets = [d for d in TITLES if any(r["dataset"] == d for r in records)]
    columns = {
        d: [r for r in records if r["dataset"] == d and r["kind"] == "column"] for d in TITLES
    }
    complete = [r for r in records if r["kind"] == "complete"]
    records = [r for r in records if r["kind"] not in ("column", "complete")]
    summary = [_summary(records, d, c) for d in datasets for c in CLASSIFIERS]
    pictures = {d: partial(draw_dataset, records, d) for d in datasets}
    return make_chapter(
        NAME,
        values={
            "taus": ", ".join(map(str, TAUS)),
            "seeds": ", ".join(map(str, SEEDS)),
            "repeats": _first(records, "many")["repeats"],
            "seed": settings.seed,
            "adaptive": _first(records, "adaptive")["repeats"],
            "question": str(QUESTION),
            "tau_epsilon": paper_epsilon(1000, Question(gamma=0.0, delta=0.01), 2),
        },
        found=[*_findings(summary), *_about_rows(complete)],
        records={
            "ratios": summary,
            "audits": summary,
            "complete": complete,
            **{f"{d}-columns": columns[d] for d in datasets},
            "runs": [r for r in records if r["kind"] != "truth"],
        },
        pictures={**pictures, "ratios": partial(draw_ratios, records, datasets)},
        left_out=[] if "law" in datasets else [words_of(NAME)["left_out"]["law"]],
    )


def _summary(records: Sequence[Record], dataset: str, classifier: str) -> Record:
    here = [r for r in records if r["dataset"] == dataset and r["classifier"] == classifier]
    one = {r["kind"]: r for r in here if r.get("tau", 1000) == 1000 and r["kind"] != "many"}
    many = {r["audit"]: r for r in here if r["kind"] == "many" and r["tau"] == 1000}
    runs = [r for r in here if r["kind"] == "run" and r["tau"] == 1000]
    five = {a: sum(real(r, "cost") for r in runs if r["audit"] == a) for a in many}
    return {
        **one["truth"],
        "dataset": TITLES[dataset],
        "ratio": one["ratio"]["ratio"],
        "ratio_se": one["ratio"]["ratio_se"],
        "ratio_five": five["rs"] / five["baseline"],
        "cost_baseline": many["baseline"]["cost"],
        "cost_rs": many["rs"]["cost"],
        "estimate_rs": many["rs"]["estimate"],
        "estimate_rs_sd": many["rs"]["estimate_sd"],
        "cost_adaptive": one["adaptive"]["cost"],
        "verdict_adaptive": one["adaptive"]["verdict"],
        "cost_tolerant": one["tolerant"]["cost"],
        "verdict_tolerant": one["tolerant"]["verdict"],
    }


def _findings(summary: Sequence[Record]) -> list[str]:
    frames, lines = words_of(NAME)["found"], []
    for title in dict.fromkeys(str(r["dataset"]) for r in summary):
        rows = [r for r in summary if r["dataset"] == title]
        normal = [r for r in rows if r["classifier"] != "sense_attr"]
        (last,) = (r for r in rows if r["classifier"] == "sense_attr")
        line = frames["ratio"].format(
            dataset=title,
            measured=_range(real(r, "ratio") for r in normal),
            exact=_range(real(r, "ratio_analytic") for r in normal),
            error=max(real(r, "ratio_se") for r in normal),
            last=real(last, "ratio"),
            last_error=real(last, "ratio_se"),
            last_exact=real(last, "ratio_analytic"),
            reuse=_range(real(r, "ratio_reuse") for r in normal),
            kept=_range(real(r, "baseline_reuse") / real(r, "baseline") for r in normal),
        )
        lines.append(line)
    free = sum(r["free"] != "INCONCLUSIVE" for r in summary)
    return [*lines, frames["free"].format(free=free, all=len(summary))]


def _about_rows(rows: Sequence[Record]) -> list[str]:
    moved = [abs(real(r, "complete_eod") - real(r, "all_eod")) for r in rows]
    ratios = [abs(real(r, "complete_ratio") - real(r, "all_ratio")) for r in rows]
    frame = words_of(NAME)["found"]["complete"]
    return [frame.format(moved=max(moved), ratio=max(ratios), rows=rows[0]["complete_rows"])]


def _range(numbers: Iterable[float]) -> str:
    values = list(numbers)
    low, high = f"{min(values):.3f}", f"{max(values):.3f}"
    return low if low == high else f"{low} to {high}"


def _first(records: Sequence[Record], kind: str) -> Record:
    return next(r for r in records if r["kind"] == kind)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
