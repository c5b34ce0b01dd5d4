"""Labels that exist already: people whom a test programme accepted although they were denied."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import mannwhitneyu

import equipoise as eq
from equipoise.audits.base import Step
from equipoise.cells import Cells, GroupCells
from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.history.counting import count_table
from equipoise.history.options import ReadOptions
from equipoise.history.problems import UnreadTable
from equipoise.history.randomness import rank_denied
from equipoise.history.rank_counts import rank_counts
from equipoise.messages import shell
from equipoise.messages.shell import describe_error
from equipoise.protocol import Ticket, Want
from equipoise.rates import clopper_pearson
from equipoise.worlds import CellWorld
from tests.profiles import quick
from tests.support.messages import note_of, refused
from tests.unit.evidence.states import missing, weighed

COLUMNS = {"group": "race", "decision": "granted", "outcome": "paid", "random_accepts": "test"}


def programme(size: int, seed: int, *, share: float = 0.02, r: float = 0.5) -> pd.DataFrame:
    """Return past decisions of which some denials were overridden at random."""
    rng = np.random.default_rng(seed)
    race = rng.choice(["a", "b"], size)
    granted = rng.random(size) < 0.6
    test = ~granted & (rng.random(size) < share)
    good = rng.random(size) < np.where(granted, 0.8, r)
    paid = np.where(granted | test, good.astype(float), np.nan)
    return pd.DataFrame({"race": race, "granted": (granted | test) * 1, "paid": paid, "test": test})


def test_they_count_as_denied_and_their_outcomes_are_kept() -> None:
    data = programme(20_000, 0)
    history = eq.History.read(data, **COLUMNS)
    own = data[(data.race == "a") & data.test]
    cells = history.cells["a"]
    assert cells.random_accepts == (own.paid.eq(1).sum(), own.paid.eq(0).sum(), 0)
    assert cells.approved == ((data.race == "a") & (data.granted == 1) & ~data.test).sum()
    assert cells.total == (data.race == "a").sum()
    good, bad, unknown = cells.random_accepts
    low, high = clopper_pearson(good, good + bad + unknown, 0.01, unknown)
    assert low < 0.5 < high
    finding = eq.check(history, eq.Question("equal_opportunity", 0.2, 0.1, 0.05))
    assert finding.verdict == "FAIR"
    assert any("test programme" in line for line in finding.assumptions)
    without = data.assign(paid=data.paid.mask(data.test), granted=data.granted.mask(data.test, 0))
    options = {name: column for name, column in COLUMNS.items() if name != "random_accepts"}
    blind = eq.check(eq.History.read(without, **options), finding.question)
    assert blind.verdict == "INCONCLUSIVE"


def test_outcomes_that_are_not_known_are_withdrawn() -> None:
    data = programme(20_000, 2)
    late = data.test & (np.arange(len(data)) % 3 == 0)
    cells = eq.History.read(data.assign(paid=data.paid.mask(late)), **COLUMNS).cells
    assert sum(c.random_accepts[2] for c in cells.values()) == late.sum()
    audit = eq.AdaptiveAudit(eq.History.from_cells(cells), eq.Question(), eq.Costs())
    assert audit.evidence is not None
    assert audit.evidence.log.n_told.sum() == data.test.sum() - late.sum()


def test_the_audit_takes_them_first_and_for_nothing() -> None:
    question = eq.Question("equal_opportunity", 0.1, 0.15, 0.05)
    ended = eq.AdaptiveAudit(
        eq.History.read(programme(100_000, 3), **COLUMNS), question, eq.Costs()
    )
    assert ended.finding is not None
    assert ended.finding.verdict == "FAIR"
    assert (ended.finding.cost, ended.finding.labels) == (0.0, 0)


def test_the_order_of_the_file_does_not_matter() -> None:
    """Sorted by outcome the labels would refute at once, taken as they stand."""
    data = programme(30_000, 4)
    question = eq.Question("equal_opportunity", 0.0, 0.05, 0.05)
    audits = [
        eq.AdaptiveAudit(eq.History.read(one, **COLUMNS), question, eq.Costs())
        for one in (data, data.sort_values("paid"))
    ]
    assert audits[0].finding is audits[1].finding is None
    one, other = (audit.evidence for audit in audits)
    assert one is not None
    assert other is not None
    assert one.log.labels.tolist() == other.log.labels.tolist()
    assert one.plan.shares.tolist() == other.plan.shares.tolist()


def table(seed: int, groups: int) -> dict[str, GroupCells]:
    """Return past counts of groups, now and then alike, with a few labels of a programme."""
    rng = np.random.default_rng(seed)
    past = [rng.multinomial(4_000, rng.dirichlet([60, 40, 80])).tolist() for _ in range(groups)]
    if rng.random() < 0.5:
        past[1] = past[0]
    labels = [tuple(rng.multinomial(120, rng.dirichlet([4, 4, 0.3])).tolist()) for _ in past]
    return {
        f"g{i}": GroupCells(*own, random_accepts=accepted)
        for i, (own, accepted) in enumerate(zip(past, labels, strict=True))
    }


@pytest.mark.parametrize("accepts", [True, False], ids=["random accepts", "none"])
@pytest.mark.parametrize("groups", quick([2, 3], full=[2, 3, 4]))
def test_renamed_groups_get_the_same_answer(groups: int, accepts: bool) -> None:
    """Of check, and of an audit before and after labels; also where the past tells none apart."""
    question = eq.Question("equal_opportunity", 0.05, quick(0.2, full=0.1), 0.3)
    for seed in range(quick(1, full=256)):
        cells = table(seed, groups)
        if not accepts:
            cells = {name: replace(own, random_accepts=()) for name, own in cells.items()}
        names = np.random.default_rng(seed).permutation(list(cells)).tolist()
        renamed = dict(zip(names, sorted(names), strict=True))
        one = answers(cells, {name: name for name in names}, question, seed)
        other = answers(
            {renamed[name]: cells[name] for name in sorted(names, key=renamed.get)},
            renamed,
            question,
            seed,
        )
        assert one[0] == other[0]
        assert np.allclose(one[1], other[1], rtol=1e-9)


def answers(
    cells: dict[str, GroupCells], names: dict[str, str], question: eq.Question, seed: int
) -> tuple[list[object], np.ndarray]:
    """Return what check and an audit say, and the evidence against the hardest cells.

    The audit gets 150 labels of the same people, whatever their groups are called.
    """
    history, rng = eq.History.from_cells(Cells(cells)), np.random.default_rng(seed)
    audit = eq.AdaptiveAudit(history, question, eq.Costs())
    assert audit.evidence is not None
    said, least = [*bounds(eq.check(history, question))], []
    for labels in (0, 50, 100):
        log = []
        for number in range(audit.labels, audit.labels + labels):
            group = names[f"g{rng.integers(len(names))}"]
            ticket = Ticket(number, group, 0, Want.LABEL, 1.0)
            log += [Step("asked", ticket), Step("told", ticket, int(rng.random() < 0.5))]
        audit.restore(log)
        said += bounds(audit.so_far())
        least += [np.sort(nats)[-5:] for nats in missing(audit.evidence)]
    return said, np.sort(np.concatenate(least))


def bounds(finding: eq.Finding) -> tuple[object, ...]:
    return finding.verdict, round(finding.lower, 12), round(finding.upper, 12)


def test_silence_only_lowers_the_evidence() -> None:
    """Whatever is hidden, of every cell; so nobody gets a verdict by hiding outcomes."""
    question = eq.Question("equal_opportunity", 0.05, quick(0.2, full=0.1), 0.1)
    for seed in range(quick(1, full=4)):
        cells, rng = table(seed, 3), np.random.default_rng(seed)
        whole = eq.AdaptiveAudit(eq.History.from_cells(Cells(cells)), question, eq.Costs())
        for _ in range(3):
            less = {
                group: replace(own, random_accepts=hidden(own.random_accepts, rng))
                for group, own in cells.items()
            }
            audit = eq.AdaptiveAudit(eq.History.from_cells(Cells(less)), question, eq.Costs())
            for now, then in zip(weighed(audit.evidence), weighed(whole.evidence), strict=True):  # type: ignore[arg-type]
                assert (now <= then * (1.0 + 1e-9)).all()


def hidden(
    accepted: tuple[float, float, float], rng: np.random.Generator
) -> tuple[float, float, float]:
    good, bad, unknown = accepted
    fewer = rng.integers(0, 4, size=2)
    return good - fewer[0], bad - fewer[1], unknown + fewer.sum()


def test_a_file_that_grows_brings_labels_only() -> None:
    """Bets are those of the first look; a file in which somebody is missing is refused."""
    cells = {group: replace(own, random_accepts=(3, 2, 5)) for group, own in table(1, 3).items()}
    question = eq.Question("equal_opportunity", 0.05, quick(0.2, full=0.1))
    audit = eq.AdaptiveAudit(eq.History.from_cells(Cells(cells)), question, eq.Costs())
    assert audit.evidence is not None
    later = dict.fromkeys(cells, (8, 4, 6))
    audit.set_random_accepts(later)
    grown = {group: replace(own, random_accepts=later[group]) for group, own in cells.items()}
    at_once = eq.AdaptiveAudit(eq.History.from_cells(Cells(grown)), question, eq.Costs())
    for one, other in zip(weighed(audit.evidence), weighed(at_once.evidence), strict=True):  # type: ignore[arg-type]
        assert np.allclose(one, other, rtol=1e-12)
    for fewer in ((8, 4, 5), (7, 5, 6), (9, 3, 6)):
        with pytest.raises(InvalidInput, match="must list everybody of the last file"):
            audit.set_random_accepts({**later, "g0": fewer})
    audit.set_random_accepts({**later, "g0": (7, 5, 6)}, corrected={"g0": 1})
    with pytest.raises(UnknownName, match="g9"):
        audit.set_random_accepts({"g9": (1, 1, 1)})


def test_a_later_file_does_not_meet_labels_as_they_once_were() -> None:
    """Its labels were not there when earlier ones, since then outweighed, pointed to a gap.

    The best moment of the labels times the best one of the file would be no supermartingale.
    """
    world = CellWorld.from_shares({"A": (0.3, 0.2, 0.5, 0.3), "B": (0.3, 0.1, 0.6, 0.5)})
    question = eq.Question("equal_opportunity", 0.1, 0.1, 0.1)
    audit = eq.AdaptiveAudit(world.past(), question, eq.Costs())
    number = 0
    for good_of_ten in ({"A": 3, "B": 7}, {"A": 5, "B": 5}, {"A": 7, "B": 3}):
        for place in range(10):
            for group, good in good_of_ten.items():
                ticket = Ticket(number, group, 0, Want.LABEL, 1.0)
                audit.restore([Step("asked", ticket), Step("told", ticket, int(place < good))])
                number += 1
    assert audit.finding is None
    audit.set_random_accepts({"A": (9, 21, 0), "B": (21, 9, 0)})
    assert audit.finding is None  # 24 of 60 and 36 of 60 good in all
    audit.set_random_accepts({"A": (36, 84, 0), "B": (84, 36, 0)})
    assert audit.finding is not None
    assert audit.finding.verdict == "UNFAIR"


def test_groups_that_differ_by_cohorts_alone_may_be_renamed() -> None:
    counts = {"approved_positive": 600, "approved_negative": 200, "denied": 1000}
    one = GroupCells(**counts, approved_unknown=200, cohorts=((300, 100, 200), (300, 100, 0)))
    other = replace(one, cohorts=((500, 20, 20), (100, 180, 180)))
    question = eq.Question("equal_opportunity", 0.05, 0.3, 0.3)
    orders = []
    for cells in ({"a": one, "b": other}, {"a": other, "b": one}):
        audit = eq.AdaptiveAudit(eq.History.from_cells(Cells(cells)), question, eq.Costs())
        orders.append([cells[group] for group in audit.groups])
    assert orders[0] == orders[1]


@pytest.mark.parametrize(
    "accepted",
    [(float("nan"), 1, 1), (-5, 5, 3), (True, 2, 3), ("1", 1, 1), (1, 2), (30, 0, 0), (1.5, 2, 3)],
)
def test_counts_that_are_none_are_refused(accepted: tuple[float, ...]) -> None:
    """A negative count of good outcomes made one group's rate look low."""
    cells = {"approved_positive": 60, "approved_negative": 20, "denied": 20}
    with pytest.raises(InvalidInput, match="'random_accepts'"):
        eq.History.from_cells({"A": {**cells, "random_accepts": accepted}, "B": cells})


def test_the_mark_must_be_yes_or_no() -> None:
    with refused("random-accepts-not-bits", column="test", value="maybe"):
        eq.History.read(programme(500, 5).assign(test="maybe"), **COLUMNS)


def test_a_programme_for_near_misses_is_refused() -> None:
    """Scores and dates say whether everybody denied had the same chance."""
    data = programme(20_000, 6)
    rng = np.random.default_rng(7)
    data["score"] = rng.integers(5, 100, len(data))  # as text 10 would come before 9
    data["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, len(data)), "D")
    against = {"random_accepts_against": ["score", "day"]}
    history = eq.History.read(data, **COLUMNS, **against)
    assert note_of(history, "programme-tested").fields["columns"] == ["score", "day"]
    untested = note_of(eq.History.read(data, **COLUMNS), "programme-untested")
    assert "--random-accepts-against COLUMN" in shell.describe(untested)
    near = data.assign(score=np.where(data.test, data.score + 20, data.score))
    late = data.assign(day=data.day.where(~data.test, data.day + pd.Timedelta(days=90)))
    for biased, column in ((near, "score"), (near.astype({"score": str}), "score"), (late, "day")):
        with pytest.raises(
            BadData, match=f"their '{column}' differs from that of the other denied"
        ):
            eq.History.read(biased, **COLUMNS, **against)
    with pytest.raises(BadData, match="their 'day' differs"):
        eq.History.read(late, **COLUMNS, date="day", since="2024-01-01")
    with pytest.raises(InvalidInput, match="belongs to 'random_accepts'"):
        eq.History.read(data, group="race", decision="granted", outcome="paid", **against)


def test_a_programme_is_not_tested_against_text_that_has_no_order() -> None:
    data = programme(2_000, 8)
    months = pd.Series(np.arange(len(data)) % 12 + 1).astype(str)
    for wrong in ("05/" + months.str.zfill(2) + "/2023", "0," + months, "north"):
        with refused("not-numbers", column="by"):
            eq.History.read(data.assign(by=wrong), **COLUMNS, random_accepts_against="by")
    iso, german = ("2023-" + months.str.zfill(2) + "-15", "15." + months.str.zfill(2) + ".2023")
    for days in (iso, german):
        past = eq.History.read(data.assign(by=days), **COLUMNS, random_accepts_against="by")
        assert "tested against by" in str(past)
        assert eq.History.read(data.assign(by=days), **COLUMNS, date="by", since="2023-01-01")


def test_ranks_from_counts_are_compared_as_scipy_does() -> None:
    rng = np.random.default_rng(3)
    for highest in (1, 8, 10**9):
        accepted = rng.integers(0, highest, 60)
        others = rng.integers(0, highest, 90) + (highest > 8)
        expected = mannwhitneyu(accepted, others, method="asymptotic", use_continuity=False).pvalue
        values = np.concatenate([accepted, others])
        ranks = rank_counts(values, np.arange(150) < 60, np.ones(150))
        assert ranks.p_value == pytest.approx(1.0 if highest == 1 else expected, rel=1e-12)
    assert rank_counts(np.arange(3.0), np.zeros(3), np.ones(3)).p_value == 1.0


def test_scores_are_ranked_where_they_are(tmp_path: Path) -> None:
    """DuckDB ranks a continuous score; the p-values are those of scipy on the rows."""
    data = programme(3_000, 9, share=0.2)
    rng = np.random.default_rng(10)
    score = rng.normal(size=len(data)) + 0.1 * data.test
    score = np.where(rng.random(len(data)) < 0.3, score.round(1), score)
    score = pd.Series(score).mask(rng.random(len(data)) < 0.05)
    data = data.assign(**{'a "score": x': score})
    data.to_csv(tmp_path / "past.csv", index=False, na_rep="N/A")
    data.to_parquet(tmp_path / "past.parquet")
    by_group = {}
    for race, rows in data[(data.granted == 0) | data.test].groupby("race"):
        samples = [score[rows.index[rows.test == flag]].dropna() for flag in (True, False)]
        test = mannwhitneyu(*samples, method="asymptotic", use_continuity=False)
        by_group[race] = test.pvalue
    options = ReadOptions(**COLUMNS)
    for source in (data, tmp_path / "past.csv", tmp_path / "past.parquet", pl.LazyFrame(data)):
        ranks = rank_denied(count_table(source, options), 'a "score": x')
        found = {group: rank_sums.p_value for group, rank_sums in ranks.items()}
        assert found == pytest.approx(by_group, rel=1e-12)


def test_the_error_offers_the_programme_and_its_people_are_no_mystery() -> None:
    data = programme(4_000, 8, share=0.1)
    denied = data.assign(granted=data.granted.mask(data.test, 0))
    plain = {name: column for name, column in COLUMNS.items() if name != "random_accepts"}
    with refused("denied-with-outcome") as caught:
        eq.History.read(denied.drop(columns="test"), **plain)
    assert "at random, mark them: random_accepts=COLUMN." in str(caught.value)
    assert "at random, mark them: --random-accepts COLUMN." in describe_error(caught.value)
    with refused("denied-with-outcome-marked", mark_column="test") as caught:
        eq.History.read(denied, **plain)
    assert isinstance(caught.value, UnreadTable)
    assert caught.value.proposal is not None
    assert caught.value.proposal.arguments["random_accepts"] == "test"
    assert "denied_outcomes='ignore'" in str(caught.value)
    cells = eq.History.read(denied, **COLUMNS).cells
    assert cells == eq.History.read(data, **COLUMNS).cells
    for group, own in cells.items():
        nobody = (data.race == group) & (data.granted == 0)
        assert own.denied_without_outcome == nobody.sum() < own.denied
