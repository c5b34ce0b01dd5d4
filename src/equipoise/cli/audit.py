"""``equipoise audit``: run an audit over months, in a ledger that survives everything."""

from __future__ import annotations

import json as json_module
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.cli.console import fail, print_json, working
from equipoise.cli.options import (
    Decision,
    Delta,
    DeniedOutcomes,
    Epsilon,
    Gamma,
    Group,
    Json,
    Metric,
    Outcome,
    Positive,
    Source,
    read_history,
)
from equipoise.errors import InvalidInput
from equipoise.question import Costs, Question

if TYPE_CHECKING:
    from equipoise.ledger import LiveAudit, Reply
    from equipoise.ledger.commands import Command

__all__ = ["app"]

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Run an audit over months, in a ledger."
)

MONEY, LIMITS, FILES = "Money, in whole minor units", "Limits", "Many people at once"

Name = Annotated[str, typer.Argument(metavar="NAME", help="The audit.", show_default=False)]
Person = Annotated[
    str | None, typer.Argument(metavar="[PERSON]", help="Pseudonym.", show_default=False)
]
Ledger = Annotated[
    str,
    typer.Option(
        "--ledger",
        "-l",
        envvar="EQUIPOISE_LEDGER",
        metavar="FILE|URL",
        help="A file (SQLite) or postgresql://…",
    ),
]
File = Annotated[
    Path | None,
    typer.Option(
        "--file",
        "-f",
        help="CSV, Parquet or JSON lines; repeating a file is safe.",
        rich_help_panel=FILES,
    ),
]
Column = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="WHAT=COLUMN",
        help="Name of a column in the file, as in person=applicant_id.",
        rich_help_panel=FILES,
    ),
]
Results = Annotated[
    Path | None,
    typer.Option("--results", help="Write a CSV with a row per row.", rich_help_panel=FILES),
]
LEDGER = "equipoise-ledger.db"


@app.command()
def new(
    name: Name,
    source: Source,
    group: Group,
    decision: Decision,
    outcome: Outcome,
    positive: Positive = None,
    denied_outcomes: DeniedOutcomes = "error",
    metric: Metric = "equalized_odds",
    gamma: Gamma = 0.05,
    epsilon: Epsilon = 0.05,
    delta: Delta = 0.05,
    audit: Annotated[str, typer.Option("--audit", help="adaptive, rs or baseline.")] = "adaptive",
    feature_cost: Annotated[
        int, typer.Option(help="Price of each request.", rich_help_panel=MONEY)
    ] = 0,
    label_cost: Annotated[
        int, typer.Option(help="Price of an override that ends badly.", rich_help_panel=MONEY)
    ] = 1,
    budget: Annotated[
        int | None, typer.Option(help="Never spend more than this.", rich_help_panel=MONEY)
    ] = None,
    currency: Annotated[str, typer.Option(help="As in EUR.", rich_help_panel=MONEY)] = "",
    decimals: Annotated[
        int, typer.Option(help="2 if the minor unit is a cent.", rich_help_panel=MONEY)
    ] = 0,
    max_in_flight: Annotated[
        int | None, typer.Option(help="Overrides without outcome at once.", rich_help_panel=LIMITS)
    ] = None,
    max_in_flight_of: Annotated[
        list[str] | None,
        typer.Option(metavar="GROUP=N", help="The same in one group.", rich_help_panel=LIMITS),
    ] = None,
    lottery: Annotated[
        float, typer.Option(help="Chance that a person is considered.", rich_help_panel=LIMITS)
    ] = 1.0,
    overdue_after: Annotated[
        float | None, typer.Option(help="Days until an outcome is overdue.", rich_help_panel=LIMITS)
    ] = None,
    denied_only: Annotated[
        bool,
        typer.Option(help="Approved people will not be reported: no drift test."),
    ] = False,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=JSON", help="Further argument of the audit, as in tau=500."),
    ] = None,
    ledger: Ledger = LEDGER,
    json: Json = False,
) -> None:
    """Begin an audit on past decisions.

    Example: equipoise audit new loans past.csv -g race -d approved -o repaid --budget 500000
    """
    question, costs = Question(metric, gamma, epsilon, delta), Costs(feature_cost, label_cost)
    history = read_history(source, group, decision, outcome, positive, denied_outcomes)
    from equipoise.ledger import LiveAudit

    live = LiveAudit.create(
        ledger,
        name,
        question,
        costs,
        history,
        audit=audit,
        budget=budget,
        max_in_flight=max_in_flight,
        max_in_flight_groups={g: int(n) for g, n in _pairs("--max-in-flight-of", max_in_flight_of)},
        lottery=lottery,
        overdue_after=overdue_after,
        stream="denied" if denied_only else "everybody",
        currency=currency,
        decimals=decimals,
        options={n: _json_value(v) for n, v in _pairs("--option", option)},
    )
    _show(live.status(), json)


@app.command()
def ask(
    name: Name,
    person: Person = None,
    group: Annotated[str | None, typer.Argument(help="Group.", show_default=False)] = None,
    decision: Annotated[
        int | None, typer.Argument(help="1 for approved, 0 for denied.", show_default=False)
    ] = None,
    file: File = None,
    column: Column = None,
    results: Results = None,
    ledger: Ledger = LEDGER,
    json: Json = False,
) -> None:
    """Say what is wanted of somebody who arrived, or of everybody in a file."""
    from equipoise.cli.batches import whole_number
    from equipoise.ledger.commands import Ask

    def one(live: LiveAudit, who: str) -> Reply:
        if group is None or decision is None:
            raise InvalidInput("'GROUP' and 'DECISION' are needed after 'PERSON'")
        return live.ask(who, group, decision)

    def make(row: Any) -> Command:
        return Ask(row["person"], str(row["group"]), whole_number(row["decision"]))

    names = ("person", "group", "decision")
    _do(ledger, name, person, one, file, column, names, make, results, json)


@app.command()
def tell(
    name: Name,
    person: Person = None,
    outcome: Annotated[
        int | None, typer.Argument(help="1 for good, 0 for bad.", show_default=False)
    ] = None,
    file: File = None,
    column: Column = None,
    results: Results = None,
    ledger: Ledger = LEDGER,
    json: Json = False,
) -> None:
    """Bring an outcome, or all outcomes in a file, in any order and as often as you like."""
    from equipoise.cli.batches import whole_number
    from equipoise.ledger.commands import Tell

    def one(live: LiveAudit, who: str) -> Reply:
        if outcome is None:
            raise InvalidInput("'OUTCOME' is needed after 'PERSON'")
        return live.tell(who, outcome)

    def make(row: Any) -> Command:
        return Tell(row["person"], whole_number(row["outcome"]))

    _do(ledger, name, person, one, file, column, ("person", "outcome"), make, results, json)


@app.command()
def executed(
    name: Name,
    person: Person = None,
    file: File = None,
    column: Column = None,
    results: Results = None,
    ledger: Ledger = LEDGER,
    json: Json = False,
) -> None:
    """Say that an override was carried out."""
    from equipoise.ledger.commands import Execute

    def make(row: Any) -> Command:
        return Execute(row["person"])

    def one(live: LiveAudit, who: str) -> Reply:
        return live.executed(who)

    _do(ledger, name, person, one, file, column, ("person",), make, results, json)


@app.command()
def withdraw(
    name: Name,
    person: Person = None,
    file: File = None,
    column: Column = None,
    results: Results = None,
    ledger: Ledger = LEDGER,
    json: Json = False,
) -> None:
    """Say that a person refused: the money is free again, the outcome stays unknown."""
    from equipoise.ledger.commands import Withdraw

    def make(row: Any) -> Command:
        return Withdraw(row["person"])

    def one(live: LiveAudit, who: str) -> Reply:
        return live.withdraw(who)

    _do(ledger, name, person, one, file, column, ("person",), make, results, json)


@app.command()
def overdue(
    name: Name,
    days: Annotated[
        float | None, typer.Option(help="Older than this; the audit's own limit if left out.")
    ] = None,
    ledger: Ledger = LEDGER,
    json: Json = False,
) -> None:
    """Mark the outcomes that should have come by now; their money stays held."""
    replies = _open(ledger, name).overdue(days=days)
    if json:
        print_json([reply.to_dict() for reply in replies])
    else:
        typer.echo(f"{len(replies):,} newly overdue")
        for reply in replies:
            typer.echo(f"  {reply.person}")


@app.command("write-off")
def write_off(name: Name, person: Person, ledger: Ledger = LEDGER, json: Json = False) -> None:
    """Give up an overdue outcome: the worst cost is posted, the outcome stays unknown."""
    _show_reply(_open(ledger, name).write_off(_needed(person)), json)


@app.command()
def correct(
    name: Name,
    person: Person,
    outcome: Annotated[int, typer.Argument(help="The right outcome.", show_default=False)],
    why: Annotated[str, typer.Option(help="Reason, kept in the ledger.", show_default=False)],
    ledger: Ledger = LEDGER,
    json: Json = False,
) -> None:
    """Replace an outcome that was wrong; the old one stays in the ledger."""
    _show_reply(_open(ledger, name).correct(_needed(person), outcome, why), json)


@app.command()
def close(
    name: Name,
    why: Annotated[str, typer.Option(help="Reason.")] = "nobody else is to come",
    ledger: Ledger = LEDGER,
    json: Json = False,
) -> None:
    """Say that nobody else will come, and give the verdict that the evidence supports."""
    live = _open(ledger, name)
    live.close(why)
    _show(live.status(), json)


@app.command()
def status(name: Name, ledger: Ledger = LEDGER, json: Json = False) -> None:
    """Show people, money, evidence and drift as of now."""
    _show(_open(ledger, name).status(), json)


@app.command("list")
def list_all(ledger: Ledger = LEDGER, json: Json = False) -> None:
    """Show every audit of the ledger."""
    from equipoise.ledger import list_audits

    rows = list_audits(ledger)
    if json:
        print_json([{"name": r.name, "events": r.seq, "time": r.time, "id": r.uid} for r in rows])
    for row in () if json else rows:
        typer.echo(f"{row.name}: {row.seq:,} events, last at {row.time}")


@app.command()
def report(
    name: Name,
    to: Annotated[
        list[Path] | None,
        typer.Option("--to", help="A file that ends in .html, .md or .json; give it again."),
    ] = None,
    ledger: Ledger = LEDGER,
    json: Json = False,
) -> None:
    """Write the report: HTML for people, Markdown, JSON for programs."""
    from equipoise.report import Report, write_report

    live = _open(ledger, name)
    with working("Replaying the audit …"):
        made = Report.of(live)
    if json:
        print_json(made.to_dict())
    for path in to or ([] if json else [Path(f"{name}.html")]):
        write_report(made, path)
        if not json:
            typer.echo(f"wrote {path}")


@app.command()
def export(
    name: Name,
    to: Annotated[
        Path | None, typer.Option("--to", help="The file; NAME.jsonl if left out.")
    ] = None,
    verifier: Annotated[
        bool, typer.Option(help="Put verify.py, which needs nothing but Python, beside it.")
    ] = False,
    ledger: Ledger = LEDGER,
    json: Json = False,
) -> None:
    """Write every event to a file that anybody can check; keep the hash that is shown."""
    path = to or Path(f"{name}.jsonl")
    checkpoint = _open(ledger, name).export(path)
    if verifier:
        from equipoise.ledger import verify as program

        path.with_name("verify.py").write_text(Path(program.__file__).read_text(), "utf-8")
    if json:
        print_json({"file": str(path), **checkpoint.to_dict()})
    else:
        typer.echo(f"wrote {path}: {checkpoint.seq:,} events")
        typer.echo(f"head {checkpoint.hash}")


@app.command()
def verify(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The audit.", show_default=False)
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Check an export instead of the ledger.")
    ] = None,
    head: Annotated[str | None, typer.Option(help="The export's last hash, as handed out.")] = None,
    checkpoint: Annotated[
        list[str] | None, typer.Option(metavar="SEQ:HASH", help="An earlier end of the chain.")
    ] = None,
    seed: Annotated[str | None, typer.Option(help="From the report, to check the lottery.")] = None,
    ledger: Ledger = LEDGER,
    json: Json = False,
) -> None:
    """Check chain, money and people, and repeat the statistics from the first event on."""
    pairs, repeated = [_checkpoint(text) for text in checkpoint or []], True
    with working("Replaying the audit …"):
        if file is not None:
            from equipoise.ledger.export import verify_export

            summary, repeated = verify_export(file, head=head, checkpoints=pairs, seed=seed)
        elif name is not None:
            summary = _open(ledger, name).verify(pairs)
        else:
            raise InvalidInput("'NAME' or '--file' is needed")
    if json:
        states = dict(summary.states)
        print_json({**vars(summary), "states": states, "statistics_repeated": repeated})
    else:
        typer.echo(str(summary))
        if not repeated:
            typer.echo("    statistics not repeated: they need features, which are not exported")


# -- helpers ---------------------------------------------------------------------------------------


def _open(ledger: str, name: str) -> LiveAudit:
    from equipoise.ledger import LiveAudit

    return LiveAudit.open(ledger, name)


def _do(
    ledger: str,
    name: str,
    person: str | None,
    one: Callable[[LiveAudit, str], Reply],
    file: Path | None,
    column: Sequence[str] | None,
    names: Sequence[str],
    make: Callable[[Any], Command],
    results: Path | None,
    json: bool,
) -> None:
    """Carry out one command, or a file of them."""
    if (person is None) == (file is None):
        raise InvalidInput("either 'PERSON' or '--file' is needed, not both")
    live = _open(ledger, name)
    if person is not None:
        _show_reply(one(live, person), json)
        return
    assert file is not None
    from equipoise.cli.batches import carry_out

    columns = {meaning: meaning for meaning in names} | dict(_pairs("--column", column))
    done = carry_out(live, file, columns, make, results=results)
    if json:
        print_json(done.to_dict())
    else:
        typer.echo(str(done))
    done.exit_if_refused()


def _show(value: Any, json: bool) -> None:
    if json:
        print_json(value.to_dict())
    else:
        typer.echo(str(value))


def _show_reply(reply: Reply, json: bool) -> None:
    if json:
        print_json(reply.to_dict())
        return
    again = ", as before" if reply.repeated else ""
    why = f" ({reply.why})" if reply.why else ""
    typer.echo(f"{reply.person}: {reply.state}, wanted: {reply.want.lower()}{why}{again}")


def _needed(person: str | None) -> str:
    if person is None:
        raise InvalidInput("'PERSON' is needed")
    return person


def _pairs(option: str, texts: Sequence[str] | None) -> list[tuple[str, str]]:
    pairs = []
    for text in texts or ():
        name, mark, value = text.rpartition("=") if option != "--option" else text.partition("=")
        if not mark or not name or not value:
            fail(f"{option!r} must look like NAME=VALUE; got {text!r}")
        pairs.append((name, value))
    return pairs


def _json_value(text: str) -> Any:
    try:
        return json_module.loads(text)
    except ValueError:
        return text


def _checkpoint(text: str) -> tuple[int, str]:
    number, _, digest = text.partition(":")
    if not number.isdigit() or not digest:
        raise InvalidInput(f"'--checkpoint' must look like 120:HASH; got {text!r}")
    return int(number), digest
