"""What the black-box experiments show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from equipoise.audits.tau_audits import paper_epsilon
from equipoise.question import Question
from paper.blackbox import (
    NAME,
    QUESTION,
    SEEDS,
    TAUS,
    TOLERANT,
    Adaptive,
    Audited,
    Means,
    Ratio,
    Run,
    Truth,
)
from paper.blackbox_pictures import TITLES, draw_dataset, draw_ratios
from paper.chapter import Chapter, make_chapter, words_of
from paper.dataset_tables import Column, CompleteRows
from paper.kept_work import Result, of_kind
from paper.settings import Settings

__all__ = ["tell"]


@dataclass(frozen=True)
class Summary(Result):
    """A classifier on a table: what every audit spends at tau = 1000."""

    dataset: str
    classifier: str
    rows: int
    approved: float
    accuracy: float
    eod: float
    free: str
    ratio: float
    ratio_se: float
    ratio_five: float
    ratio_analytic: float
    ratio_reuse: float
    kept: float
    cost_baseline: float
    cost_rs: float
    estimate_rs: float
    estimate_rs_sd: float
    cost_adaptive: float
    verdict_adaptive: str
    cost_tolerant: float
    verdict_tolerant: str


def tell(results: Sequence[Result], settings: Settings) -> Chapter:
    """Return the chapter."""
    audited, columns = of_kind(results, Audited), of_kind(results, Column)
    datasets = list(dict.fromkeys(r.dataset for r in audited))
    summary = [_summary(audited, truth) for truth in of_kind(audited, Truth)]
    complete = of_kind(results, CompleteRows)
    pictures = {d: partial(draw_dataset, audited, d) for d in datasets}
    return make_chapter(
        NAME,
        values={
            "taus": ", ".join(map(str, TAUS)),
            "seeds": ", ".join(map(str, SEEDS)),
            "repeats": of_kind(audited, Means)[0].repeats,
            "seed": settings.seed,
            "adaptive": of_kind(audited, Adaptive)[0].repeats,
            "question": str(QUESTION),
            "tau_epsilon": paper_epsilon(1000, Question(gamma=0.0, delta=0.01), 2),
        },
        found=[*_findings(summary), *_about_rows(complete)],
        tables={
            "ratios": summary,
            "audits": summary,
            "complete": complete,
            **{f"{d}-columns": [c for c in columns if c.dataset == d] for d in datasets},
            "runs": [r for r in audited if not isinstance(r, Truth)],
        },
        pictures={**pictures, "ratios": partial(draw_ratios, audited, datasets)},
        left_out=[] if "law" in datasets else [words_of(NAME)["left_out"]["law"]],
    )


def _summary(audited: Sequence[Audited], truth: Truth) -> Summary:
    name = truth.dataset, truth.classifier
    here = [r for r in audited if (r.dataset, r.classifier) == name]
    runs = [r for r in of_kind(here, Run) if r.tau == 1000]
    five = {a: sum(r.cost for r in runs if r.audit == a) for a in ("baseline", "rs")}
    (ratio,) = (r for r in of_kind(here, Ratio) if r.tau == 1000)
    means = {r.audit: r for r in of_kind(here, Means) if r.tau == 1000}
    ours = {r.gamma: r for r in of_kind(here, Adaptive)}
    strict, tolerant = ours[QUESTION.gamma], ours[TOLERANT.gamma]
    return Summary(
        TITLES[truth.dataset],
        truth.classifier,
        truth.rows,
        truth.approved,
        truth.accuracy,
        truth.eod,
        truth.free,
        ratio=ratio.ratio,
        ratio_se=ratio.ratio_se,
        ratio_five=five["rs"] / five["baseline"],
        ratio_analytic=truth.rs / truth.baseline,
        ratio_reuse=truth.rs_reuse / truth.baseline_reuse,
        kept=truth.baseline_reuse / truth.baseline,
        cost_baseline=means["baseline"].cost,
        cost_rs=means["rs"].cost,
        estimate_rs=means["rs"].estimate,
        estimate_rs_sd=means["rs"].estimate_sd,
        cost_adaptive=strict.cost,
        verdict_adaptive=strict.verdict,
        cost_tolerant=tolerant.cost,
        verdict_tolerant=tolerant.verdict,
    )


def _findings(summary: Sequence[Summary]) -> list[str]:
    frames, lines = words_of(NAME)["found"], []
    for title in dict.fromkeys(r.dataset for r in summary):
        rows = [r for r in summary if r.dataset == title]
        normal = [r for r in rows if r.classifier != "sense_attr"]
        (last,) = (r for r in rows if r.classifier == "sense_attr")
        line = frames["ratio"].format(
            dataset=title,
            measured=_range(r.ratio for r in normal),
            exact=_range(r.ratio_analytic for r in normal),
            error=max(r.ratio_se for r in normal),
            last=last.ratio,
            last_error=last.ratio_se,
            last_exact=last.ratio_analytic,
            reuse=_range(r.ratio_reuse for r in normal),
            kept=_range(r.kept for r in normal),
        )
        lines.append(line)
    free = sum(r.free != "INCONCLUSIVE" for r in summary)
    return [*lines, frames["free"].format(free=free, all=len(summary))]


def _about_rows(rows: Sequence[CompleteRows]) -> list[str]:
    moved = max(abs(r.complete_eod - r.all_eod) for r in rows)
    ratio = max(abs(r.complete_ratio - r.all_ratio) for r in rows)
    frame = words_of(NAME)["found"]["complete"]
    return [frame.format(moved=moved, ratio=ratio, rows=rows[0].complete_rows)]


def _range(numbers: Iterable[float]) -> str:
    values = list(numbers)
    low, high = f"{min(values):.3f}", f"{max(values):.3f}"
    return low if low == high else f"{low} to {high}"
