"""Write the figures of README and documents: ``python -m docs.figures`` (a minute).

Figures stand between two comments: ``<!-- figures: NAME -->`` and ``<!-- end of figures -->``.
This script runs the audits that they are about, writes them anew and draws the picture of the
README. If audits change, run ``python tools/typical_run.py`` first, which finds the typical run.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path

from docs import preview

import equipoise as eq
from equipoise.cli.demo import COSTS, QUESTION, Story, _live_through, _tell, _typical_run
from equipoise.display import Row, format_figures, format_hundredths
from equipoise.finding import Finding
from equipoise.planning.case_rows import case_rows, explain_cases

ROOT = Path(__file__).parents[1]
WORKED_EXAMPLE = "docs/start/five-minutes.md"
N_DRAWS = 10  # of which the worked example shows the one that is nearest to the typical cost
N_PEOPLE = 20_000
N_PER_WEEK = 500
BLOCK = re.compile(
    r"(<!-- figures: ([\w-]+) -->\n).*?(^<!-- end of figures -->)", re.DOTALL | re.MULTILINE
)
DRAW = re.compile(r"(?<=world\.draw\(20_000, )\d+")


def main() -> None:
    """Compute all figures, and write documents and pictures that have changed."""
    story = _live_through(lambda share: None)
    blocks = story_blocks(story)
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    worked_example = ROOT / WORKED_EXAMPLE
    seed = typical_draw(story)
    write(worked_example, DRAW.sub(str(seed), worked_example.read_text(encoding="utf-8")))
    blocks |= worked_example_blocks(run_worked_example())
    blocks |= comparison_blocks()
    blocks |= measured_blocks()
    for page in pages:
        write(page, fill(page.read_text(encoding="utf-8"), blocks))
    for name, picture in preview.pictures(story).items():
        write(preview.HERE / name, picture)


def write(place: Path, text: str) -> None:
    """Write a text if it differs from the file, and print the file's name."""
    if place.read_text(encoding="utf-8") != text:
        place.write_text(text, encoding="utf-8")
        print(place.relative_to(ROOT), file=sys.stderr)


def fill(text: str, blocks: dict[str, str]) -> str:
    """Return a page whose marked blocks have the figures given; other blocks stay."""

    def filled(match: re.Match[str]) -> str:
        begin, name, end = match.groups()
        return f"{begin}{blocks[name]}\n{end}" if name in blocks else match[0]

    return BLOCK.sub(filled, text)


def story_blocks(story: Story) -> dict[str, str]:
    """Return the blocks that rest on the demonstration and on its typical run."""
    audit = story.audit
    spread = story.typical["cost"]
    n_runs = story.typical["seeds"]
    n_wrong = story.typical["verdicts"]["FAIR"]
    low, median, high = (f"{spread[share]:,.0f}" for share in ("10%", "50%", "90%"))
    forecast = story.typical["forecast"]
    labels = f"{story.typical['median_labels']:,.0f}"
    exact, printed = format_figures(story.exact_cost), format_figures(story.printed_cost)
    failed_in_ten = round(10.0 * spread["50%"] / story.typical["median_labels"])
    gap = f"{100.0 * story.gap:.1f}"
    checked = format_hundredths(story.check.lower, story.check.upper)
    found = format_hundredths(audit.lower, audit.upper)
    lowest, highest, approval_gap = most_unlike_approval(story)
    n_people = round(story.history.cells.total)
    n_denied = round(sum(counts.denied for _, counts in story.history.cells.items()))
    return {
        "demo": "```text\n" + last_step(story) + "\n```",
        "costs": "\n".join(
            [
                "| | number |",
                "|---|---:|",
                "| Denials that the adaptive audit overrides, median of "
                f"{n_runs} audits (seeds 0 to {n_runs - 1}) | {labels} |",
                "| Failed loans among them, median of the same audits (80% range) "
                f"| {median} ({low} to {high}) |",
                "| Failed loans in the paper's RS-Audit on average, with printed constants / with "
                f"the smallest that we can prove | {printed} / {exact} |",
                "| Theoretical minimum of failed loans on average, for any audit with this "
                f"guarantee | {story.least_cost:,.0f} |",
                "",
                f"This lender's table has {n_people:,} applicants, of whom {n_denied:,} were "
                "denied. RS-Audit needs far more,\nas `equipoise plan` shows, so its figures "
                "assume unlimited historical data. (`python tools/typical_run.py`, `make demo`)",
            ]
        ),
        "preview-caption": "\n".join(
            [
                "*A simulated lender, built from the Federal Reserve's 2007 credit-score tables: "
                f"{n_people:,} applicants. We know",
                "every outcome, so the verdict can be checked. Among all applicants, "
                f"{lowest} ones are approved {100.0 * approval_gap:.0f} points less often than "
                f"{highest} ones.",
                f"Among those who would repay, the largest difference between two groups is {gap} "
                "points. Equipoise judges this second gap.",
                "(`python -m docs.preview`)*",
            ]
        ),
        "check-output": worked_check(story),
        "plan-output": worked_plan(story),
        "executive-problem": (
            "So the records lack the outcomes of denied people, in the example below "
            f"{preview.denied_share(story):.0%} of all outcomes.\n\n"
            "The *gap* is the difference between two groups' approval rates among people who "
            "would repay. In the example, both\n"
            "[usual shortcuts](../understand/concepts.md#the-missing-half-of-the-table) report a "
            f"gap of 0 points. The true gap is {gap} points."
        ),
        "executive-costs": (
            f"We simulated {n_runs} audits of the lender pictured above. Each met different "
            f"applicants, so the costs differ.\nThe median is {labels} overrides and {median} "
            f"failed loans. Eight in ten audits had between {low} and {high} failed loans. "
            f"{n_wrong or 'None'} of the {n_runs}\nverdicts {'were' if n_wrong > 1 else 'was'} "
            "wrong.\n\n"
            f"If a failed loan loses 1,000 dollars, the typical audit loses {median},000 dollars. "
            f"About {failed_in_ten} in 10 overridden\nloans fail, which can harm these customers. "
            "So set a minimum, for example of the credit score, below which no denial is\n"
            "overridden. The verdict then describes applicants above it "
            "([how](../understand/legal.md#what-an-override-is))."
        ),
        "forecast-range": (
            f"For the demonstration's lender, `equipoise plan` with the lender's true shares "
            f"forecasts an 80% range of {forecast['10%']:,} to\n{forecast['90%']:,}. Of "
            f"{n_runs} audits (seeds 0 to {n_runs - 1}), {forecast['costs_between']} had a cost "
            "in this range (`python tools/typical_run.py`)."
        ),
        "caption": (
            f"*A lender with {n_people:,} applicants in four groups. It is simulated from the "
            f"Federal Reserve's 2007 tables, so the true gap is\nknown: {gap} points. From "
            f"historical data alone, the gap lies between {checked.replace(' to ', ' and ')} "
            f"points. After the audit it lies between\n{found.replace(' to ', ' and ')} points, "
            f"so the verdict is {audit.verdict}.*"
        ),
    }


def most_unlike_approval(story: Story) -> tuple[str, str, float]:
    """Return the groups that are approved least and most often, and how far they are apart."""
    rates = {
        group: (counts.approved_positive + counts.approved_negative) / counts.total
        for group, counts in story.history.cells.items()
    }
    lowest, highest = min(rates, key=rates.__getitem__), max(rates, key=rates.__getitem__)
    return lowest, highest, rates[highest] - rates[lowest]


def worked_check(story: Story) -> str:
    """Return the check's first table."""
    naive = (story.check.approved_only or 0.0, story.check.denied_as_failures or 0.0)
    checked = format_hundredths(story.check.lower, story.check.upper)
    return markdown_table(
        [
            {"way of counting": "approved rows only", "gap in points": f"{100.0 * naive[0]:.1f}"},
            {"way of counting": "denials as failures", "gap in points": f"{100.0 * naive[1]:.1f}"},
            {"way of counting": "all that the data allow", "gap in points": checked},
        ]
    )


def worked_plan(story: Story) -> str:
    """Return the cases of the plan, and below them what its rows assume."""
    upper_ends = [high for case in story.plan.cases for _, _, high in [case.cost.values()]]
    highest = format_figures(max(high for high in upper_ends if high is not None))
    return (
        f"{markdown_table(case_rows(story.plan))}\n\n{explain_cases(story.plan)}\n\n"
        "You learn only during the audit which row describes your applicants. A cautious budget is "
        f"therefore the upper end of the\nmost expensive row, {highest}. If that row is true, "
        "about one audit in ten costs still more."
    )


def markdown_table(rows: Sequence[Row]) -> str:
    """Return a table with the first row's columns."""
    columns = list(rows[0])
    lines = [columns, ["---"] + ["---:"] * (len(columns) - 1)]
    lines += [[format_cell(row[column]) for column in columns] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def format_cell(value: object) -> str:
    """Return a value of a table as text, whole numbers with commas."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else str(value)


def last_step(story: Story) -> str:
    """Return what ``equipoise demo`` prints of its audit, without what other audits would cost."""
    from rich.console import Console

    from equipoise.cli.console import Heading, print_parts

    parts = _tell(story)
    start = max(place for place, part in enumerate(parts) if isinstance(part, Heading)) + 1
    screen = StringIO()
    print_parts(
        Console(file=screen, width=80, highlight=False), parts[start : parts.index("", start) - 1]
    )
    return "\n".join(line.rstrip() for line in screen.getvalue().strip().splitlines())


def typical_draw(story: Story) -> int:
    """Return the seed of next applicants whose audit costs nearest to the typical cost."""
    typical = story.typical["cost"]["50%"]
    findings = [audit_draw(seed) for seed in range(N_DRAWS)]
    distances = [
        abs(finding.cost - typical) if finding is not None else float("inf") for finding in findings
    ]
    return distances.index(min(distances))


def audit_draw(seed: int) -> Finding | None:
    """Return the finding of the worked example's audit for one draw of applicants, in memory."""
    lender = eq.data.fico_lender()
    audit = eq.AdaptiveAudit(lender.history(), QUESTION, COSTS)
    audit.tell(audit.ask("Black", 0), 1)  # the page's first applicant
    people = lender.world.draw(N_PEOPLE, seed)
    for start in range(0, N_PEOPLE, N_PER_WEEK):
        overridden = []
        for person in range(start, start + N_PER_WEEK):
            ticket = audit.ask(people.groups[people.group[person]], int(people.decision[person]))
            if ticket.want is eq.Want.LABEL:
                overridden.append((ticket, int(people.outcome[person])))
        for ticket, outcome in overridden:
            audit.tell(ticket, outcome)
        if audit.finding is not None:
            return audit.finding
    return None


def run_worked_example() -> Finding:
    """Run the page's blocks in an empty folder, and return the finding that is left there."""
    from tests.acceptance.documents import run_in_process

    with tempfile.TemporaryDirectory() as folder, chdir(folder), redirect_stdout(StringIO()):
        run_in_process(WORKED_EXAMPLE)
        return result_of_worked_example()


def result_of_worked_example() -> Finding:
    """Return the finding in the ledger that the page has left here."""
    live = eq.LiveAudit.open("equipoise-ledger.db", "loans")
    assert live.finding is not None
    return live.finding


def worked_example_blocks(finding: Finding) -> dict[str, str]:
    """Return the verdict of the worked example in words."""
    typical = _typical_run()
    gap = 100.0 * eq.data.fico_lender().world.gap(QUESTION.metric)
    return {
        "worked-example": (
            f"The verdict is {finding.verdict}. The audit overrode {finding.labels:,} denials, and "
            f"{finding.cost:,.0f} of these loans failed. The range of the gap is\n"
            f"{format_hundredths(finding.lower, finding.upper)} points "
            "([why is it so wide?](../faq.md#why-is-the-range-so-wide-when-the-verdict-is-clear)), "
            f"and the estimate is\n{100.0 * (finding.estimate or 0.0):.1f}. The true gap of this "
            f"lender is {gap:.1f} points. Other audits meet other applicants, so their costs "
            f"differ.\nThe median of {typical['seeds']} audits is {typical['cost']['50%']:,} "
            "failed loans."
        ),
    }


def measured_blocks() -> dict[str, str]:
    """Return what the pages of evidence count, in two sentences."""
    errors = (ROOT / "docs/evidence/errors.md").read_text(encoding="utf-8")
    section = errors.partition("<!-- begin boundary -->")[2].partition("<!-- end boundary -->")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")]
    column = {name: place for place, name in enumerate(rows[0])}
    wrong = [int(row[column["wrong"]]) for row in rows[2:]]
    (n_runs,) = {int(row[column["runs"]].replace(",", "")) for row in rows[2:]}
    sums = json.loads((ROOT / "docs/evidence/ledger.json").read_text(encoding="utf-8"))
    kills = sum(counts["kills"] for counts in sums["ledger_kill"].values())
    lost = sum(counts["lost"] for counts in sums["ledger_kill"].values())
    return {
        "measured": (
            f"- **Measured.** We simulated {len(wrong)} cases whose true gap lies at an edge of "
            f"the grey zone, where errors are most likely, with {n_runs:,}\n  audits each. Between "
            f"{min(wrong)} and {max(wrong)} of {n_runs:,} verdicts were wrong, where "
            f"{0.05 * n_runs:.0f} were allowed ([errors](docs/evidence/errors.md)). We\n  killed "
            f"programs while they stored an audit's events, {kills:,} times, and "
            f"{lost or 'nothing'} was lost ([ledger](docs/evidence/ledger.md))."
        )
    }


def comparison_blocks() -> dict[str, str]:
    """Return what Equipoise answers on the table that other toolkits were asked about."""
    from tools.comparison import our_answers

    return {"comparison": our_answers()}


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
