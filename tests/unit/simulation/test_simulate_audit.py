from __future__ import annotations

import json

import joblib
import numpy as np
import pytest
from joblib._parallel_backends import ThreadingBackend

from equipoise.audits.base import Audit
from equipoise.audits.rs_audit import RSAudit
from equipoise.errors import InvalidInput, UnknownName
from equipoise.history.rows_until import draw_counts_in_finite_past, draw_counts_in_unlimited_past
from equipoise.protocol import Want
from equipoise.question import Costs, Question
from equipoise.simulation import Summary, run, simulate
from equipoise.worlds import CellWorld, MixtureWorld, Person, TableWorld

WORLD = CellWorld.from_shares(
    {"A": (0.45, 0.15, 0.40, 0.5), "B": (0.15, 0.15, 0.70, 0.3)}, shares={"A": 0.7, "B": 0.3}
)
QUESTION = Question(gamma=0.1, epsilon=0.2, delta=0.1)


class Stubborn(RSAudit):
    """RS-Audit under another class: the simulator may not take the fast way."""


def test_arrays_have_one_entry_per_repeat_and_follow_the_seed() -> None:
    sims = [
        simulate("rs", WORLD, QUESTION, Costs(), repeats=7, seed=seed, tau=10) for seed in (1, 1, 2)
    ]
    for name in ("verdict", "cost", "labels", "features", "estimate", "lower", "upper"):
        assert len(getattr(sims[0], name)) == 7
        assert np.array_equal(getattr(sims[0], name), getattr(sims[1], name))
    assert not np.array_equal(sims[0].cost, sims[2].cost)
    assert set(sims[0].verdict) <= {"FAIR", "UNFAIR", "INCONCLUSIVE"}


def test_runs_are_the_same_however_many_jobs() -> None:
    """Person by person and in blocks; ``n_jobs=None`` follows joblib's own setting."""
    for audit, options in ((Stubborn, {"tau": 5}), ("adaptive", {})):
        one, two = (
            simulate(audit, WORLD, QUESTION, Costs(), repeats=4, seed=3, n_jobs=jobs, **options)
            for jobs in (1, 2)
        )
        with joblib.parallel_config(backend="loky", n_jobs=2):
            told = simulate(audit, WORLD, QUESTION, Costs(), repeats=4, seed=3, **options)
        for other in (two, told):
            assert np.array_equal(one.cost, other.cost)
            assert np.array_equal(one.estimate, other.estimate, equal_nan=True)


def test_none_is_as_many_jobs_as_joblib_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    start = ThreadingBackend.configure

    def configure(self: ThreadingBackend, n_jobs: int = 1, **more: object) -> int:
        seen.append(n_jobs)
        return int(start(self, n_jobs, **more))

    monkeypatch.setattr(ThreadingBackend, "configure", configure)
    with joblib.parallel_config(backend="threading", n_jobs=3):
        assert len(simulate(Stubborn, WORLD, QUESTION, Costs(), repeats=5, tau=5)) == 5
    assert set(seen) == {3}


def test_any_precision_is_possible() -> None:
    sim = simulate("baseline", WORLD, Question(gamma=0.1, epsilon=1e-4), Costs(), repeats=3)
    assert np.all(sim.labels > 10**11)
    assert np.all(sim.verdict == "UNFAIR")
    assert sim.estimate == pytest.approx(WORLD.gap("equalized_odds"), abs=1e-4)


def test_summary_counts_errors_against_the_truth() -> None:
    sim = simulate("rs", WORLD, QUESTION, Costs(), repeats=50, tau=3)
    assert set(np.unique(sim.wrong)) <= {False, True}
    summary = sim.summary()
    assert summary.errors == sim.wrong.sum()
    assert sum(summary.verdicts.values()) == pytest.approx(1.0)
    assert summary.error_rate.lower <= summary.errors / 50 <= summary.error_rate.upper
    assert Summary.from_json(summary.to_json()) == summary
    text = str(sim)
    assert "50 runs" in text
    assert f"{summary.mean_labels:,.6g} labels" in text


def test_a_dry_past_is_inconclusive_with_what_is_known() -> None:
    sim = simulate("rs", WORLD, QUESTION, Costs(), repeats=3, history_size=200)
    assert set(sim.verdict) == {"INCONCLUSIVE"}
    assert np.all(sim.cost == 0)
    assert np.all(np.isnan(sim.estimate))
    truth = WORLD.gap("equalized_odds")
    assert np.all((sim.lower <= truth) & (truth <= sim.upper))
    assert json.loads(sim.to_json())["estimate"] == [None] * 3


def test_a_past_that_lacks_a_group_says_nothing() -> None:
    rare = CellWorld.from_shares(
        {"A": (0.45, 0.15, 0.40, 0.5), "B": (0.15, 0.15, 0.70, 0.3)}, shares={"A": 1, "B": 1e-9}
    )
    for audit in ("rs", Stubborn):
        sim = simulate(audit, rare, QUESTION, Costs(), repeats=2, history_size=30, tau=2)
        assert set(sim.verdict) == {"INCONCLUSIVE"}
        assert sim.lower.tolist() == [0, 0]
        assert sim.upper.tolist() == [1, 1]


def test_where_a_group_is_never_approved_the_free_check_answers() -> None:
    for approved, expected in ((0.5, "UNFAIR"), (0.01, "INCONCLUSIVE")):
        own = (approved, approved, 1.0 - 2 * approved, 0.5)
        shares = {"A": own, "B": (0.0, 0.0, 1.0, 0.4)}
        sim = simulate("rs", CellWorld.from_shares(shares), QUESTION, Costs(), repeats=2)
        assert set(sim.verdict) == {expected}
        assert sim.cost.tolist() == [0.0, 0.0]


def test_demographic_parity_is_free() -> None:
    sim = simulate("rs", WORLD, Question("demographic_parity"), Costs(), repeats=2)
    assert sim.cost.tolist() == [0.0, 0.0]
    assert sim.verdict.tolist() == ["UNFAIR", "UNFAIR"]


def test_late_surplus_labels_are_paid_for() -> None:
    def slow(outcome: int, rng: np.random.Generator) -> int:
        return 30

    prompt = simulate("rs", WORLD, QUESTION, Costs(1.0, 0.0), repeats=20, tau=5, people=10**6)
    late = simulate("rs", WORLD, QUESTION, Costs(1.0, 0.0), repeats=20, tau=5, delay=slow)
    assert late.cost.mean() > prompt.cost.mean()
    assert np.all(late.cost == late.labels)


def test_people_who_vanish_leave_the_audit_inconclusive() -> None:
    sim = simulate("rs", WORLD, QUESTION, Costs(), repeats=3, tau=50, delay=lambda y, rng: None)
    assert set(sim.verdict) == {"INCONCLUSIVE"}


def test_the_stream_may_end() -> None:
    sim = simulate("rs", WORLD, QUESTION, Costs(), repeats=3, tau=50, people=40)
    assert set(sim.verdict) == {"INCONCLUSIVE"}
    assert np.all(sim.labels <= 40)


def test_tables_are_simulated_like_their_cells() -> None:
    people = WORLD.draw(2_000, 1)
    table = TableWorld(people.groups, people.group, people.decision, people.outcome)
    fast = simulate("rs", table, QUESTION, Costs(), repeats=5, tau=30)
    same = simulate("rs", table.as_cells, QUESTION, Costs(), repeats=5, tau=30)
    assert np.array_equal(fast.cost, same.cost)
    slow = simulate(Stubborn, table, QUESTION, Costs(), repeats=2, tau=3, history_size=500)
    assert len(slow) == 2


def test_bad_settings_are_refused() -> None:
    with pytest.raises(UnknownName, match="unknown audit 'rss'"):
        simulate("rss", WORLD, QUESTION, Costs())
    with pytest.raises(UnknownName, match="unknown option of the audit 'rs': 'taau'"):
        simulate("rs", WORLD, QUESTION, Costs(), taau=5)
    for audit in (None, int, ["rs"]):
        with pytest.raises(InvalidInput, match="'audit' must be the name of an audit"):
            simulate(audit, WORLD, QUESTION, Costs())  # type: ignore[arg-type]
    for name in ("repeats", "history_size", "people"):
        for value in (0, -5, 1.5, "5"):
            with pytest.raises(InvalidInput, match=f"'{name}' must be a whole number of at least"):
                simulate("rs", WORLD, QUESTION, Costs(), **{name: value})  # type: ignore[arg-type]
    for value in (0, 1.5, "2", True):
        with pytest.raises(InvalidInput, match="'n_jobs' must be a number of processes"):
            simulate("rs", WORLD, QUESTION, Costs(), n_jobs=value)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="'tau' must be a whole number"):
        simulate("rs", WORLD, QUESTION, Costs(), tau=0)
    with pytest.raises(InvalidInput, match="cannot answer 'metric'"):
        simulate("rs", WORLD, Question("accuracy_parity"), Costs())


class Curious(RSAudit):
    """Writes down the order in which answers come."""

    def tell(self, ticket, outcome=None, features=None) -> None:  # type: ignore[no-untyped-def]
        self.told = [*getattr(self, "told", []), ticket.number]
        super().tell(ticket, outcome, features)


def test_delays_count_arrivals() -> None:
    audit = Curious(WORLD.past(), QUESTION, Costs(), tau=30)
    run(audit, WORLD, 0, delay=lambda outcome, rng: 0 if outcome == 0 else 7)
    assert sorted(audit.told) != audit.told  # early failures overtake late successes
    assert len(set(audit.told)) == len(audit.told)


def test_approved_people_are_passed_over_if_nobody_looks_at_them() -> None:
    asked: list[int] = []

    class DeniedOnly(RSAudit):
        wants_approved = False

        def _choose_want(self, group: str, decision: int) -> Want:
            asked.append(decision)
            return super()._choose_want(group, decision)

    run(DeniedOnly(WORLD.past(), QUESTION, Costs(), tau=3), WORLD, 0)
    assert set(asked) == {0}


def test_run_feeds_features_when_the_world_has_them() -> None:
    seen: list[np.ndarray] = []

    class Feature(RSAudit):
        def _choose_want(self, group: str, decision: int) -> Want:
            return Want.FEATURES

        def _learn(self, answer):  # type: ignore[no-untyped-def]
            seen.append(answer.features)
            return self._conclude("enough") if len(seen) == 3 else None

    people = WORLD.draw(100, 1)
    table = TableWorld(
        people.groups, people.group, people.decision, people.outcome, np.arange(100.0)[:, None]
    )
    audit: Audit = Feature(table.past(), QUESTION, Costs(), tau=5)
    run(audit, table, 0)
    assert [x.shape for x in seen] == [(1,)] * 3


def test_counts_at_the_stops_add_up() -> None:
    rng = np.random.default_rng(0)
    counts = draw_counts_in_unlimited_past(rng, 50, [0, 2], np.array([0.5, 0.3, 0.2]), 400)
    assert np.all(counts[:, 0, 0] == 50)
    assert np.all(counts[:, 1, 2] == 50)
    first = np.where(counts[:, 0, 2] < 50, 0, 1)  # the goal reached first has the smaller counts
    early, late = counts[np.arange(400), first], counts[np.arange(400), 1 - first]
    assert np.all(early <= late)
    totals = np.tile([60, 40, 30], (400, 1))
    counts = draw_counts_in_finite_past(rng, 30, [0, 2], totals)
    assert np.all(counts <= totals[:, None, :])
    assert np.all(counts[:, 1, 2] == 30)
    assert not draw_counts_in_finite_past(rng, 31, [2], totals).any()  # the past runs dry


def test_people_iterate_as_persons() -> None:
    assert all(isinstance(person, Person) for person in WORLD.draw(5))


def test_the_fall_back_of_exp_reads_the_past_of_its_own_run() -> None:
    """RS-Audit has no answer exactly where that past holds fewer than tau people of some kind."""
    world, size, tau, repeats = MixtureWorld.synthetic(2.0), 400, 21, 12
    sim = simulate(
        "exp", world, Question(gamma=0.0, epsilon=0.3), Costs(), repeats=repeats, seed=3,
        history_size=size, tau=tau,
    )  # fmt: skip
    pasts = [
        world.past(size, np.random.default_rng(seed)).cells.values()
        for seed in np.random.SeedSequence(3).spawn(repeats)
    ]
    dry = [min(min(c.approved_positive, c.approved_negative) for c in past) < tau for past in pasts]
    assert 0 < sum(dry) < repeats
    assert (sim.verdict == "INCONCLUSIVE").tolist() == dry
