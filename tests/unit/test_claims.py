"""What the product claims about its answers: levels, proofs, ranges, the same in every face.

Each test names what revision 92e8ad8 printed instead.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from typer.testing import CliRunner

import equipoise as eq
from equipoise.audits.estimated_rates import paper_tau
from equipoise.cells import Cells, GroupCells
from equipoise.cli.app import app
from equipoise.display import format_hundredths, format_level
from equipoise.errors import LedgerError
from equipoise.finding import Finding, Interval, ProofStatus
from equipoise.ledger.state import AuditState
from equipoise.messages.answer import build_answer
from equipoise.metrics import METRICS
from equipoise.question import Question, Verdict
from equipoise.rates import RATES
from equipoise.report import Report, to_html, write_check
from equipoise.service.access import Caller
from equipoise.service.forms import render_page
from equipoise.service.snapshot import Snapshot
from equipoise.service.tokens import Role
from equipoise.worlds import CellWorld
from tests.profiles import quick

ALIKE = {
    "A": {"approved_positive": 9000, "approved_negative": 500, "denied": 500},
    "B": {"approved_positive": 9000, "approved_negative": 480, "denied": 520},
}
APART = {
    "White": {"approved_positive": 6000, "approved_negative": 1000, "denied": 3000},
    "Black": {"approved_positive": 3000, "approved_negative": 500, "denied": 6500},
}
UNEQUAL = {"delta_wrong_fair": 0.2, "delta_wrong_unfair": 0.001}
EASY = {"A": (0.5, 0.1, 0.4, 0.5), "B": (0.5, 0.1, 0.4, 0.5)}
SHORT_PAST = eq.History.from_cells(
    Cells({"A": GroupCells(4_000, 4_000, 10), "B": GroupCells(40, 30, 8_000)})
)


def text_of(page: str) -> str:
    """Return what a reader of a page sees, in one line."""
    body = re.sub(r"<style.*?</style>", " ", page, flags=re.DOTALL)
    words = unescape(re.sub(r"<[^>]+>", " ", body)).split()
    return " ".join(words).replace(" ,", ",").replace(" .", ".")


def report_of(cells: dict[str, dict[str, int]], question: Question) -> Report:
    past = eq.History.from_cells(cells)
    live = eq.LiveAudit.create("sqlite://", "x", past, question, eq.Costs(1, 100))
    return Report.of(live)


# -- 1: the error probability of the verdict that was given ----------------------------------------


def test_fair_states_the_probability_of_a_wrong_fair() -> None:
    """92e8ad8: "Audits like this one answer wrongly with probability at most 0.1%." after FAIR."""
    question = Question("demographic_parity", **UNEQUAL)
    report = report_of(ALIKE, question)
    assert report.finding.verdict is Verdict.FAIR
    assert report.finding.error_level == 0.2
    assert "less often than another (error probability at most 20%)." in text_of(to_html(report))
    free = eq.check(eq.History.from_cells(ALIKE), question)
    assert (free.error_level, free.range_level) == (0.2, 0.2)
    assert "error probability at most 20%" in str(free)


def test_a_table_of_all_rates_has_the_level_of_its_finding() -> None:
    """92e8ad8: the larger of delta and of both levels, though delta is spent nowhere.

    A free check spent delta on its ranges until they and the verdict became one answer.
    """
    question = Question("demographic_parity", delta=0.3, delta_wrong_fair=0.1,
                        delta_wrong_unfair=0.02)  # fmt: skip
    report = report_of(ALIKE, question)
    assert report.finding.range_level == 0.1
    page = text_of(to_html(report))
    assert "These ranges and the verdict hold together (error probability at most 10%)" in page
    assert eq.check(eq.History.from_cells(ALIKE), question).range_level == 0.1


# -- 2: RS-Audit and Baseline on a short past ------------------------------------------------------


@pytest.mark.parametrize("kind", [eq.RSAudit, eq.BaselineAudit])
def test_a_short_past_spends_what_is_printed(kind: type[eq.RSAudit]) -> None:
    """92e8ad8 printed 0.001 and 0.002, and checked with 0.2 for FAIR."""
    question = Question("equal_opportunity", gamma=0.1, epsilon=0.4, **UNEQUAL)
    past = eq.History.from_cells(Cells({group: GroupCells(40, 5, 20) for group in "AB"}))
    spent_in_full = eq.check(past, question)
    finding = kind(past, question, eq.Costs()).finding
    assert finding is not None
    assert spent_in_full.verdict is Verdict.FAIR  # with the 0.2 that nothing printed
    assert finding.verdict is Verdict.INCONCLUSIVE  # with 0.001


def test_the_printed_threshold_states_both_endings() -> None:
    """92e8ad8: "at most 5.0%" by labels, and 2 delta only where the past ran dry."""
    question = Question("equal_opportunity", gamma=0.1, epsilon=0.8, delta=0.05)
    tau = paper_tau(question, groups=2)
    world = CellWorld.from_shares({"A": (0.9, 0.05, 0.05, 0.5), "B": (0.9, 0.05, 0.05, 0.5)})
    finding = eq.run(eq.RSAudit(world.past(40 * tau), question, eq.Costs()), world, seed=1)
    assert finding.verdict is Verdict.FAIR
    assert (finding.error_level, finding.proof) == (0.1, ProofStatus.PROVEN)
    assert any("both together with probability at most 0.1" in a for a in finding.assumptions)
    unlimited = eq.run(eq.RSAudit(world.past(), question, eq.Costs()), world, seed=1)
    assert unlimited.error_level == 0.05
    exact = eq.run(eq.RSAudit(world.past(40 * tau), question, eq.Costs(), tau="exact"), world, 1)
    assert exact.error_level == 0.05
    short = eq.RSAudit(SHORT_PAST, Question(delta=0.02), eq.Costs()).finding
    assert short is not None
    assert short.verdict is Verdict.UNFAIR
    assert (short.error_level, short.range_level) == (0.04, 0.04)
    assert "both together with probability at most 0.04" in short.assumptions[-1]


# -- 3: one meaning of "guaranteed", and the proof -------------------------------------------------


def test_guaranteed_takes_no_assumption_of_the_user() -> None:
    """92e8ad8: guaranteed is True for verdicts under ``assume`` and by outcomes like the known."""
    question = Question("equal_opportunity", gamma=0.05, epsilon=0.2)
    past = eq.History.from_cells(Cells({group: GroupCells(8000, 500, 900) for group in "AB"}))
    plain = eq.check(past, question)
    assert (plain.guaranteed, plain.proof) == (True, ProofStatus.PROVEN)
    assumed = eq.check(past, question, assume=eq.Assume(denied_no_better=True))
    assert assumed.verdict is Verdict.FAIR
    assert (assumed.guaranteed, assumed.proof) == (False, ProofStatus.UNDER_ASSUMPTIONS)
    assert "(error probability at most 5% if the stated assumptions hold)" in str(assumed)
    like_known = GroupCells(8000, 500, 900, 100, cohorts=((8000, 500, 100),))
    free = eq.check(eq.History.from_cells(Cells({"A": like_known, "B": like_known})), question)
    assert free.proof is ProofStatus.UNDER_ASSUMPTIONS
    nothing_unknown = GroupCells(8000, 500, 900, cohorts=((8000, 500, 0),))
    cells = Cells({"A": nothing_unknown, "B": nothing_unknown})
    assert eq.check(eq.History.from_cells(cells), question).guaranteed
    programme = GroupCells(8000, 500, 900, random_accepts=(50, 40, 0))
    free = eq.check(eq.History.from_cells(Cells({"A": programme, "B": programme})), question)
    assert (free.verdict, free.guaranteed) == (Verdict.FAIR, False)


def test_a_threshold_of_one_s_own_is_not_proven_and_says_why() -> None:
    world = CellWorld.from_shares({"A": (0.4, 0.2, 0.4, 0.5), "B": (0.4, 0.2, 0.4, 0.5)})
    finding = eq.run(eq.RSAudit(world.past(), Question(), eq.Costs(), tau=20), world, seed=1)
    assert (finding.guaranteed, finding.proof) == (False, ProofStatus.NOT_PROVEN)
    assert finding.error_level is None
    assert "(no error probability is proven)" in str(finding)


def test_a_stored_finding_without_a_proof_still_loads() -> None:
    finding = eq.check(eq.History.from_cells(ALIKE), Question("demographic_parity"))
    stored = Finding(**{name: getattr(finding, name) for name in Finding.__dataclass_fields__})
    old = stored.to_dict()
    for name in ("proof", "error_level", "range_level"):
        del old[name]
    assert Finding.from_dict(old).proof is ProofStatus.PROVEN
    assert Finding.from_dict(old | {"guaranteed": False}).proof is ProofStatus.NOT_PROVEN


def test_verification_compares_a_recorded_proof() -> None:
    past = eq.History.from_cells(ALIKE)
    question = Question("demographic_parity")
    live = eq.LiveAudit.create("sqlite://", "x", past, question, eq.Costs(1, 100))
    assert live.verify()
    finding = live.finding
    assert finding is not None
    state = AuditState(strict=True)
    recorded = finding.to_dict()
    state.finding = lambda: finding  # type: ignore[method-assign]
    state._check_verdict(1, recorded)
    for change in ({"proof": "not proven"}, {"error_level": 0.01}, {"guaranteed": False}):
        with pytest.raises(LedgerError, match=next(iter(change))):
            state._check_verdict(1, recorded | change)
    older = {
        name: value for name, value in recorded.items() if name not in ("proof", "error_level")
    }
    state._check_verdict(1, older | {"guaranteed": False})


# -- 4: levels and bounds in print -----------------------------------------------------------------


def test_levels_never_print_as_nothing_or_all() -> None:
    """92e8ad8: "probability at most 0.0%" and "at least 100.0%" for delta 1e-5."""
    page = text_of(to_html(report_of(ALIKE, Question("demographic_parity", delta=1e-5))))
    assert "error probability at most 0.001%" in page
    assert "probability at most 0.0%" not in page
    assert "probability at least 100.0%" not in page
    for level in (1e-100, 1e-12, 0.0004999, 0.05, 0.1 + 0.2, 0.999, 0.99999, 1 - 1e-13):
        percent = float(format_level(level).removesuffix("%"))
        assert 0.0 < percent < 100.0
        assert percent / 100.0 >= level * (1 - 1e-11)


def test_nothing_for_people_is_in_e_notation(tmp_path: Path) -> None:
    """971972c1: "wrong with probability <= 1e-07", "1.23e+06 approved people"."""
    e_notation = re.compile(r"\d[eE][-+]\d")
    question = Question("equal_opportunity", epsilon=quick(0.2, full=0.05), delta=1e-7)
    unknown = GroupCells(3_000_000, 500_000, 2_500_000, 1_234_567)
    past = eq.History.from_cells(Cells({"A": unknown, "B": unknown}))
    costs = eq.Costs(1, 12_345_678)
    live = eq.LiveAudit.create("sqlite://", "x", past, question, costs)
    page = tmp_path / "check.html"
    tiny = replace(question, gamma=1e-6, epsilon=2e-6)
    finding = eq.check(past, tiny)
    write_check(past, [finding], page)
    texts = [
        str(finding),
        str(past),
        str(live.status()),
        str(eq.plan(past, question, costs)),
        str(eq.lower_bound(CellWorld.from_shares(EASY), question, costs)),
        text_of(to_html(Report.of(live))),
        text_of(page.read_text("utf-8")),
        text_of(finding._repr_html_()),
        replace(finding, verdict=Verdict.FAIR).summary,
        replace(finding, verdict=Verdict.UNFAIR).summary,
    ]
    for text in texts:
        assert not e_notation.search(text), e_notation.search(text)
    assert "0.00001%" in str(finding)
    assert "0.0001 points" in str(finding.question)


def test_bounds_are_rounded_outwards() -> None:
    """92e8ad8: [0.124, 0.987] and "12.4 to 98.7%" for 0.1236 to 0.9874."""
    interval = Interval(0.1236, 0.9874)
    assert str(interval) == "[0.123, 0.988]"
    assert interval.percent == "12.3 to 98.8%"
    assert format_hundredths(0.0, 1.0) == "0 to 100"
    assert format_hundredths(0.1, 0.3) == "10.0 to 30.0"


# -- 5: one range per quantity ---------------------------------------------------------------------


def test_a_report_has_one_range_for_the_gap() -> None:
    """92e8ad8: "32.1 to 37.8", "by at least 32.1" and, in the table, "31.5 to 38.4"."""
    question = Question("demographic_parity")
    report = report_of(APART, question)
    finding = report.finding
    assert finding.verdict is Verdict.UNFAIR
    own = finding.all_metrics()["demographic_parity"]
    assert (own.lower, own.upper) == (finding.lower, finding.upper)
    assert own.estimate is not None  # as the shares of approved people say
    for group, rate in finding.all_rates()["selection_rate"].items():
        answer = finding.rates["selection_rate"][group]
        assert (rate.lower, rate.upper) == (answer.lower, answer.upper)
        approved = finding.shares[group].rate(RATES["selection_rate"])
        assert rate.estimate == approved.estimate is not None
    rate_rows, metric_rows = finding.all_rows()
    assert "demographic parity" not in {row["metric"] for row in metric_rows}
    assert "selection rate" not in {row["rate"] for row in rate_rows}
    page = text_of(to_html(report))
    assert "at least" not in page.partition("Selection rates")[0].replace("at least one", "")
    assert page.count("argest estimated difference: Black, ") == 1


# -- 6: direction in rates where lower is better ---------------------------------------------------


def test_a_direction_means_the_same_in_a_rate_and_its_complement() -> None:
    """92e8ad8: equal opportunity 0 to 0.699 beside false negative parity 0 to 0.348."""
    below = eq.Compare(against="White", direction="below")
    question = Question("equal_opportunity", compare=below)
    metrics = eq.check(eq.History.from_cells(APART), question).all_metrics()
    for one, other in (
        ("demographic_parity", "demographic_parity"),
        ("predictive_equality", "true_negative_parity"),
        ("accuracy_parity", "error_rate_parity"),
        ("negative_predictive_parity", "false_omission_parity"),
    ):
        assert metrics[one].lower == pytest.approx(metrics[other].lower)
        assert metrics[one].upper == pytest.approx(metrics[other].upper)
    assert metrics["false_negative_parity"].upper == pytest.approx(0.6994, abs=2e-4)
    worse = {name for name, rate in RATES.items() if rate.is_worse_if_higher}
    assert worse == {
        "false_negative_rate", "true_negative_rate", "false_omission_rate", "error_rate",
    }  # fmt: skip


# -- the same answer in every face -----------------------------------------------------------------


def test_terminal_report_dashboard_json_and_str_say_the_same(tmp_path: Path) -> None:
    """92e8ad8: UNFAIR, and below it "No two groups' intervals are apart yet" on the dashboard."""
    question = Question("demographic_parity", gamma=0.05, epsilon=0.05, **UNEQUAL)
    past = eq.History.from_cells(APART)
    database = f"sqlite:///{tmp_path / 'ledger.db'}"
    live = eq.LiveAudit.create(database, "x", past, question, eq.Costs(1, 100))
    report = Report.of(live)
    answer = report.answer
    assert (answer.verdict, answer.error_level) == (Verdict.UNFAIR, 0.001)
    snapshot = Snapshot.take(live, report.status, report)
    dashboard = render_page(
        Caller("anna", Role.REGULATOR), "live.html", snapshot=snapshot, name="x",
        checkpoint=None, proof=None, settings=live.settings,
    )  # fmt: skip
    terminal = CliRunner().invoke(
        app, ["audit", "status", "x", "--ledger", str(tmp_path / "ledger.db")]
    )
    assert terminal.exit_code == 0, terminal.output
    faces = {
        "terminal": " ".join(terminal.stdout.split()),
        "report": text_of(to_html(report)),
        "dashboard": text_of(bytes(dashboard.body).decode()),
        "str": " ".join(str(report.finding).split()),
        "notebook": text_of(report.finding._repr_html_()),
    }
    for face, text in faces.items():
        assert "UNFAIR" in text, face
        assert answer.sentence in text, face
        assert "error probability at most 0.1%" in text, face
        assert answer.gap.hundredths in text, face
        assert answer.range_note in text, face
        assert answer.who[1:] in text, face
    data = json.loads(report.to_json())["finding"]
    assert data["verdict"] == "UNFAIR"
    assert (data["error_level"], data["range_level"]) == (0.001, 0.2)
    assert data["proof"] == "proven"
    assert format_hundredths(data["lower"], data["upper"]) == answer.gap.hundredths
    assert (data["decided_by"]["higher"], data["decided_by"]["lower"]) == ("White", "Black")


@pytest.mark.parametrize("metric", [*METRICS, "equal_opportunity+demographic_parity"])
@pytest.mark.parametrize("compare", ["difference", "ratio", eq.Compare(against="White"),
                                     eq.Compare(against="White", direction="below")])  # fmt: skip
def test_every_question_has_a_sentence(metric: str, compare: str) -> None:
    question = Question(metric, gamma=0.1, epsilon=0.1, compare=compare)  # type: ignore[arg-type]
    finding = Finding(question, Verdict.UNFAIR, 0.1, 0.2, "why")
    unfair = build_answer(finding).sentence
    fair = build_answer(replace(finding, verdict=Verdict.FAIR)).sentence
    sizes = ["10% less", "11.1% more"] if compare == "ratio" else ["10 points"]
    assert any(f"more than {size}" in unfair for size in sizes)
    assert "some group" in unfair.lower()
    assert "no group" in fair.lower()
    assert fair.endswith("(error probability at most 5%).")
    if compare not in ("difference", "ratio"):
        assert "than White" in unfair


HALF_DENIED = {"approved_positive": 600, "approved_negative": 200, "denied": 800}


def test_the_adaptive_audit_counts_an_outcome_when_it_comes() -> None:
    """92e8ad8: three documents said that a late outcome keeps later ones waiting, of any audit."""
    past = eq.History.from_cells({"A": HALF_DENIED, "B": HALF_DENIED})
    audit = eq.AdaptiveAudit(past, Question("equal_opportunity"), eq.Costs())
    late = audit.ask("A", 0)
    early = audit.ask("A", 0)
    assert audit.evidence is not None
    before = audit.evidence.log.n_told.sum()
    audit.tell(early, 1)
    assert audit.evidence.log.n_told.sum() == before + 1
    audit.tell(late, 1)
    assert audit.evidence.log.n_told.sum() == before + 2


def test_the_paper_s_audits_wait_for_earlier_outcomes(monkeypatch: pytest.MonkeyPatch) -> None:
    learnt = []
    learn = eq.RSAudit._learn

    def count_and_learn(audit: eq.RSAudit, *answer: object) -> object:
        learnt.append(answer)
        return learn(audit, *answer)  # type: ignore[arg-type]

    monkeypatch.setattr(eq.RSAudit, "_learn", count_and_learn)
    past = eq.History.from_cells({"A": HALF_DENIED, "B": HALF_DENIED})
    audit = eq.RSAudit(past, Question("equal_opportunity"), eq.Costs(), tau=50)
    late = audit.ask("A", 0)
    early = audit.ask("A", 0)
    audit.tell(early, 1)
    assert learnt == []
    audit.tell(late, 1)
    assert len(learnt) == 2


DOCUMENTS = Path(__file__).parents[2] / "docs"


def test_documents_say_which_audits_wait() -> None:
    page = DOCUMENTS / "how-to" / "ledger-reference.md"
    text = " ".join(page.read_text("utf-8").split())
    assert "The adaptive audit uses every outcome when it arrives." in text
    assert "(`RSAudit`, `BaselineAudit`, `ExpAudit`) count in *request order*" in text


def test_the_caption_of_the_evidence_says_which_audits_wait() -> None:
    past = eq.History.from_cells(APART)
    for audit, words in (("adaptive", "counts as soon as it is known"), ("rs", "ones waiting")):
        live = eq.LiveAudit.create(
            "sqlite://", "x", past, Question("equalized_odds"), eq.Costs(1, 100), audit=audit,
            confirm=True,
        )  # fmt: skip
        assert words in to_html(Report.of(live))


def test_the_last_day_of_the_past_must_be_fixed_beforehand() -> None:
    """92e8ad8: "for every last day, whoever chooses" (measured 0.0126 at delta 0.01)."""
    proofs = " ".join((DOCUMENTS / "understand/guarantees.md").read_text("utf-8").split())
    guide = " ".join((DOCUMENTS / "how-to/random-accepts.md").read_text("utf-8").split())
    assert "The past's own last day must be fixed beforehand" in proofs
    assert "last day of the historical data that was chosen after looking" in guide
    assert "*Like the known ones, and nothing is unknown.*" in proofs


def test_outcomes_like_the_known_assume_nothing_if_none_is_unknown() -> None:
    counts = GroupCells(600, 200, 200, cohorts=((600.0, 200.0, 0.0),))
    past = eq.History.from_cells(Cells({"A": counts, "B": counts}))
    assert eq.check(past, Question("equal_opportunity")).proof is ProofStatus.PROVEN


@pytest.mark.parametrize(
    ("direction", "said"),
    [
        ("below", "more than 60% less often than B"),
        ("above", "more than 150% more often than B"),
        ("both", "more than 60% less or 150% more often than B"),
    ],
)
def test_a_ratio_counted_upwards_is_a_share_of_the_lower_rate(direction: str, said: str) -> None:
    counts = {"A": GroupCells(72_000, 8_000, 20_000), "B": GroupCells(36_000, 4_000, 60_000)}
    compare = eq.Compare(by="ratio", against="B", direction=direction)  # type: ignore[arg-type]
    question = eq.Question("demographic_parity", gamma=0.5, epsilon=0.1, compare=compare)
    # 80% and 40%: A is approved 100% more often, which is a gap of 0.5 and never more than 0.6.
    answer = eq.check(eq.History.from_cells(Cells(counts)), question)
    assert f"FAIR. No group is approved {said}" in answer.summary


def test_a_tolerance_is_printed_as_it_was_given() -> None:
    counts = {"A": GroupCells(72_000, 8_000, 20_000), "B": GroupCells(36_000, 4_000, 60_000)}
    question = eq.Question("demographic_parity", gamma=0.05126, epsilon=0.1)
    answer = eq.check(eq.History.from_cells(Cells(counts)), question)
    assert "more than 5.126 points less often" in answer.summary
