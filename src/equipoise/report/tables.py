"""The tables of a report: column names, and rows of texts whose first cell is the row's name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.display import Row, format_figures, round_down, round_up, trim_hundredths
from equipoise.finding import Finding, Interval
from equipoise.ledger import Status
from equipoise.ledger.drift import DriftTest
from equipoise.ledger.verify import GroupTally
from equipoise.messages.answer import build_answer, name_rate_axis
from equipoise.planning import Forecast
from equipoise.rates import RATES
from equipoise.report.content import Report, expected_total_range
from equipoise.report.selection import SelectionRow

Table = tuple[tuple[str, ...], Sequence[tuple[str, ...]]]
"""Column names, and rows of as many texts."""

MAX_GROUPS_ON_FIRST_PAGE = 6
ENDS_ON_FIRST_PAGE = 2  # groups from each end, where there are more


@dataclass(frozen=True)
class GroupFigures:
    """Estimates and ranges of the groups in one rate, for the first page of a report.

    ``n_left_out`` groups in the middle are left out where there are many.
    """

    title: str
    rows: Sequence[tuple[str, ...]]
    n_left_out: int


def group_figures(finding: Finding) -> GroupFigures:
    """Return the rate in which groups differ most by the estimates, group by group, sorted."""
    # Without estimates no rate stands out, and the first one is shown.
    largest = build_answer(finding).largest_estimated
    rate = next(iter(finding.rates), "") if largest is None else largest.pair.rate
    by_group = finding.rates.get(rate, {})
    rows = []
    for group in sorted(by_group, key=lambda name: -_middle(by_group[name])):
        interval = by_group[group]
        estimate = "–"
        if interval.estimate is not None:
            estimate = trim_hundredths(f"{100 * interval.estimate:.1f}")
        rows.append((group, estimate, interval.hundredths))
    # The best group stands first, so that the table reads alike for every rate.
    if RATES[rate].is_worse_if_higher:
        rows.reverse()
    n_left_out = 0
    if len(rows) > MAX_GROUPS_ON_FIRST_PAGE:
        n_left_out = len(rows) - 2 * ENDS_ON_FIRST_PAGE
        rows = [*rows[:ENDS_ON_FIRST_PAGE], *rows[-ENDS_ON_FIRST_PAGE:]]
    return GroupFigures(name_rate_axis(rate), rows, n_left_out)


def _middle(interval: Interval) -> float:
    if interval.estimate is not None:
        return interval.estimate
    return (interval.lower + interval.upper) / 2


def cost_facts(report: Report) -> list[tuple[str, str]]:
    """Return what the audit cost and what it did for that: a label and a value each."""
    status = report.status
    groups = status.groups.values()
    n_denied = sum(group.denied for group in groups)
    n_bad = sum(group.negative for group in groups)
    spent_label = "Spent, no budget was set"
    if status.cap is not None:
        spent_label = f"Spent, of a budget of {status.short_money(status.cap)}"
    facts = [(spent_label, status.short_money(status.spent))]
    if status.reserved:
        held_label = f"Held for {status.pending:,} open overrides"
        facts.append((held_label, status.short_money(status.reserved)))
    if report.forecast is not None and report.forecast.is_decidable:
        facts += _expected_total_facts(report.forecast, status)
    facts.append((f"Denials overridden, of {n_denied:,}", f"{report.finding.labels:,}"))
    facts.append(("Overrides that ended badly", f"{n_bad:,}"))
    facts.append(("People during the audit", f"{status.people:,}"))
    if report.finding.score_only:
        facts.append(("Only looked at, by score or price", f"{report.finding.score_only:,}"))
    return facts


def _expected_total_facts(forecast: Forecast, status: Status) -> list[tuple[str, str]]:
    """Return what an audit will have cost in all, with the range of that estimate."""
    amounts = expected_total_range(forecast, status)
    if not amounts:
        return [("Estimated total", "not known yet")]
    low, middle, high = (format_figures(amount / 10**status.decimals) for amount in amounts)
    unit = f" {status.currency}" if status.currency else ""
    highest = "no upper figure" if forecast.is_open_ended else f"{high}{unit}"
    return [
        ("Estimated total", f"{middle}{unit}"),
        ("80% range of the estimate", f"{low} to {highest}"),
    ]


def money_rows(status: Status) -> Table:
    """Return what was spent on each group; what is held if anything is."""
    has_held = any(group.reserved for group in status.groups.values())
    heads = ("Group", "Outcomes", "Spent", *(["Held"] if has_held else []))
    rows = []
    for name, group in status.groups.items():
        outcomes = f"{group.positive + group.negative:,}"
        held = [status.short_money(group.reserved)] if has_held else []
        rows.append((name, outcomes, status.short_money(group.spent), *held))
    n_outcomes = sum(group.positive + group.negative for group in status.groups.values())
    held = [status.short_money(status.reserved)] if has_held else []
    rows.append(("All", f"{n_outcomes:,}", status.short_money(status.spent), *held))
    return heads, rows


def people_rows(report: Report) -> Table:
    """Return how many people of each group came how far, without columns of zeros."""
    columns: dict[str, list[int]] = {}
    for group in report.status.groups.values():
        for name, count in _count_people(group, uses_scores=report.assist is not None).items():
            columns.setdefault(name, []).append(count)
    # In these columns a zero tells something.
    always_shown = ("Arrived", "Approved", "Denied", "Outcomes of overrides")
    shown_columns = {
        name: counts for name, counts in columns.items() if name in always_shown or any(counts)
    }
    rows = []
    for index, group_name in enumerate(report.status.groups):
        rows.append((group_name, *(f"{counts[index]:,}" for counts in shown_columns.values())))
    return ("Group", *shown_columns), rows


def _count_people(group: GroupTally, *, uses_scores: bool) -> dict[str, int]:
    states = {str(state): count for state, count in group.states.items()}
    return {
        "Arrived": group.approved + group.denied,
        "Approved": group.approved,
        "Denied": group.denied,
        **({"Looked at": group.scored} if uses_scores else {}),
        "Outcomes of overrides": group.positive + group.negative,
        "of these good": group.positive,
        "Pending": states.get("RESERVED", 0) + states.get("EXECUTED", 0),
        "Overdue": states.get("OVERDUE", 0),
        "Refused": states.get("WITHDRAWN", 0),
        "Written off": states.get("WRITTEN_OFF", 0),
    }


def drift_rows(
    tests: Sequence[DriftTest],
) -> tuple[tuple[str, ...], Sequence[tuple[str, ...]], list[int]]:
    """Return the checks for drift as a table, and the places of those that raised an alarm."""
    threshold = f"{tests[0].threshold:.1f}"  # the tests share the level equally, so all have it
    has_unknown = any(test.unknown for test in tests)
    heads = (
        *("Check", "Historical", "Now", "People"),
        *(["Unknown yet"] if has_unknown else []),
        *(f"Evidence (alarm at {threshold})", "Result"),
    )
    rows = [
        (
            f"{test.group}, {test.what}",
            f"{100 * test.past:.1f}%",
            "–" if test.now is None else f"{100 * test.now:.1f}%",
            f"{test.people:,}",
            *([f"{test.unknown:,}"] if has_unknown else []),
            f"{test.evidence:.1f}",
            "drift" if test.alarm else "none seen",
        )
        for test in tests
    ]
    return heads, rows, [index for index, test in enumerate(tests) if test.alarm]


def selection_rows(rows: Sequence[SelectionRow]) -> Table:
    """Return the regulator's table: selection rates, impact ratios and Fisher's p."""
    heads = (
        *("Group", "People", "Approved", "Selection rate", "Impact ratio", "Range"),
        *("Four-fifths rule", "Against", "p (Fisher)"),
    )
    texts = []
    for row in rows:
        ratio = "–"
        ratio_range = "–"
        if row.impact_ratio is not None:
            ratio = f"{row.impact_ratio.estimate or 0.0:.2f}"
            low = round_down(row.impact_ratio.lower, 2)
            ratio_range = f"{low} to {round_up(row.impact_ratio.upper, 2)}"
        p_value = "–"
        if row.p_value is not None:
            p_value = f"{row.p_value:.3f}" if row.p_value >= 0.001 else "< 0.001"
        texts.append(
            (
                f"{row.group}{'*' if row.small else ''}",
                f"{row.people:,}" if row.people else "unlimited",
                f"{row.approved:,}" if row.people else "–",
                f"{100 * (row.rate.estimate or 0.0):.1f}%",
                ratio,
                ratio_range,
                row.four_fifths,
                row.against or "–",
                p_value,
            )
        )
    return heads, texts


def rows_as_table(rows: Sequence[Row]) -> Table:
    """Return mappings from column to value as a table."""
    heads = tuple(name.replace("_", " ").capitalize() for name in rows[0])
    texts = []
    for row in rows:
        values = [
            format_figures(value) if isinstance(value, float) else str(value)
            for value in row.values()
        ]
        texts.append(tuple(values))
    return heads, texts
