"""Ask five fairness toolkits about a lender whose denials hide outcomes: ``make comparison``.

Each toolkit gets an environment of its own under ``.cache/toolkits`` (made with pip: this needs a
package index) and answers through ``toolkits.py``. One that cannot be installed is skipped, and the
page says so. Writes ``docs/understand/comparison.md``.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import equipoise as eq
from equipoise.display import format_hundredths

ROOT = Path(__file__).parents[1]
HOME = ROOT / ".cache" / "toolkits"
SIZE, SEED = 20_000, 1

# veritastool 2.0.2 says that it needs Python 3.10 and pins a shap that only builds there; it runs
# with what it pins otherwise.
VERITAS = [
    "numpy==1.23.5",
    "scipy==1.10.1",
    "scikit-learn==1.2.2",
    "pandas==1.5.3",
    "matplotlib==3.7.1",
    "phik==0.12.3",
    "shap==0.44.1",
    "ipywidgets==8.0.4",
    "ipython==8.11.0",
    "tqdm==4.65.0",
]
INSTALL = {
    "fairlearn": [["fairlearn"]],
    "aequitas": [["aequitas"]],
    "aif360": [["aif360"]],
    "veritastool": [VERITAS, ["--no-deps", "--ignore-requires-python", "veritastool==2.0.2"]],
    "oxonfair": [["oxonfair"]],
}
WAYS = {
    "every outcome": "all.csv",
    "as the lender has it": "empty.csv",
    "approved rows only": "approved.csv",
    "denials as failures": "failures.csv",
}


def main() -> int:
    """Run every toolkit on every table, and write the page."""
    lender = eq.data.fico_lender(groups=["White", "Black"])
    people = lender.world.draw(SIZE, SEED)
    with tempfile.TemporaryDirectory() as folder:
        truth = write_tables(people, Path(folder))
        rows, problems = [], []
        for name, steps in INSTALL.items():
            print(f"{name} …", file=sys.stderr, flush=True)
            problem = install(name, steps)
            if problem:
                problems.append(f"`{name}` was skipped: {problem}")
                continue
            answers = [ask(name, Path(folder) / file) for file in WAYS.values()]
            rows.append(row(name, answers))
    page = PAGE.format(
        points=100.0 * truth,
        size=SIZE,
        ways=" | ".join(WAYS),
        rows="\n".join(rows),
        problems="".join(f"\n- {line}" for line in problems),
        ours=our_answers(),
    )
    (ROOT / "docs" / "understand" / "comparison.md").write_text(page, encoding="utf-8")
    print("wrote docs/understand/comparison.md", file=sys.stderr)
    return 0


def write_tables(people: eq.worlds.People, folder: Path) -> float:
    """Write the four ways in which the lender's table may be handed over; return the truth."""
    approved = people.decision == 1
    names = np.array(people.groups)[people.group]
    outcomes = {
        "all.csv": people.outcome.astype(str),
        "empty.csv": np.where(approved, people.outcome.astype(str), ""),
        "failures.csv": np.where(approved, people.outcome.astype(str), "0"),
    }
    for file, outcome in outcomes.items():
        write_csv(folder / file, names, people.decision, outcome)
    known = names[approved], people.decision[approved], outcomes["all.csv"][approved]
    write_csv(folder / "approved.csv", *known)
    good = people.outcome == 1
    rates = [people.decision[good & (people.group == g)].mean() for g in (0, 1)]
    return float(abs(rates[0] - rates[1]))


def write_csv(path: Path, *columns: np.ndarray) -> None:
    """Write a table of group, decision and outcome."""
    lines = [",".join(map(str, line)) for line in zip(*columns, strict=True)]
    path.write_text("\n".join(["group,decision,outcome", *lines, ""]), encoding="utf-8")


def install(name: str, steps: list[list[str]]) -> str:
    """Make the toolkit's environment; return what went wrong, if anything."""
    home = HOME / name
    if (home / "ready").exists():
        return ""
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
    for step in steps:
        done = subprocess.run(
            [home / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", *step],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            return shortened(errors[-1] if errors else done.stderr)
    (home / "ready").touch()
    return ""


def ask(name: str, table: Path) -> dict[str, object]:
    """Return what the toolkit says about a table."""
    done = subprocess.run(
        [HOME / name / "bin" / "python", ROOT / "tools" / "toolkits.py", name, table],
        capture_output=True,
        text=True,
        cwd=table.parent,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if lines:
        said: dict[str, object] = json.loads(lines[-1])
        return said
    complaint = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return {"error": complaint[-1] if complaint else f"exits with {done.returncode}"}


def row(name: str, answers: list[dict[str, object]]) -> str:
    """Return a line of the table."""
    version = next((str(a["version"]) for a in answers if "version" in a), "")
    usual = answers[0].get("warnings")
    shown = [cell(answers[0]), *(cell(answer, usual) for answer in answers[1:])]
    return f"| {name} {version} | " + " | ".join(shown) + " |"


def cell(answer: dict[str, object], usual: object = None) -> str:
    """Return an answer as the table shows it, and whether it warns of more than usual."""
    if "error" in answer:
        return f"error: {shortened(str(answer['error']))}"
    number = float(str(answer["answer"]))
    text = "NaN" if math.isnan(number) else f"**{100.0 * number:,.1f}**"
    if usual is None:
        return text
    return text + (", no warning" if answer["warnings"] == usual else ", with a warning")


def shortened(text: str, length: int = 90) -> str:
    """Return the beginning of a message, safe in a table."""
    line = " ".join(text.split())
    line = line if len(line) <= length else line[: length - 1] + "…"
    return "".join("\\" + letter if letter in "|<[]*_" else letter for letter in line)


def our_answers() -> str:
    """Return what Equipoise answers about the same table, and about people who arrive later."""
    lender = eq.data.fico_lender(groups=["White", "Black"])
    people = lender.world.draw(SIZE, SEED)
    approved = people.decision == 1
    table = {
        "group": np.array(people.groups)[people.group],
        "decision": people.decision,
        "outcome": np.where(approved, people.outcome.astype(float), np.nan),
    }
    question = eq.Question("equal_opportunity", gamma=0.05, epsilon=0.05)
    history = eq.History.read(table, group="group", decision="decision", outcome="outcome")
    free = eq.check(history, question)
    audit = eq.AdaptiveAudit(history, question, eq.Costs())
    later = lender.world.draw(10 * SIZE, SEED + 1)
    for group, decision, outcome in zip(later.group, later.decision, later.outcome, strict=True):
        ticket = audit.ask(later.groups[group], int(decision))
        if ticket.want is eq.Want.LABEL:
            audit.tell(ticket, int(outcome))
        if audit.finding is not None:
            break
    found = audit.conclude()
    header = ["| | verdict | gap in points | overrides | failed loans |", "|---|---|---|---:|---:|"]
    rows = [
        f"| {what} | {finding.verdict} | {format_hundredths(finding.lower, finding.upper)} "
        f"| {finding.labels:,} | {finding.cost:,.0f} |"
        for what, finding in (("`eq.check`", free), ("`eq.AdaptiveAudit`", found))
    ]
    return "\n".join(header + rows)


PAGE = """\
# Comparison

One lender, one question, five toolkits: *among applicants who would repay, are both groups approved
equally often?* {size:,} applicants (the FICO lender, White and Black), whose every outcome happens
to be known. The true gap between their true positive rates is **{points:.1f} points**.

Written by `make comparison`, which installs each toolkit into an environment of its own and calls
it as its documentation does (`tools/toolkits.py`).

The numbers are gaps in percentage points.

| toolkit | {ways} |
|---|---|---|---|---|
{rows}
{problems}

How to read it, column by column:

- **Every outcome.** No lender has this table. It shows that each toolkit is right if all outcomes
  are known.
- **As the lender has it.** Outcomes of denied people are empty. An error is the best
  result here. A number would be misleading.
- **Approved rows only.** This is a common reaction to the error. Every remaining person was
  approved, so every true positive rate is 100%, for this lender and for any other.
- **Denials as failures.** This is another reaction. It assumes that no denial was ever a mistake.

The toolkits work as documented. They compute functions of `y_true` and `y_pred`, and part of
`y_true` does not exist. Equipoise is made for this table. With a tolerance and a margin of 5
points, and an error probability of 5%, it answers:

<!-- figures: comparison -->
{ours}
<!-- end of figures -->

The first row shows what the same table proves without any override. The second row is an audit of
applicants who arrive later (`python -m docs.figures`).
"""


if __name__ == "__main__":
    sys.exit(main())
