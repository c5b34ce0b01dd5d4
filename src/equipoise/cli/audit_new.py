"""``equipoise audit new``: begin an audit on historical data."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.audits.catalogue import AUDITS
from equipoise.cli import options as shared
from equipoise.cli import past_options as reading
from equipoise.cli.audit_changes import LIMITS_PANEL, GroupLimits
from equipoise.cli.console import Output, show, wrap_lines
from equipoise.cli.option_values import parse_audit_options, parse_cents, parse_group_counts
from equipoise.errors import InvalidInput
from equipoise.question import Costs, Question, Verdict

if TYPE_CHECKING:
    from equipoise.history import History

# Exp-Audit needs features, which a ledger does not keep.
LIVE_AUDITS = [name for name in AUDITS if name != "exp"]
MONEY_PANEL = "Money, in whole minor units"


def _amount(flag: str, *, help: str) -> Any:  # noqa: A002
    """Return an option that takes an amount of money."""
    return typer.Option(
        flag, help=help, metavar="<int>", rich_help_panel=MONEY_PANEL, parser=parse_cents
    )


AuditKind = Annotated[str, typer.Option("--audit", help=f"{', '.join(LIVE_AUDITS)}.")]
FeatureCents = Annotated[int, _amount("--feature-cost", help="Price of each request.")]
LabelCents = Annotated[int, _amount("--label-cost", help="Price of an override that ends badly.")]
Budget = Annotated[int | None, _amount("--budget", help="Never spend more than this.")]
Currency = Annotated[
    str,
    typer.Option(
        "--currency",
        help="Currency, for example EUR.",
        rich_help_panel=MONEY_PANEL,
        show_default=False,
    ),
]
Decimals = Annotated[
    int,
    typer.Option(
        "--decimals",
        help="Decimals of the currency: 2 if amounts are in cents.",
        rich_help_panel=MONEY_PANEL,
    ),
]
MaxInFlight = Annotated[
    int | None,
    typer.Option(
        "--max-in-flight",
        help="Largest number of overrides whose outcome is not known yet.",
        rich_help_panel=LIMITS_PANEL,
    ),
]
Lottery = Annotated[
    float,
    typer.Option(
        "--lottery",
        help="Probability that a person is considered (a lottery).",
        rich_help_panel=LIMITS_PANEL,
    ),
]
OverdueAfter = Annotated[
    float | None,
    typer.Option(
        "--overdue-after",
        help="Days until an outcome is overdue.",
        rich_help_panel=LIMITS_PANEL,
    ),
]
DeniedOnly = Annotated[
    bool,
    typer.Option(
        "--denied-only/--no-denied-only",
        help="Approved people will not be reported: no drift test.",
    ),
]
Approvals = Annotated[
    list[str] | None,
    typer.Option(
        "--approval",
        help="A second person must approve it: budget, concluded, corrected, erased, limits, "
        "random_accepts, resumed, upgraded. May be repeated.",
        metavar="KIND",
    ),
]
AuditOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        help="Option of the audit, as in --audit rs --option tau=500.",
        metavar="NAME=JSON",
    ),
]
UseScores = Annotated[
    bool,
    typer.Option(
        "--assist/--no-assist",
        help="Look at scores before asking: 'ask' takes --score and --price.",
    ),
]
MaxPrice = Annotated[
    int | None,
    _amount("--max-price", help="With --assist: the most that one label may cost."),
]
Confirm = Annotated[
    bool,
    typer.Option(
        "--yes",
        help="Begin even if the audit would probably not reach a verdict.",
    ),
]
PeoplePerLabel = Annotated[
    float | None,
    typer.Option(
        "--people-per-label",
        help="With --assist: people whose score is read per label, at most [8].",
    ),
]


def new(
    *,
    name: shared.AuditName,
    context: typer.Context,
    source: reading.Source,
    group: reading.GroupColumns = None,
    within: shared.StratumColumns = None,
    decision: reading.DecisionColumn = None,
    outcome: reading.OutcomeColumn = None,
    positive: reading.PositiveValues = None,
    negative: reading.NegativeValues = None,
    denied_outcomes: reading.DeniedOutcomes = "error",
    missing_values: reading.MissingValues = None,
    missing_group: reading.MissingGroup = "refuse",
    merge_groups: reading.MergeGroups = None,
    max_groups: reading.MaxGroups = 50,
    unknown: reading.UnknownOutcomes = "refuse",
    undecided: reading.Undecided = "refuse",
    cohort: reading.CohortColumn = None,
    random_accepts: reading.RandomAcceptsColumn = None,
    random_accepts_against: reading.RandomAcceptsAgainst = None,
    decider: reading.DeciderColumn = None,
    min_cases: reading.MinCases = 0,
    id_column: reading.IdColumn = None,
    repeated: reading.RepeatedPeople = "refuse",
    table: reading.TableName = None,
    query: reading.Query = None,
    encoding: reading.Encoding = None,
    outcomes: reading.Outcomes = None,
    on: reading.JoinOn = None,
    latest: reading.LatestColumn = None,
    preset: reading.Preset = None,
    date: reading.DateColumn = None,
    since: reading.Since = None,
    until: reading.Until = None,
    save: reading.Save = None,
    metric: shared.Metrics = shared.DEFAULT_METRICS,
    gamma: shared.Gamma = 0.05,
    epsilon: shared.Epsilon = 0.05,
    delta: shared.Delta = 0.05,
    compare: shared.CompareBy = "difference",
    against: shared.Against = None,
    direction: shared.Direction = "both",
    leave_out: shared.LeaveOut = None,
    audit: AuditKind = "adaptive",
    feature_cost: FeatureCents = 0,
    label_cost: LabelCents = 1,
    budget: Budget = None,
    currency: Currency = "",
    decimals: Decimals = 0,
    max_in_flight: MaxInFlight = None,
    max_in_flight_of: GroupLimits = None,
    lottery: Lottery = 1.0,
    overdue_after: OverdueAfter = None,
    denied_only: DeniedOnly = False,
    approval: Approvals = None,
    option: AuditOptions = None,
    assist: UseScores = False,
    max_price: MaxPrice = None,
    people_per_label: PeoplePerLabel = None,
    yes: Confirm = False,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    actor: shared.Actor = None,
    json: shared.Json = False,
) -> None:
    """Begin an audit on historical data.

    Example: equipoise audit new loans past.csv -g race -d approved -o repaid --metric
    equal_opportunity --budget 500000
    """
    from equipoise.audits.catalogue import audit_class
    from equipoise.ledger import LiveAudit

    past = reading.PastDecisions(
        context,
        source,
        {
            "group": group,
            "within": within,
            "decision": decision,
            "outcome": outcome,
            "positive": positive,
            "negative": negative,
            "denied_outcomes": denied_outcomes,
            "missing_values": missing_values,
            "missing_group": missing_group,
            "merge_groups": merge_groups,
            "max_groups": max_groups,
            "unknown": unknown,
            "undecided": undecided,
            "cohort": cohort,
            "random_accepts": random_accepts,
            "random_accepts_against": random_accepts_against,
            "decider": decider,
            "min_cases": min_cases,
            "id": id_column,
            "repeated": repeated,
            "table": table,
            "query": query,
            "encoding": encoding,
            "outcomes": outcomes,
            "on": on,
            "latest": latest,
            "preset": preset,
            "date": date,
            "since": since,
            "until": until,
        },
        save,
    )
    question_options = past.complete_question(
        shared.QuestionOptions(
            metrics=metric,
            gamma=gamma,
            epsilon=epsilon,
            delta=delta,
            compare_by=compare,
            against=against,
            direction=direction,
            stratum_columns=within,
            leave_out=leave_out,
        )
    )
    question = question_options.single_question()
    # An audit of an unknown name is refused later, with the names that there are.
    if denied_only and audit in AUDITS and audit_class(audit).wants_approved:
        raise InvalidInput(
            f"the audit {audit!r} counts approved people as well: leave out --denied-only, or "
            "choose the adaptive audit"
        )
    unit = 10**decimals
    # Options have minor units here and a kept file has whole ones, so prices go back and forth.
    prices = past.complete_costs(feature_cost, label_cost, unit)
    history = past.read(question_options, (prices[0] / unit, prices[1] / unit))
    options = parse_audit_options(option)
    live = LiveAudit.create(
        ledger,
        name,
        history,
        question,
        Costs(round(prices[0]), round(prices[1])),
        audit=audit,
        budget=budget,
        max_in_flight=max_in_flight,
        max_in_flight_groups=parse_group_counts("--max-in-flight-of", max_in_flight_of),
        lottery=lottery,
        overdue_after=overdue_after,
        stream="denied" if denied_only else "everybody",
        currency=currency,
        decimals=decimals,
        approvals=approval or (),
        options=_add_score_options(options, assist, max_price, people_per_label),
        confirm=yes,
        actor=actor,
    )
    note = _note_if_past_decides(history, question) if live.finding is None else ""
    text = wrap_lines(f"{live.status()}{note}")
    if live.finding is None:
        text += f"\nNext: equipoise audit ask {shlex.quote(name)} PERSON GROUP DECISION"
    else:
        text += f"\nNext: equipoise audit report {shlex.quote(name)}"
    show(Output(live.status(), text), json)


def _note_if_past_decides(history: History, question: Question) -> str:
    """Return a note if a free check, at the whole error probability, has a verdict.

    An audit keeps most of its error probability for labels. To take the answer of whichever of the
    two comes first would err with up to twice the probability.
    """
    from equipoise.free_check import check

    verdict = check(history, question).verdict
    if verdict is Verdict.INCONCLUSIVE:
        return ""
    return (
        f"\nnote: equipoise check says {verdict} of these past decisions, for free. This audit "
        "keeps its error probability for labels to come and goes on. Choose one of the two "
        "now: to take whichever answers first may err twice as often"
    )


def _add_score_options(
    options: dict[str, Any], use_scores: bool, max_price: int | None, people_per_label: float | None
) -> dict[str, Any]:
    """Return the options of an audit with those of ``--assist``, which must not be given twice."""
    from equipoise.audits.scores import Assist

    score_options: dict[str, Any] = {}
    if max_price is not None:
        score_options["max_price"] = max_price
    if people_per_label is not None:
        score_options["people_per_label"] = people_per_label
    if not use_scores:
        if score_options:
            raise InvalidInput(
                "'--max-price' and '--people-per-label' are for audits that look before they ask: "
                "add --assist"
            )
        return options
    if "assist" in options:
        raise InvalidInput("'--option assist=...' says all about it: leave out --assist")
    return options | {"assist": Assist(**score_options)}
