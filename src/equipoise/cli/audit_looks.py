"""``equipoise audit status, log, report, verify, …``: where an audit stands, and its proof."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from equipoise.cli import options as shared
from equipoise.cli.console import Output, Table, failure_after, show, show_activity, wrap_lines
from equipoise.cli.option_values import parse_verdicts
from equipoise.errors import InvalidInput

EventCount = Annotated[int, typer.Option("--last", help="Number of events.")]
ReportFiles = Annotated[
    list[Path] | None,
    typer.Option("--to", help="A file that ends in .html or .json. May be repeated."),
]
ExportFile = Annotated[Path | None, typer.Option("--to", help="The file. Default: NAME.jsonl.")]
KeysFile = Annotated[
    Path | None,
    typer.Option(
        "--people", help="Also write the key table: pseudonyms, for those who may see them."
    ),
]
WithVerifier = Annotated[
    bool,
    typer.Option(
        "--verifier/--no-verifier",
        help="Also write verify.py, which checks the export with bare Python.",
    ),
]
CheckpointFile = Annotated[
    Path | None, typer.Option("--to", help="Also append it to this file, which you keep elsewhere.")
]
OptionalAuditName = Annotated[
    str | None, typer.Argument(metavar="NAME", help="The audit.", show_default=False)
]
ExportToVerify = Annotated[
    Path | None,
    typer.Option("--file", "-f", help="Check an export instead of the ledger."),
]
Head = Annotated[
    str | None, typer.Option("--head", help="The last hash of the export, as you received it.")
]
Checkpoints = Annotated[
    list[str] | None,
    typer.Option(
        "--checkpoint",
        help="An earlier checkpoint, or a file of checkpoints.",
        metavar="SEQ:HASH|FILE",
    ),
]
KeysToVerify = Annotated[
    Path | None,
    typer.Option("--people", help="With --file: the key table, so that no person counts twice."),
]
LotterySeed = Annotated[
    str | None, typer.Option("--seed", help="The seed from the report, to check the lottery.")
]


def status(
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    fail_on: shared.FailOn = "",
    json: shared.Json = False,
) -> None:
    """Show people, money, evidence, drift and the expected cost as of now."""
    from equipoise.messages.answer import build_answer
    from equipoise.report.content import forecast_similar_audit
    from equipoise.report.sentences import describe_expected_cost

    live = shared.open_audit(ledger, name)
    failing = parse_verdicts(fail_on)
    audit_status = live.status()
    text = str(audit_status)
    if audit_status.finding is None:
        answer = build_answer(live.so_far(), is_final=False)
        text = f"{answer.summary}\n{text}"
    else:
        text = f"{build_answer(audit_status.finding).summary}\n{text}"
    forecast = forecast_similar_audit(live, audit_status)
    if forecast:
        text += f"\n  forecast    {describe_expected_cost(forecast, audit_status)}"
    data = {**audit_status.to_dict(), "forecast": forecast}
    verdicts = [] if audit_status.finding is None else [audit_status.finding.verdict]
    show(Output(data, wrap_lines(text), failure_after(failing, verdicts)), json)


def log(
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    last: EventCount = 20,
    json: shared.Json = False,
) -> None:
    """Show the events, and who caused them."""
    from equipoise.report.event_log import log_rows

    live = shared.open_audit(ledger, name)
    # Events are numbered without gaps, so the last ones follow from the number of the last.
    events = list(live.events(after=max(0, live.checkpoint().seq - last)))
    show(Output(events, [Table(log_rows(events, live.settings))]), json)


def list_audits(ledger: shared.Ledger = shared.DEFAULT_LEDGER, json: shared.Json = False) -> None:
    """Show every audit of the ledger."""
    from equipoise import ledger as ledgers

    rows = [
        {"name": row.name, "events": row.seq, "time": row.time[:19], "id": row.uid}
        for row in ledgers.list_audits(ledger)
    ]
    show(Output(rows, [Table(rows)]), json)


def report(
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    to: ReportFiles = None,
    json: shared.Json = False,
) -> None:
    """Write the report: one HTML page for people, JSON for programs."""
    from equipoise.ledger.inputs import file_name
    from equipoise.report import Report, write_report

    live = shared.open_audit(ledger, name)
    paths = to or []
    if not paths and not json:  # with --json the report is printed
        paths = [Path(file_name(live.row.name, ".html"))]
    # The ledger's own files are refused, others are replaced. Before the replay, which takes long.
    for path in paths:
        live.refuse_overwriting(path)
    with show_activity("Replaying the audit …"):
        audit_report = Report.of(live)
    lines = [f"wrote {write_report(audit_report, path)}" for path in paths]
    show(Output(audit_report, "\n".join(lines)), json)


def export(
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    to: ExportFile = None,
    people: KeysFile = None,
    verifier: WithVerifier = False,
    json: shared.Json = False,
) -> None:
    """Write every event to a file that others can check. Keep the hash that is shown."""
    from equipoise.ledger.inputs import file_name
    from equipoise.ledger.proof import require_no_other_verifier, write_verifier

    live = shared.open_audit(ledger, name)
    path = to or Path(file_name(live.row.name, ".jsonl"))
    if verifier:  # before anything is written
        require_no_other_verifier(path.parent)
    end = live.export(path, people=people)
    if verifier:
        write_verifier(path.parent)
    text = f"wrote {path}: {end.seq:,} events\nhead {end.hash}"
    show(Output({"file": str(path), **end.to_dict()}, text), json)


def checkpoint(
    name: shared.AuditName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    to: CheckpointFile = None,
    json: shared.Json = False,
) -> None:
    """Show the last hash of the chain. Keep it elsewhere: in a file, a mail or a time-stamp."""
    live = shared.open_audit(ledger, name)
    end = live.checkpoint()
    if to is not None:
        live.refuse_overwriting(to)
        end.append_to(to)
    show(Output(end), json)


def verify(
    name: OptionalAuditName = None,
    file: ExportToVerify = None,
    head: Head = None,
    checkpoint: Checkpoints = None,
    people: KeysToVerify = None,
    seed: LotterySeed = None,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    json: shared.Json = False,
) -> None:
    """Check chain, money and people, and repeat the statistics from the first event on."""
    from equipoise.ledger.proof import read_keys, verify_export

    with show_activity("Replaying the audit …"):
        if file is not None:
            proof = verify_export(
                file,
                head=head,
                checkpoints=_read_checkpoints(checkpoint, None),
                people=None if people is None else read_keys(people),
                seed=seed,
            )
        elif name is not None:
            live = shared.open_audit(ledger, name)
            proof = live.verify(_read_checkpoints(checkpoint, live.row.uid))
        else:
            raise InvalidInput("'NAME' or '--file' is needed")
    show(Output(proof), json)


def _read_checkpoints(texts: list[str] | None, audit_id: str | None) -> list[tuple[int, str]]:
    """Return the checkpoints of an audit that ``--checkpoint`` gives: number and hash of events.

    Each text is such a pair, as in ``120:HASH``, or a file of them; those of other audits are left
    out, unless ``audit_id`` is None.
    """
    from equipoise.ledger.proof import read_checkpoints

    checkpoints: list[tuple[int, str]] = []
    for text in texts or []:
        # Anything else is the name of a file, which may hold a colon as well.
        number, mark, event_hash = text.partition(":")
        if number.isdigit() and mark and event_hash:
            checkpoints.append((int(number), event_hash))
        elif Path(text).is_file():
            checkpoints += read_checkpoints(text, audit_id)
        else:
            raise InvalidInput(f"'--checkpoint' must be 120:HASH or name a file; got {text!r}")
    return checkpoints


COMMANDS: Mapping[str, Callable[..., None]] = {
    "status": status,
    "list": list_audits,
    "report": report,
    "log": log,
    "checkpoint": checkpoint,
    "export": export,
    "verify": verify,
}
"""Name of a command -> its function, in the order of the help."""
