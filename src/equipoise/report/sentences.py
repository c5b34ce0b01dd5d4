"""What the report, the dashboard and the command line say in sentences."""

from __future__ import annotations

from equipoise.comparison import GapScale
from equipoise.display import format_figures, format_level, round_down, round_up
from equipoise.errors import few_of
from equipoise.finding import Finding, Interval, ProofStatus
from equipoise.free_check import Check
from equipoise.ledger import Status
from equipoise.messages.answer import format_gap
from equipoise.metrics import METRICS
from equipoise.planning import Forecast
from equipoise.planning.scenarios import USUAL_RATIO
from equipoise.question import Question, Verdict
from equipoise.rates import RATES
from equipoise.report.content import Report, expected_total_range
from equipoise.report.selection import four_fifths_state

MANY_ARRIVALS = 100  # people after whom it is remarkable that a group has not come


def describe_question(question: Question) -> str:
    """Return the question as an auditor would ask it, and which groups are compared if not all."""
    text = METRICS[question.metric].asks
    comparison = question.comparison.words.removeprefix(", ")
    if comparison:
        text += f" Groups are compared {comparison}."
    return text


def describe_guarantee(report: Report) -> str:
    """Return what the verdict promises."""
    finding = report.finding
    question = finding.question
    if finding.proof is ProofStatus.NOT_PROVEN:
        return (
            "This audit was run with a smaller threshold than its theorem needs. Its answer is the "
            "published algorithm's, but no error probability is proven for it."
        )
    wrong_unfair = question.level_wrong_unfair
    wrong_fair = question.level_wrong_fair
    # A finding knows the level of the answer that it gave. For the other one the question's holds.
    if finding.verdict is Verdict.UNFAIR:
        wrong_unfair = finding.error_level or wrong_unfair
    elif finding.verdict is Verdict.FAIR:
        wrong_fair = finding.error_level or wrong_fair
    condition = "the assumptions of every audit, listed under Assumptions, hold"
    if finding.proof is ProofStatus.UNDER_ASSUMPTIONS:
        condition = "all listed assumptions hold, including those that the user of this audit made"
    return (
        f"If the gap is truly at most {format_gap(question, question.gamma)}, this audit answers "
        f"UNFAIR with probability at most {format_level(wrong_unfair)}. If it is truly more than "
        f"{format_gap(question, question.threshold)}, it answers FAIR with probability at most "
        f"{format_level(wrong_fair)}. In between both answers are right. This is proven if "
        f"{condition}, however often the auditor looked at the evidence."
    )


def describe_method(report: Report) -> str:
    """Return why the audit overrides denials, and that it stops."""
    return (
        "How denied people would have turned out is not known. So the audit overrides some "
        "denials, records how they end, and stops once the answer is certain enough."
    )


def describe_group_figures(finding: Finding) -> str:
    """Return what figures by group are, and what the verdict does not say about them."""
    if finding.verdict is Verdict.UNFAIR:
        return "These figures are estimates. The verdict does not prove which groups differ."
    return "Estimates, with the ranges that are established."


def list_report_assumptions(report: Report) -> list[str]:
    """Return what the answer rests on, a sentence each."""
    lines = [make_sentence(line) for line in report.finding.assumptions]
    lines.append(
        "An overridden denial has the outcome that the person would have had if approved at first."
    )
    drift = report.status.drift
    n_alarms = sum(test.alarm for test in drift)
    # An alarm has a warning of its own. Without a test nothing may be said about drift.
    if drift and not n_alarms:
        lines.append(
            "Groups, decisions and outcomes are reported as they are. "
            f"{len(drift)} checks of new against historical people found no drift."
        )
    else:
        lines.append("Groups, decisions and outcomes are reported as they are.")
    if report.assist is not None and report.assist.max_price is not None:
        highest_price = report.status.short_money(report.assist.max_price)
        lines.append(
            f"Nobody's price is above {highest_price}, or those who cost more turn out like the "
            "others of their group."
        )
    return lines


def describe_proof(finding: Finding) -> str:
    """Return whether the error probability is proven, in a sentence."""
    if finding.proof is ProofStatus.NOT_PROVEN:
        return (
            "The audit was run with a smaller threshold than its theorem needs, so no error "
            "probability is proven."
        )
    # A check looks once.
    looked = "" if isinstance(finding, Check) else ", however often the auditor looked"
    if finding.proof is ProofStatus.UNDER_ASSUMPTIONS:
        return (
            "The error probability is proven if all of these hold, including those that the user "
            f"of this audit made{looked}."
        )
    return f"If these hold, the error probability is proven{looked}."


def describe_overlap(report: Report) -> str:
    """Return how the ranges of groups and the verdict go together."""
    if report.answer.verdict is not Verdict.UNFAIR:
        return "The verdict weighs all groups together, not one range against another."
    return (
        "Ranges of different groups may overlap although the verdict is UNFAIR. The verdict weighs "
        "all groups together, so it can be certain before two ranges separate."
    )


def describe_evidence(report: Report) -> str:
    """Return how the evidence over time is read, and when a late outcome counts."""
    question = report.finding.question
    if report.status.audit != "adaptive":
        return (
            "This audit of the paper answers once, when it has enough outcomes of every group. "
            "Outcomes count in the order in which they were asked for, so a late one keeps later "
            "ones waiting."
        )
    counted = (
        "Each outcome counts as soon as it is known. Those that are still open count in the way "
        "least favourable to a verdict."
    )
    last = report.evidence[-1] if report.evidence else None
    if last is None or last.unfair_needs is None or last.fair_needs is None:
        return f"The historical data decide, so no evidence was gathered. {counted}"
    if last.answers == 0:
        return f"No outcome is known yet. {counted}"
    level_fair = format_level(question.level_wrong_fair)
    level_unfair = format_level(question.level_wrong_unfair)
    levels = level_fair
    if level_fair != level_unfair:
        levels = f"{level_unfair} for UNFAIR and {level_fair} for FAIR"
    return (
        f"UNFAIR needs an e-value of {format_figures(last.unfair_needs)}, FAIR needs "
        f"{format_figures(last.fair_needs)}. If "
        f"an answer is wrong, its line ever reaches its bar with probability at most {levels}, "
        "however often the auditor looks. A line shows the least evidence against any gap that "
        f"would make the answer wrong. {counted}"
    )


def describe_money(report: Report) -> str:
    """Return how money over time is read."""
    status = report.status
    text = (
        "When an override is requested the largest possible cost is held. It becomes spent, or "
        "free again, when the outcome is known."
    )
    if status.cap is not None:
        budget = status.short_money(status.cap)
        text += f" Spent and held together never exceed the budget of {budget}."
    if report.forecast is not None and report.forecast.is_decidable:
        text += " The dashed line is the middle of the forecast."
    return text


def describe_sensitivity(report: Report) -> str:
    """Return how far unknown outcomes can move the estimate."""
    sensitivity = report.sensitivity
    outcomes = "outcome is" if sensitivity.unknown == 1 else "outcomes are"
    low = f"{100 * sensitivity.lower:.1f}"
    high = f"{100 * sensitivity.upper:.1f}"
    return (
        f"{sensitivity.unknown:,} {outcomes} unknown. Depending on how they turn out, the "
        f"estimated gap is between {low} and {high} {report.answer.gap_unit}. The verdict never "
        "guesses them. They count in the way least favourable to a verdict."
    )


def describe_gap_formula(question: Question) -> str:
    """Return what the gap is, as a formula in plain text."""
    rate_names = " and of the ".join(rate.phrase for rate in METRICS[question.metric].rates)
    comparison = question.comparison.words
    if question.gap_scale is GapScale.RATIO:
        return f"gap = largest 1 - lowest / highest over groups of the {rate_names}{comparison}"
    return f"gap = largest difference between groups of the {rate_names}{comparison}"


def describe_score_use(report: Report) -> str:
    """Return how an audit with scores or prices chooses whom to ask; empty for other audits."""
    if report.assist is None:
        return ""
    scored = sum(group.scored for group in report.status.groups.values())
    labelled = scored - report.status.states.get("SCORE_ONLY", 0)
    people_per_label = f", {scored / labelled:.1f} people per label" if labelled else ""
    people_were = "person was" if scored == 1 else "people were"
    text = (
        "This audit looks before it asks: a score or a price sets a person's chance of being "
        f"asked for the outcome, and a draw decides. {scored:,} {people_were} looked at "
        f"and {labelled:,} asked{people_per_label}. Those who were asked are no fair sample, so "
        "shares of good outcomes among them are not the groups'; ranges and best guesses "
        "allow for everybody's chance."
    )
    if report.assist.max_price is None:
        return text
    highest_price = report.status.short_money(report.assist.max_price)
    return (
        f"{text} People may have prices of their own, up to {highest_price}. Whoever would cost "
        "more is not observed at all: the answer speaks of those who cost no more than that."
    )


def describe_naive_gap(question: Question, gap: float | None) -> str:
    """Return the gap by a common way of counting that leaves out the denied, or guesses them."""
    return "undefined" if gap is None else format_gap(question, gap, figures=3)


def describe_rate(rate: str) -> str:
    """Return what a rate means."""
    return f"{RATES[rate].words.capitalize()}: {RATES[rate].phrase}."


def make_sentence(text: str) -> str:
    """Return a text with a capital at its beginning and a full stop at its end."""
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def describe_all_rates(finding: Finding) -> str:
    """Return what holds of the table of every rate and metric, and how surely."""
    assert finding.range_level is not None  # a finding fills it in
    subject = "These ranges" if isinstance(finding, Check) else "These ranges and the verdict"
    return (
        f"The same data bound every other rate and metric. {subject} hold together (error "
        f"probability at most {format_level(finding.range_level)}), so they are wider than ranges "
        "made for one question. For the question of this audit use the range of the verdict. The "
        "estimate is in brackets, where there is one."
    )


def describe_four_fifths(ratio: Interval, level: float) -> str:
    """Return what past data say about the four-fifths rule, in one sentence."""
    low = round_down(100 * ratio.lower, 1)
    high = round_up(100 * ratio.upper, 1)
    range_text = f"between {low}% and {high}%"
    if ratio.upper - ratio.lower < 1e-9:  # an unlimited past knows the ratio
        range_text = f"{ratio.lower:.1%}"
    state_text = {"met": "is met", "below": "is broken", "undecided": "is undecided"}
    return (
        f"The lowest approval rate is {range_text} of the highest: the four-fifths rule "
        f"{state_text[four_fifths_state(ratio)]} (wrong with probability at most "
        f"{format_level(level)})."
    )


def describe_expected_cost(forecast: Forecast, status: Status) -> str:
    """Return what this audit will have cost in all, and what the forecast assumes."""
    assumption = (
        "Assumes that denied people keep turning out well at the rate seen so far, and in groups "
        f"without outcomes {USUAL_RATIO:.0%} as often as approved ones."
    )
    if not forecast.is_decidable:
        return f"An audit like this one {forecast.missing}. {assumption}"
    amounts = expected_total_range(forecast, status)
    if not amounts:
        least = status.short_money(status.spent)
        most = status.short_money(status.spent + status.reserved)
        return (
            f"Estimated total cost: not known yet. {status.pending:,} outcomes are awaited, and "
            f"the overrides so far cost between {least} and {most} in all."
        )
    low, middle, high = (_format_amount(amount, status) for amount in amounts)
    if forecast.is_open_ended:
        range_text = f"at least {low} in 9 of 10 cases, with no upper figure"
    else:
        range_text = f"80% range {low} to {high}"
    text = f"Estimated total cost: {middle} ({range_text}). {assumption}"
    return text + _describe_missing_groups(forecast, status)


def _format_amount(amount: float, status: Status) -> str:
    """Return an estimated amount with three significant figures."""
    unit = f" {status.currency}" if status.currency else ""
    return f"{format_figures(amount / 10**status.decimals)}{unit}"


def _describe_missing_groups(forecast: Forecast, status: Status) -> str:
    """Return which groups the audit waits for, once many people came; empty if there are none."""
    # Not every group that is compared needs labels.
    needed = [group for group, labels in forecast.labels.items() if labels > 0.0]
    missing = [group for group in needed if not status.groups[group].denied]
    if not missing or status.people < MANY_ARRIVALS:
        return ""
    return (
        f" Of {few_of(missing)} no denied person has come yet, among {status.people:,} people. An "
        "audit needs labels of every group that it compares, and waits for them; one that was "
        "begun with such a group left out does not."
    )
