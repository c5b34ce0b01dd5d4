"""Approved people whose outcome is not known: bands that hold, whatever the unknown ones did."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import equipoise as eq
from equipoise.cells import Cells, GroupCells
from equipoise.errors import BadData, InvalidInput
from equipoise.history.past import Past
from equipoise.messages.shell import describe_error
from equipoise.metrics import gap_given_r
from equipoise.rates import RATES, band_from_counts, clopper_pearson
from equipoise.worlds import CellWorld
from tests.support.messages import refused

COLUMNS = {"group": "race", "decision": "granted", "outcome": "paid"}
POINTS = (0.0, 0.2, 0.5, 0.9, 1.0)


def past_of(cells: dict[str, GroupCells], *, exact: bool) -> Past:
    return Past(Cells(cells), exact=exact)


def open_book(size: int = 40_000) -> pd.DataFrame:
    """Approvals by a coin flip, a fair lender; outcomes come in sooner for one group."""
    rng = np.random.default_rng(5)
    race = rng.choice(["a", "b"], size)
    granted = rng.integers(0, 2, size)
    paid = (rng.random(size) < 0.7).astype(float)
    mature = rng.random(size) < np.where(race == "a", 0.95, 0.45)
    frame = pd.DataFrame({"race": race, "granted": granted, "year": rng.integers(2019, 2024, size)})
    frame["paid"] = np.where((granted == 1) & mature, paid, np.nan)
    frame["date"] = pd.to_datetime(frame.year.astype(str) + "-07-01")
    return frame


def test_the_advice_does_not_make_a_fair_lender_unfair() -> None:
    """To leave approved rows out, as was advised, made coin flips UNFAIR for certain."""
    book, question = open_book(), eq.Question("equalized_odds", 0.05, 0.05, 0.05)
    with pytest.raises(BadData) as caught:
        eq.History.read(book, **COLUMNS)
    in_shell = describe_error(caught.value)
    for words in ("a: ", " of ", "--unknown bounds", "--unknown like_known", "--until", "bias"):
        assert words in in_shell
    dropped = eq.History.read(book[(book.granted == 0) | book.paid.notna()], **COLUMNS)
    assert eq.check(dropped, question).verdict == "UNFAIR"
    for mode in ("bounds", "like_known"):
        history = eq.History.read(book, **COLUMNS, unknown=mode)
        assert history.cells.unknown == (book.granted.eq(1) & book.paid.isna()).sum()
        assert eq.check(history, question).verdict == "INCONCLUSIVE"
    finding = eq.check(
        eq.History.read(book, **COLUMNS, unknown="like_known", cohort="year"), question
    )
    assert any("are like the known ones" in line for line in finding.assumptions)
    assert "approved, ?" in str(eq.History.read(book, **COLUMNS, unknown="bounds"))


def test_a_cut_by_date_keeps_the_unknown_that_are_inside() -> None:
    book = open_book()
    with refused("outcome-unknown"):
        eq.History.read(book, **COLUMNS, date="date", until="2021-01-01")
    cut = eq.History.read(book, **COLUMNS, date="date", until="2021-01-01", unknown="bounds")
    assert cut.cells.total == book.year.lt(2021).sum()
    with pytest.raises(InvalidInput, match="'since' belongs to 'date'"):
        eq.History.read(book, **COLUMNS, since="2021-01-01")
    gap = book.assign(date=book.date.where(book.index != 3))
    british = book.assign(date=book.date.dt.strftime("%d/%m/%Y"))
    with refused("day-or-month-first", column="date"):
        eq.History.read(british, **COLUMNS, date="date", until="2021-01-01")
    with refused("date-missing", column="date", rows=1):
        eq.History.read(gap, **COLUMNS, date="date", since="2020-01-01")


def test_nothing_assumed_is_one_binomial_per_curve() -> None:
    counts, alpha = GroupCells(300, 80, 500, approved_unknown=120), 0.01
    tpr = band_from_counts(RATES["true_positive_rate"], counts, alpha)
    low, high = clopper_pearson(500, 800, alpha)[1], clopper_pearson(500, 920, alpha)[0]
    for r in POINTS:
        assert tpr.low.value_at(r) == pytest.approx(1 / (1 + low / (1 - low) * r))
        assert tpr.high.value_at(r) == pytest.approx(1 / (1 + high / (1 - high) * r))
    assert band_from_counts(RATES["selection_rate"], counts, alpha) == band_from_counts(
        RATES["selection_rate"], GroupCells(420, 80, 500), alpha
    )
    precision = band_from_counts(RATES["precision"], counts, alpha)
    assert precision.low.value_at(0) == pytest.approx(clopper_pearson(300, 500, alpha)[0])
    assert precision.high.value_at(0) == pytest.approx(clopper_pearson(420, 500, alpha)[1])


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("alpha", [None, 0.01])
def test_the_band_holds_every_completion(rate: str, alpha: float | None) -> None:
    """A band for unknown outcomes contains the band of whatever they turn out to be."""
    counts = GroupCells(30, 20, 60, approved_unknown=15)
    band = band_from_counts(RATES[rate], counts, alpha)
    for good in range(16):
        whole = GroupCells(30 + good, 20 + 15 - good, 60)
        known = band_from_counts(RATES[rate], whole, alpha)
        for r in POINTS:
            assert band.low.value_at(r) <= known.low.value_at(r) + 1e-12
            assert band.high.value_at(r) >= known.high.value_at(r) - 1e-12


@pytest.mark.parametrize("rate", RATES)
def test_like_known_holds_every_point_of_its_box(rate: str) -> None:
    """But those that are out of reach whatever the unknown ones are, at half of the level."""
    counts = GroupCells(30, 20, 60, 15, cohorts=((20, 5, 5), (10, 15, 0), (0, 0, 10)))
    band = band_from_counts(RATES[rate], counts, 0.05)
    without_assumption = band_from_counts(RATES[rate], GroupCells(30, 20, 60, 15), 0.025)
    s_box = clopper_pearson(60, 125, 0.05 if rate == "selection_rate" else 0.05 / 14)
    for s in np.linspace(*s_box, 7):
        for share in (30 / 50, 30 / 65, 40 / 65):
            curve = RATES[rate].curve((1 - s) * share, (1 - s) * (1 - share), s)
            assert curve is not None
            for r in POINTS:
                rate_at = curve.value_at(r)
                if (
                    without_assumption.low.value_at(r)
                    <= rate_at
                    <= without_assumption.high.value_at(r)
                ):
                    assert band.low.value_at(r) - 1e-9 <= rate_at <= band.high.value_at(r) + 1e-9


@pytest.mark.parametrize("rate", ["true_positive_rate", "false_positive_rate", "precision"])
def test_what_is_assumed_narrows(rate: str) -> None:
    """Never wider without end; with finite past by no more than its half of the level costs."""
    for late in (1, 20, 300, 900):
        good, bad = round(0.7 * (1_000 - late)), round(0.3 * (1_000 - late))
        late = 1_000 - good - bad
        plain = GroupCells(good, bad, 1_000, late)
        alike = GroupCells(good, bad, 1_000, late, cohorts=((good, bad, late),))
        for alpha, most in ((None, 1.0), (0.005, 1.1)):
            widths = [
                band.high.value_at(0.5) - band.low.value_at(0.5)
                for band in (band_from_counts(RATES[rate], n, alpha) for n in (alike, plain))
            ]
            assert widths[0] <= most * widths[1] + 1e-12
            assert late < 300 or widths[0] < 0.6 * widths[1]


def test_curves_that_meet_at_an_end_stay_curves() -> None:
    """FPR is 1 at r = 1 whatever the past; a constant in its place would be of no use."""
    for seed in range(20):
        good, bad, late, denied = np.random.default_rng(seed).multinomial(
            9_000, [0.2, 0.1, 0.2, 0.5]
        )
        half = (
            (good // 2, bad // 2, late // 2),
            (good - good // 2, bad - bad // 2, late - late // 2),
        )
        counts = GroupCells(good, bad, denied, late, cohorts=half)
        for rate in ("true_positive_rate", "false_positive_rate"):
            band = band_from_counts(RATES[rate], counts, 0.01)
            assert band.low.trend == band.high.trend != 0


def test_past_without_end_still_has_a_width() -> None:
    """Most outcomes of the approved are unknown: no number of labels can decide."""
    cells = {g: GroupCells(0.2, 0.1, 0.4, approved_unknown=0.3) for g in "ab"}
    past, question = past_of(cells, exact=True), eq.Question("equal_opportunity", 0.0, 0.02, 0.05)
    finding = eq.check(past, question)
    assert finding.lower == 0.0
    assert finding.upper > 0.4
    band = band_from_counts(RATES["true_positive_rate"], cells["a"], None)
    assert band.low.value_at(0.5) < band.high.value_at(0.5)
    audit = eq.AdaptiveAudit(past, question, eq.Costs())
    rng = np.random.default_rng(1)
    for at in range(4_000):
        if audit.finding is not None:
            break
        ticket = audit.ask(group="ab"[at % 2], decision=0)
        if ticket.want is eq.Want.LABEL:
            audit.tell(ticket, outcome=int(rng.random() < 0.5))
    assert audit.finding is not None
    assert audit.finding.verdict == "INCONCLUSIVE"
    assert any("not known" in line for line in audit.finding.missing)


@pytest.mark.parametrize("audit", [eq.RSAudit, eq.BaselineAudit])
def test_other_audits_refuse_it(audit: type) -> None:
    past = past_of({g: GroupCells(40, 10, 40, approved_unknown=10) for g in "ab"}, exact=False)
    with pytest.raises(InvalidInput, match="those of 20 are not known; the adaptive audit"):
        audit(past, eq.Question(), eq.Costs())
    plan = eq.plan(past, eq.Question("demographic_parity"), eq.Costs())
    assert plan.others == ()


@pytest.mark.parametrize("mode", ["bounds", "like_known"])
def test_the_interval_of_check_covers(mode: str) -> None:
    """Draw pasts in which outcomes are unknown for reasons of their own; the gap is inside."""
    rng, runs, delta = np.random.default_rng(8), 200, 0.2
    shares = {"a": (0.5, 0.1, 0.4), "b": (0.3, 0.2, 0.5)}
    unknown = {"a": (0.1, 0.1), "b": (0.5, 0.5)} if mode == "like_known" else {
        "a": (0.3, 0.0), "b": (0.0, 0.6)
    }  # fmt: skip
    r = {"a": 0.3, "b": 0.6}
    question = eq.Question("equal_opportunity", 0.05, 0.05, delta)
    truth = gap_given_r(Cells({g: GroupCells(*p) for g, p in shares.items()}), r, question.metric)
    missed = 0
    for _ in range(runs):
        drawn = {}
        for group, p in shares.items():
            good, bad, denied = rng.multinomial(400, p).tolist()
            lost = [
                int(rng.binomial(n, u)) for n, u in zip((good, bad), unknown[group], strict=True)
            ]
            own = (good - lost[0], bad - lost[1], sum(lost))
            cohorts = (own,) if mode == "like_known" else ()
            drawn[group] = GroupCells(own[0], own[1], denied, own[2], cohorts)
        finding = eq.check(past_of(drawn, exact=False), question)
        missed += not finding.lower <= truth <= finding.upper
    assert missed <= delta * runs + 3 * np.sqrt(delta * (1 - delta) * runs)


def test_a_world_has_no_unknown_outcomes() -> None:
    cells = Cells({g: GroupCells(40, 10, 40, approved_unknown=10) for g in "ab"})
    with pytest.raises(InvalidInput, match=r"C\*; of 'cells' the outcomes of 20 approved"):
        CellWorld(cells, {"a": 0.5, "b": 0.5})
    assert CellWorld(cells.like_known, {"a": 0.5, "b": 0.5}).gap("equal_opportunity") == 0.0
