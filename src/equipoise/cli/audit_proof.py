"""``equipoise audit status, report, verify, …``: where an audit stands, and the proof of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from equipoise.cli.console import Answer, Table, stop_on, working
from equipoise.cli.options import JSON, LEDGER, command, failing, live_audit, option
from equipoise.errors import InvalidInput
from equipoise.question import Verdict

if TYPE_CHECKING:
    from equipoise.ledger import LiveAudit
    from equipoise.ledger.proof import Checkpoint
    from equipoise.ledger.verify import Proof


@command(live=live_audit, fail_on=failing)
def status(live: LiveAudit, fail_on: frozenset[Verdict]) -> Answer:
    """Show people, money, evidence, drift and the expected cost as of now."""
    from equipoise.report.content import forecast_of
    from equipoise.report.sentences import expected

    now = live.status()
    forecast = forecast_of(live, now)
    return Answer(
        {**now.to_dict(), "forecast": forecast},
        str(now) + (f"\n  forecast    {expected(forecast, now)}" if forecast else ""),
        stop_on(fail_on, *([now.finding.verdict] if now.finding else [])),
    )


@command(live=live_audit)
def log(live: LiveAudit, last: int = option(20, "How many events.")) -> Answer:
    """Show what happened, and who did it."""
    from equipoise.report.sentences import log_rows

    events = list(live.events(after=max(0, live.checkpoint().seq - last)))
    return Answer(events, [Table(log_rows(events, live.settings))])


@command()
def list_all(ledger: str = LEDGER) -> Answer:
    """Show every audit of the ledger."""
    from equipoise.ledger import list_audits

    rows = [
        {"name": row.name, "events": row.seq, "time": row.time, "id": row.uid}
        for row in list_audits(ledger)
    ]
    return Answer(rows, [Table(rows)])


@command(live=live_audit)
def report(
    live: LiveAudit,
    to: list[Path] | None = option(None, "A file that ends in .html or .json; give it again."),
    json: bool = JSON,
) -> Answer:
    """Write the report: one HTML page for people, JSON for programs."""
    from equipoise.report import Report, write_report

    with working("Replaying the audit …"):
        made = Report.of(live)
    paths = to or ([] if json else [Path(f"{live.row.name}.html")])
    return Answer(made, "\n".join([f"wrote {write_report(made, path)}" for path in paths]))


@command(live=live_audit)
def export(
    live: LiveAudit,
    to: Path | None = option(None, "The file; NAME.jsonl if left out."),
    people: Path | None = option(
        None, "Also write the key table: pseudonyms, for those who may see them."
    ),
    verifier: bool = option(False, "Put verify.py, which needs nothing but Python, beside it."),
) -> Answer:
    """Write every event to a file that anybody can check; keep the hash that is shown."""
    path = to or Path(f"{live.row.name}.jsonl")
    made = live.export(path, people=people)
    if verifier:
        from equipoise.ledger import verify as program

        path.with_name("verify.py").write_text(Path(program.__file__).read_text(), "utf-8")
    words = f"wrote {path}: {made.seq:,} events\nhead {made.hash}"
    return Answer({"file": str(path), **made.to_dict()}, words)


@command(live=live_audit)
def checkpoint(
    live: LiveAudit,
    to: Path | None = option(None, "A file, kept elsewhere, to add it to."),
) -> Checkpoint:
    """Show the end of the chain, to keep outside: in a file, a mail, a time-stamp."""
    made = live.checkpoint()
    if to is not None:
        made.append_to(to)
    return made


@command()
def verify(
    name: str | None = typer.Argument(None, metavar="NAME", help="The audit.", show_default=False),
    file: Path | None = option(None, "Check an export instead of the ledger.", flags="--file -f"),
    head: str | None = option(None, "The export's last hash, as handed out."),
    checkpoint: list[str] | None = option(
        None, "An earlier end of the chain, or a file of them.", metavar="SEQ:HASH|FILE"
    ),
    people: Path | None = option(None, "With --file: the key table, so that nobody counts twice."),
    seed: str | None = option(None, "From the report, to check the lottery."),
    ledger: str = LEDGER,
) -> Proof:
    """Check chain, money and people, and repeat the statistics from the first event on."""
    with working("Replaying the audit …"):
        if file is not None:
            from equipoise.ledger.proof import read_keys, verify_export

            keys = None if people is None else read_keys(people)
            points = _checkpoints(checkpoint, None)
            return verify_export(file, head=head, checkpoints=points, people=keys, seed=seed)
        if name is None:
            raise InvalidInput("'NAME' or '--file' is needed")
        live = live_audit(name, ledger)
        return live.verify(_checkpoints(checkpoint, live.row.uid))


def _checkpoints(texts: list[str] | None, audit: str | None) -> list[tuple[int, str]]:
    found = []
    for text in texts or []:
        number, mark, digest = text.partition(":")
        if number.isdigit() and mark and digest:
            found.append((int(number), digest))
        elif Path(text).is_file():
            from equipoise.ledger.proof import read_checkpoints

            found += read_checkpoints(text, audit)
        else:
            raise InvalidInput(f"'--checkpoint' must be 120:HASH or name a file; got {text!r}")
    return found
