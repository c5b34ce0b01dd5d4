"""``equipoise audit ask, tell, …``: what happens to people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.cli.console import print_json, show
from equipoise.cli.options import Json, acting_audit, pairs, with_options
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.history.values import LiveValues
    from equipoise.ledger import LiveAudit
    from equipoise.ledger.commands import Command, Reply

__all__ = [
    *("Known", "Why", "ask", "correct", "executed", "overdue", "show_reply", "tell"),
    *("withdraw", "write_off"),
]

FILES = "Many people at once"
EXPLAINED = ("UNLINKED", "CONCLUDED", "DECIDED")  # states of an audit that say why

STATES = {
    "SCORE_ONLY": "nothing to do (looked at, and not drawn to be asked)",
    "RESERVED": "override this denial, and tell how it goes",
    "EXECUTED": "overridden, the outcome is awaited",
    "REVEALED": "the outcome is noted",
    "CORRECTED": "the outcome is corrected, the old one stays on record",
    "OVERDUE": "the outcome is overdue",
    "WITHDRAWN": "withdrawn, the outcome stays unknown",
    "WRITTEN_OFF": "written off, the outcome stays unknown",
}
WHY_NOTHING = {
    "approved": "approved: there is no denial to override",
    "budget": "the budget is spent or held",
    "concluded": "the audit is concluded",
    "decided": "the audit has its verdict",
    "in_flight": "as many overrides as allowed are out",
    "lottery": "not drawn in the lottery",
    "not_wanted": "another group is wanted now",
    "paused": "the audit is paused",
}

PersonOption = Annotated[
    str | None, typer.Argument(metavar="[PERSON]", help="Pseudonym.", show_default=False)
]
Known = Annotated[str, typer.Argument(metavar="PERSON", help="Pseudonym.", show_default=False)]
Why = Annotated[str, typer.Option(help="Reason, kept in the ledger.", show_default=False)]


def show_reply(reply: Reply, json: bool) -> None:
    """Print what came of one command."""
    if json:
        print_json(reply.to_dict())
        return
    again = ", as before" if reply.repeated else ""
    if reply.state == "PROPOSED":
        typer.echo(f"proposed as {reply.number}{again}; somebody else must approve it")
        return
    if not reply.person:
        why = f": {reply.why}" if reply.state in EXPLAINED else ""
        typer.echo(f"{reply.state.lower()}{again}{why}")
        return
    typer.echo(f"{reply.person}: {_said(reply)}{again}")


def _said(reply: Reply) -> str:
    """Say what to do now, or what is known."""
    if reply.state == "SKIPPED":
        return f"nothing to do ({WHY_NOTHING.get(reply.why, reply.why)})"
    if reply.state == "RESERVED" and reply.hold == 0:  # approved, or denied where nothing is paid
        return "tell how it goes; override the denial, if there was one"
    return STATES.get(reply.state, reply.state.lower())


@dataclass(frozen=True)
class PeopleFile:
    """One person, or a file of them, to whom the same thing happens."""

    file: Path | None
    column: list[str] | None
    results: Path | None
    json: bool

    def carry_out(
        self,
        live: LiveAudit,
        kind: Callable[..., Command],
        seen: Mapping[str, str] | None = None,
        **one: Any,
    ) -> None:
        """Carry out a command for one person, or for every row of the file; show what came of it.

        Parameters
        ----------
        seen
            What may be said besides: numbers, or with a file the columns that hold them.
        one
            What the command is made of, in its order: the file's columns, and for one person their
            values.
        """
        if (one["person"] is None) == (self.file is None):
            words = " ".join(name.upper() for name in one)
            raise InvalidInput(f"say whom it is about, {words} or --file FILE: one of the two")
        if self.file is not None:
            self._carry_out_file(live, kind, tuple(one), seen or {})
            return
        if lacking := [repr(name.upper()) for name, value in one.items() if value is None]:
            verb = "is" if len(lacking) == 1 else "are"
            raise InvalidInput(f"{' and '.join(lacking)} {verb} needed after 'PERSON'")
        values = live_values(live)
        more = {name: number(f"--{name}", value, values) for name, value in (seen or {}).items()}
        own = {name: _understood(values, name, value) for name, value in one.items()}
        show_reply(live.do(kind(*own.values(), **more)), self.json)

    def _carry_out_file(
        self,
        live: LiveAudit,
        kind: Callable[..., Command],
        names: tuple[str, ...],
        seen: Mapping[str, str],
    ) -> None:
        from equipoise.cli.people_files import CodedRows, carry_out
        from equipoise.cli.read_rows import header_of

        assert self.file is not None
        given = dict(pairs("--column", self.column))
        values = live_values(live)
        coded = CodedRows(values, names, given, header_of(self.file))

        def command(row: Mapping[str, Any]) -> Command | None:
            if "outcome" in names and coded.lacks_outcome(row):
                return None
            more = {name: number(seen[name], row[name], values) for name in seen}
            return kind(*(coded.value(name, row) for name in names), **more)

        columns, asks = {**coded.columns, **seen}, "decision" in names
        done = carry_out(live, self.file, columns, command, results=self.results, asks=asks)
        show(done, self.json)
        done.exit_if_refused()


def live_values(live: LiveAudit) -> LiveValues:
    """Return how an audit reads what is said of people."""
    from equipoise.history.values import Coding, LiveValues

    coding = live.settings.coding
    return LiveValues(live.settings.groups, Coding.from_dict(coding) if coding else None)


def _understood(values: LiveValues, name: str, value: object) -> Any:
    if name == "person":
        return value
    return values.group(value) if name == "group" else values.bit(name, value)


def number(what: str, value: object, values: LiveValues) -> float | int | None:
    """Return a number that was written down, None where nothing was; whole ones stay whole."""
    text = "" if value is None else str(value).strip()
    try:
        found = float(text)
    except ValueError:
        if values.is_missing(text):
            return None
        raise InvalidInput(f"{what!r} must be a number; got {text!r}") from None
    if isnan(found):
        return None
    return int(found) if found.is_integer() and abs(found) < 2**53 else found


def one_or_many(
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "-f",
            help="CSV, Parquet or JSON lines; repeating a file is safe.",
            rich_help_panel=FILES,
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT=COLUMN",
            help="Name of a column in the file, as in person=applicant_id.",
            rich_help_panel=FILES,
        ),
    ] = None,
    results: Annotated[
        Path | None, typer.Option(help="Write a CSV with a row per row.", rich_help_panel=FILES)
    ] = None,
    json: Json = False,
) -> PeopleFile:
    """Return whom a command is about."""
    return PeopleFile(file, column, results, json)


@with_options(live=acting_audit, people=one_or_many)
def ask(
    live: LiveAudit,
    people: PeopleFile,
    person: PersonOption = None,
    group: Annotated[str | None, typer.Argument(help="Group.", show_default=False)] = None,
    decision: Annotated[
        str | None,
        typer.Argument(
            help="1 for approved, 0 for denied, or the past's own words.", show_default=False
        ),
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|COLUMN",
            help="What a model says, for an audit made with --assist; with --file its column.",
        ),
    ] = None,
    price: Annotated[
        str | None,
        typer.Option(
            metavar="AMOUNT|COLUMN",
            help="What this label costs if it is 0, in minor units; with --file its column.",
        ),
    ] = None,
    score_version: Annotated[
        str, typer.Option(metavar="NAME", help="Which model the scores are of, for the record.")
    ] = "",
) -> None:
    """Say what is wanted of somebody who arrived, or of everybody in a file."""
    from functools import partial

    from equipoise.ledger.commands import Ask

    given = {"score": score, "price": price}
    seen = {name: value for name, value in given.items() if value is not None}
    scored = partial(Ask, version=score_version)
    people.carry_out(live, scored, seen, person=person, group=group, decision=decision)


@with_options(live=acting_audit, people=one_or_many)
def tell(
    live: LiveAudit,
    people: PeopleFile,
    person: PersonOption = None,
    outcome: Annotated[
        str | None,
        typer.Argument(help="1 (good) or 0 (bad), or the past's own words.", show_default=False),
    ] = None,
) -> None:
    """Bring an outcome, or all outcomes in a file, in any order and as often as you like."""
    from equipoise.ledger.commands import Tell

    people.carry_out(live, Tell, person=person, outcome=outcome)


@with_options(live=acting_audit, people=one_or_many)
def executed(live: LiveAudit, people: PeopleFile, person: PersonOption = None) -> None:
    """Say that an override was carried out."""
    from equipoise.ledger.commands import Execute

    people.carry_out(live, Execute, person=person)


@with_options(live=acting_audit, people=one_or_many)
def withdraw(live: LiveAudit, people: PeopleFile, person: PersonOption = None) -> None:
    """Say that a person refused: the money is free again, the outcome stays unknown."""
    from equipoise.ledger.commands import Withdraw

    people.carry_out(live, Withdraw, person=person)


@with_options(live=acting_audit)
def overdue(
    live: LiveAudit,
    days: Annotated[
        float | None, typer.Option(help="Older than this; the audit's own limit if left out.")
    ] = None,
    json: Json = False,
) -> None:
    """Mark the outcomes that should have come by now; their money stays held."""
    replies = live.overdue(days=days)
    if json:
        print_json(replies)
    else:
        late = [f"  {reply.person}" for reply in replies]
        typer.echo("\n".join([f"{len(replies):,} newly overdue", *late]))


@with_options(live=acting_audit)
def write_off(live: LiveAudit, person: Known, json: Json = False) -> None:
    """Give up an overdue outcome: the worst cost is posted, the outcome stays unknown."""
    show_reply(live.write_off(person), json)


@with_options(live=acting_audit)
def correct(
    live: LiveAudit,
    person: Known,
    outcome: Annotated[str, typer.Argument(help="The right outcome.", show_default=False)],
    why: Why,
    json: Json = False,
) -> None:
    """Replace an outcome that was wrong; the old one stays in the ledger."""
    right = live_values(live).bit("outcome", outcome)
    show_reply(live.correct(person, right, why), json)
