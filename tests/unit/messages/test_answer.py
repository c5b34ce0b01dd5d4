"""What an answer says: from the finding and its question alone, and the same in every face."""

from __future__ import annotations

from dataclasses import replace

import pytest

from equipoise import Compare, Costs, History, LiveAudit, Question, Verdict, check
from equipoise.finding import Finding, Interval, ProofStatus, separation
from equipoise.messages.answer import build_answer
from equipoise.report import Report, to_html
from equipoise.service.access import Caller
from equipoise.service.forms import render_page
from equipoise.service.snapshot import Snapshot
from equipoise.service.tokens import Role

RATES = {
    "selection_rate": {
        "A": Interval(0.7, 0.8, 0.75),
        "B": Interval(0.5, 0.6, 0.55),
        "C": Interval(0.2, 0.3, 0.25),
    }
}
UNEQUAL_LEVELS = Question("demographic_parity", delta_wrong_fair=0.2, delta_wrong_unfair=0.001)


def finding_of(question: Question, verdict: Verdict = Verdict.UNFAIR) -> Finding:
    decided_by = separation(RATES, question.comparison) if verdict is Verdict.UNFAIR else None
    return Finding(question, verdict, 0.4, 0.6, "why", rates=RATES, decided_by=decided_by)


def pairs_of(question: Question) -> list[str]:
    differences = build_answer(finding_of(question)).differences
    return [f"{difference.pair.higher}>{difference.pair.lower}" for difference in differences]


def test_only_compared_groups_differ() -> None:
    assert pairs_of(Question("demographic_parity")) == ["A>B", "A>C", "B>C"]
    against = Compare(against="B")
    assert pairs_of(Question("demographic_parity", compare=against)) == ["A>B", "B>C"]
    below = Compare(against="B", direction="below")
    assert pairs_of(Question("demographic_parity", compare=below)) == ["B>C"]
    without = Compare(leave_out=["C"])
    assert pairs_of(Question("demographic_parity", compare=without)) == ["A>B"]


@pytest.mark.parametrize(
    ("verdict", "level"),
    [(Verdict.FAIR, 0.2), (Verdict.UNFAIR, 0.001), (Verdict.INCONCLUSIVE, None)],
)
def test_a_verdict_has_its_own_error_level(verdict: Verdict, level: float | None) -> None:
    answer = build_answer(finding_of(UNEQUAL_LEVELS, verdict))
    assert answer.error_level == level
    if level is not None:
        assert answer.sentence.endswith(f"(error probability at most {100 * level:g}%).")


def test_without_a_proof_there_is_no_error_level() -> None:
    unproven = replace(finding_of(UNEQUAL_LEVELS), proof=ProofStatus.NOT_PROVEN, estimate=0.5)
    answer = build_answer(unproven)
    assert answer.error_level is None
    assert "no error probability is proven" in answer.sentence


def test_an_audit_in_progress_has_no_verdict() -> None:
    answer = build_answer(finding_of(UNEQUAL_LEVELS, Verdict.INCONCLUSIVE), is_final=False)
    assert answer.verdict is None
    assert answer.summary == (
        "NO VERDICT YET. So far the gap is between 40.0 and 60.0 points (error probability at most "
        "20%). UNFAIR is right for every gap in this range, but there is no verdict yet. Largest "
        "estimated difference: C, 50 points below A."
    )


@pytest.mark.parametrize(
    ("lower", "upper", "said"),
    [
        (0.0, 0.3, "so both answers are possible."),
        (0.05, 0.1001, "so both answers are possible."),
        (0.0, 0.1, "FAIR is right for every gap in this range"),
        (0.0501, 0.3, "UNFAIR is right for every gap in this range"),
        (0.06, 0.1, "Both answers are right for every gap in this range"),
    ],
)
def test_inconclusive_says_which_answers_the_range_leaves(
    lower: float, upper: float, said: str
) -> None:
    """971972c1: "so both answers are possible", whatever the range was."""
    question = Question("demographic_parity", gamma=0.05, epsilon=0.05)
    finding = Finding(question, Verdict.INCONCLUSIVE, lower, upper, "why")
    sentence = build_answer(finding).sentence
    assert said in sentence
    assert sentence.endswith(", but the audit gave no verdict.") == ("every gap" in said)


def test_the_level_of_the_range_is_said_where_it_is_not_the_verdict_s() -> None:
    """971972c1 printed the range of a verdict at 0.1% without the 20% at which it holds."""
    note = "error probability of this range at most 20%"
    finding = finding_of(UNEQUAL_LEVELS)
    assert build_answer(finding).range_note == note
    assert f"40.0 to 60.0 points ({note})" in str(finding)
    assert note in finding._repr_html_()
    for verdict in (
        Verdict.FAIR,
        Verdict.INCONCLUSIVE,
    ):  # the verdict, or its place, has this level
        assert build_answer(finding_of(UNEQUAL_LEVELS, verdict)).range_note == ""
    assert note not in str(finding_of(Question("demographic_parity")))


def test_every_face_says_the_same() -> None:
    groups = {
        "A": {"approved_positive": 6000, "approved_negative": 1000, "denied": 3000},
        "B": {"approved_positive": 3000, "approved_negative": 500, "denied": 6500},
        "C": {"approved_positive": 2000, "approved_negative": 500, "denied": 7500},
    }
    question = Question("demographic_parity", compare=Compare(against="A", direction="below"))
    past = History.from_cells(groups)
    live = LiveAudit.create("sqlite://", "x", past, question, Costs(1, 100))
    report = Report.of(live)
    answer = report.answer
    assert [str(difference.pair) for difference in answer.differences] == [
        "the selection rate of A is above that of B",
        "the selection rate of A is above that of C",
    ]
    snapshot = Snapshot.take(live, report.status, report)
    variables = {"name": "x", "checkpoint": None, "proof": None, "settings": live.settings}
    dashboard = render_page(
        Caller("anna", Role.REGULATOR), "live.html", snapshot=snapshot, **variables
    )
    faces = {
        "report": to_html(report),
        "dashboard": bytes(dashboard.body).decode(),
    }
    points = answer.gap.hundredths
    for name, text in faces.items():
        assert str(answer.verdict) in text, name
        assert answer.sentence in text, name
        assert points in text, name
        assert answer.who[1:] in " ".join(text.split()), name
    printed = str(report.finding)
    assert printed.startswith(answer.summary)
    assert answer.gap_range in printed
    assert check(past, question).verdict is answer.verdict
