"""``equipoise audit status, report, verify, …``: where an audit stands, and the proof of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise.cli.console import console, exit_on, print_json, show, show_list, show_rows, working
from equipoise.cli.options import LEDGER, Json, Ledger, failing, live_audit, with_options
from equipoise.errors import InvalidInput
from equipoise.question import Verdict

if TYPE_CHECKING:
    from equipoise.ledger import LiveAudit

__all__ = ["checkpoint", "export", "list_all", "log", "report", "status", "verify"]


@with_options(live=live_audit, fail_on=failing)
def status(live: LiveAudit, fail_on: frozenset[Verdict], json: Json = False) -> None:
    """Show people, money, evidence, drift and the expected cost as of now."""
    from equipoise.report.content import forecast_of
    from equipoise.report.sentences import expected

    now = live.status()
    forecast = forecast_of(live, now)
    if json:
        print_json({**now.to_dict(), "forecast": forecast})
    else:
        typer.echo(str(now) + (f"\n  forecast    {expected(forecast, now)}" if forecast else ""))
    if now.finding is not None:
        exit_on(fail_on, now.finding.verdict)


@with_options(live=live_audit)
def log(
    live: LiveAudit,
    last: Annotated[int, typer.Option(help="How many events.")] = 20,
    json: Json = False,
) -> None:
    """Show what happened, and who did it."""
    from equipoise.report.sentences import log_rows

    events = list(live.events(after=max(0, live.checkpoint().seq - last)))
    for event in events if json else ():
        print_json(event)
    show_rows(console(), () if json else log_rows(events, live.settings))


def list_all(ledger: Ledger = LEDGER, json: Json = False) -> None:
    """Show every audit of the ledger."""
    from equipoise.ledger import list_audits

    rows = [
        {"name": row.name, "events": row.seq, "time": row.time, "id": row.uid}
        for row in list_audits(ledger)
    ]
    show_list(rows, json)


@with_options(live=live_audit)
def report(
    live: LiveAudit,
    to: Annotated[
        list[Path] | None,
        typer.Option("--to", help="A file that ends in .html or .json; give it again."),
    ] = None,
    json: Json = False,
) -> None:
    """Write the report: one HTML page for people, JSON for programs."""
    from equipoise.report import Report, write_report

    with working("Replaying the audit …"):
        made = Report.of(live)
    if json:
        print_json(made.to_dict())
    for path in to or ([] if json else [Path(f"{live.row.name}.html")]):
        write_report(made, path)
        if not json:
            typer.echo(f"wrote {path}")


@with_options(live=live_audit)
def export(
    live: LiveAudit,
    to: Annotated[
        Path | None, typer.Option("--to", help="The file; NAME.jsonl if left out.")
    ] = None,
    people: Annotated[
        Path | None,
        typer.Option(help="Also write the key table: pseudonyms, for those who may see them."),
    ] = None,
    verifier: Annotated[
        bool, typer.Option(help="Put verify.py, which needs nothing but Python, beside it.")
    ] = False,
    json: Json = False,
) -> None:
    """Write every event to a file that anybody can check; keep the hash that is shown."""
    path = to or Path(f"{live.row.name}.jsonl")
    made = live.export(path, people=people)
    if verifier:
        from equipoise.ledger import verify as program

        path.with_name("verify.py").write_text(Path(program.__file__).read_text(), "utf-8")
    if json:
        print_json({"file": str(path), **made.to_dict()})
    else:
        typer.echo(f"wrote {path}: {made.seq:,} events")
        typer.echo(f"head {made.hash}")


@with_options(live=live_audit)
def checkpoint(
    live: LiveAudit,
    to: Annotated[
        Path | None, typer.Option("--to", help="A file, kept elsewhere, to add it to.")
    ] = None,
    json: Json = False,
) -> None:
    """Show the end of the chain, to keep outside: in a file, a mail, a time-stamp."""
    made = live.checkpoint()
    if to is not None:
        made.append_to(to)
    show(made, json)


def verify(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The audit.", show_default=False)
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Check an export instead of the ledger.")
    ] = None,
    head: Annotated[str | None, typer.Option(help="The export's last hash, as handed out.")] = None,
    checkpoint: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SEQ:HASH|FILE", help="An earlier end of the chain, or a file of them."
        ),
    ] = None,
    people: Annotated[
        Path | None, typer.Option(help="With --file: the key table, so that nobody counts twice.")
    ] = None,
    seed: Annotated[str | None, typer.Option(help="From the report, to check the lottery.")] = None,
    ledger: Ledger = LEDGER,
    json: Json = False,
) -> None:
    """Check chain, money and people, and repeat the statistics from the first event on."""
    with working("Replaying the audit …"):
        if file is not None:
            from equipoise.ledger.proof import read_keys, verify_export

            keys = None if people is None else read_keys(people)
            points = _checkpoints(checkpoint, None)
            proof = verify_export(file, head=head, checkpoints=points, people=keys, seed=seed)
        elif name is not None:
            live = live_audit(name, ledger)
            proof = live.verify(_checkpoints(checkpoint, live.row.uid))
        else:
            raise InvalidInput("'NAME' or '--file' is needed")
    if json:
        print_json(vars(proof))
    else:
        typer.echo(str(proof))


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
