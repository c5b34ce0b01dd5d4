"""Options that say where past decisions are and how to read them, the same for every command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from equipoise.cli.console import working
from equipoise.cli.options import DATA, Decision, DeniedOutcomes, Group, Outcome, Positive, Source
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.history import History

__all__ = ["Read", "past_decisions", "read_meaning"]

Read = Callable[..., "History"]
"""What a command gets in place of the options; it may add ``score=``."""

VALUES, PLACES = "Values in the past decisions", "Where and when"


def _option(*names: str, what: str, panel: str, metavar: str | None = None) -> Any:
    return typer.Option(
        *names, help=what, metavar=metavar, rich_help_panel=panel, show_default=False
    )


def past_decisions(
    source: Source,
    group: Group,
    decision: Decision,
    outcome: Outcome,
    positive: Positive = None,
    negative: Annotated[
        list[str] | None,
        _option("--negative", what="Value that means 0.", panel=DATA, metavar="VALUE"),
    ] = None,
    denied_outcomes: DeniedOutcomes = "error",
    missing_value: Annotated[
        list[str] | None,
        _option("--missing-value", what="Value that means none.", panel=VALUES, metavar="VALUE"),
    ] = None,
    missing_group: Annotated[
        str,
        _option(
            "--missing-group",
            what="What to call people without a group; 'refuse' refuses them.",
            panel=VALUES,
            metavar="NAME",
        ),
    ] = "refuse",
    min_group: Annotated[
        int, _option("--min-group", what="Count groups of fewer people together.", panel=VALUES)
    ] = 0,
    max_groups: Annotated[
        int, _option("--max-groups", what="Most values of a group column (50).", panel=VALUES)
    ] = 50,
    unknown: Annotated[
        Literal["refuse", "bounds", "like_known"],
        _option("--unknown", what="Approved whose outcome is not known yet.", panel=VALUES),
    ] = "refuse",
    undecided: Annotated[
        Literal["refuse", "leave_out"],
        _option("--undecided", what="Rows without a decision.", panel=VALUES),
    ] = "refuse",
    cohort: Annotated[
        str | None,
        _option(
            "--cohort",
            what="Column within which unknown outcomes are like known ones.",
            panel=VALUES,
            metavar="COLUMN",
        ),
    ] = None,
    random_accepts: Annotated[
        str | None,
        _option(
            "--random-accepts",
            what="Column that marks the denied whom a test programme accepted at random.",
            panel=VALUES,
            metavar="COLUMN",
        ),
    ] = None,
    random_accepts_against: Annotated[
        list[str] | None,
        _option(
            "--random-accepts-against",
            what="Column, such as a score or a date, to test the programme's chance against.",
            panel=VALUES,
            metavar="COLUMN",
        ),
    ] = None,
    id: Annotated[  # noqa: A002
        str | None,
        _option("--id", what="Column that tells people apart.", panel=VALUES, metavar="COLUMN"),
    ] = None,
    repeated: Annotated[
        Literal["refuse", "count_once"],
        _option("--repeated", what="People who are there more than once.", panel=VALUES),
    ] = "refuse",
    table: Annotated[
        str | None,
        _option("--table", what="Table of a database, sheet of an Excel file.", panel=PLACES),
    ] = None,
    query: Annotated[
        str | None, _option("--query", what="Query to a database.", panel=PLACES, metavar="SQL")
    ] = None,
    encoding: Annotated[
        str | None, _option("--encoding", what="Of CSV files, as in utf-16.", panel=PLACES)
    ] = None,
    date: Annotated[
        str | None,
        _option("--date", what="Column to cut by.", panel=PLACES, metavar="COLUMN"),
    ] = None,
    since: Annotated[
        str | None, _option("--since", what="From this date on.", panel=PLACES, metavar="DATE")
    ] = None,
    until: Annotated[
        str | None, _option("--until", what="Before this date.", panel=PLACES, metavar="DATE")
    ] = None,
) -> Read:
    """Return a function that reads past decisions as the options say."""

    def read(*, score: str | None = None) -> History:
        from equipoise.history import History

        with working("Reading past decisions …"):
            return History.read(
                list(source),
                group=list(group),
                decision=decision,
                outcome=outcome,
                positive=read_meaning("--positive", positive, decision, outcome),
                negative=read_meaning("--negative", negative, decision, outcome),
                missing_values=missing_value or (),
                missing_group=missing_group,
                min_group=min_group,
                max_groups=max_groups,
                denied_outcomes=denied_outcomes,
                unknown=unknown,
                undecided=undecided,
                cohort=cohort,
                random_accepts=random_accepts,
                random_accepts_against=random_accepts_against or (),
                id=id,
                repeated=repeated,
                score=score,
                table=table,
                query=query,
                encoding=encoding,
                date=date,
                since=since,
                until=until,
            )

    return read


def read_meaning(
    option: Literal["--positive", "--negative"],
    values: Sequence[str] | None,
    decision: str = "decision",
    outcome: str = "outcome",
) -> str | list[str] | dict[str, list[str]] | None:
    """Return what ``--positive`` says, as :meth:`equipoise.History.read` takes it.

    ``COLUMN=VALUE`` names a column or its role.
    """
    values = values or []
    by_role: dict[str, list[str]] = {}
    for text in values:
        role, mark, value = text.partition("=")
        if mark and role in ("decision", "outcome", decision, outcome):
            by_role.setdefault(role, []).append(value)
    said = sum(len(of_role) for of_role in by_role.values())
    if said and said == len(values):
        return by_role
    if said:
        raise InvalidInput(
            f"{option!r} must be values, or decision=VALUE and outcome=VALUE, not both; "
            f"got {', '.join(values)}"
        )
    return list(values) or None
