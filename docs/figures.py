"""Write the figures of README and documents: ``python -m docs.figures`` (a minute).

Figures stand between two comments: ``<!-- figures: NAME -->`` and ``<!-- end of figures -->``.
This script runs the audits that they are about, writes them anew and draws the picture of the
README. If audits change, run ``python tools/typical_run.py`` first, which finds the typical run.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path

from docs import preview

import equipoise as eq
from equipoise.cli.demo import COSTS, QUESTION, Story, _live_through, _tell
from equipoise.display import format_figures, format_hundredths
from equipoise.finding import Finding

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
    labels = f"{story.typical['median_labels']:,.0f}"
    exact, printed = format_figures(story.exact_cost), format_figures(story.printed_cost)
    gap = f"{100.0 * story.gap:.1f}"
    checked = format_hundredths(story.check.lower, story.check.upper)
    found = format_hundredths(audit.lower, audit.upper)
    return {
        "demo": "```text\n" + last_step(story) + "\n```",
        "costs": "\n".join(
            [
                f"| median of {n_runs} audits (`python tools/typical_run.py`) | |",
                "|---|---:|",
                f"| Denials overridden | {labels} |",
                f"| Of these, failed loans (80% range) | {median} ({low} to {high}) |",
                '| Failed loans of the published RS-Audit, exact constants (`tau="exact"`) / as '
                f"printed (`make demo`) | {exact} / {printed} |",
            ]
        ),
        "executive-costs": (
            f"We simulated {n_runs} audits of this lender. Half of them ended after at most "
            f"{median} failed loans. Eight\nin ten needed between {low} and {high}. The typical "
            f"audit overrode {labels} denials. Of the {n_runs} verdicts,\n{n_wrong or 'none'} "
            f"{'were' if n_wrong > 1 else 'was'} wrong."
        ),
        "caption": (
            f"*A lender with {story.history.cells.total:,g} applicants in four groups. Historical "
            f"data allow a gap of {checked} points. The audit\nleaves {found} points, so the "
            f"verdict is {audit.verdict}. The true gap, which we know for this lender, is {gap} "
            "points.*"
        ),
    }


def last_step(story: Story) -> str:
    """Return what ``equipoise demo`` prints below its last heading, without what to read next."""
    from rich.console import Console

    from equipoise.cli.console import Heading, print_parts

    parts = _tell(story)
    start = max(place for place, part in enumerate(parts) if isinstance(part, Heading)) + 1
    screen = StringIO()
    print_parts(
        Console(file=screen, width=80, highlight=False), parts[start : parts.index("", start)]
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
    """Run the page's blocks in an empty folder, and return what its audit found."""
    from tests.acceptance.documents import run_in_process

    with tempfile.TemporaryDirectory() as folder, chdir(folder), redirect_stdout(StringIO()):
        run_in_process(WORKED_EXAMPLE)
        return finding_of_worked_example()


def finding_of_worked_example() -> Finding:
    """Return the finding in the ledger that the page has left in this folder."""
    finding = eq.LiveAudit.open("equipoise-ledger.db", "loans").finding
    assert finding is not None
    return finding


def worked_example_blocks(finding: Finding) -> dict[str, str]:
    """Return the verdict of the worked example in words."""
    gap = 100.0 * eq.data.fico_lender().world.gap(QUESTION.metric)
    return {
        "worked-example": (
            f"The verdict is {finding.verdict}. The audit overrode {finding.labels:,} denials, and "
            f"{finding.cost:,.0f} of these loans failed. The range of the gap is\n"
            f"{format_hundredths(finding.lower, finding.upper)} points. It is wide, because "
            "the audit stops as soon as the question is answered. The true gap of this lender\n"
            f"is {gap:.1f} points."
        )
    }


def comparison_blocks() -> dict[str, str]:
    """Return what Equipoise answers on the table that other toolkits were asked about."""
    from tools.comparison import our_answers

    return {"comparison": our_answers()}


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
