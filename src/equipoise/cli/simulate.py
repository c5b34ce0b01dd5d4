"""``equipoise simulate``: run audits many times where the truth is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.audits.catalogue import AUDITS
from equipoise.cli import options as shared
from equipoise.cli import past_options as reading
from equipoise.cli.console import Output, Part, Table, show, show_activity, show_progress
from equipoise.cli.option_values import parse_denied_rates, parse_tau, parse_whole_numbers
from equipoise.display import format_number, format_value
from equipoise.errors import BadData, InvalidInput
from equipoise.question import Costs, Question, Verdict

if TYPE_CHECKING:
    from equipoise.bounds import LowerBound
    from equipoise.simulation import Summary
    from equipoise.worlds import World

app = typer.Typer(add_completion=False)

WORLDS = ("fico", "adult")
RUNS_PANEL = "Runs"

DEFAULT_WORLD = ["fico"]
WorldSource = Annotated[
    list[str],
    typer.Option(
        "--world",
        "-w",
        help=f"{', '.join(WORLDS)}, or a file with every person's outcome (or its .toml file).",
        metavar="NAME|FILE",
        rich_help_panel="World",
    ),
]
AuditNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="AUDIT", help=f"{', '.join(AUDITS)}. Several are compared."),
]
Repeats = Annotated[
    int, typer.Option("--repeats", help="Independent runs.", rich_help_panel=RUNS_PANEL)
]
Seed = Annotated[
    int, typer.Option("--seed", help="Seed of the random numbers.", rich_help_panel=RUNS_PANEL)
]
HistorySize = Annotated[
    int | None,
    typer.Option(
        "--history-size",
        help="Historical rows, drawn anew in every run. Default: all of a file, or no limit.",
        rich_help_panel=RUNS_PANEL,
    ),
]
Tau = Annotated[
    Any,
    typer.Option(
        "--tau",
        help="Threshold of rs and baseline: a whole number, or exact for the smallest that is "
        "proven. Default: the paper's.",
        metavar="N|exact",
        parser=parse_tau,
        rich_help_panel=RUNS_PANEL,
    ),
]
ReuseLabels = Annotated[
    bool | None,
    typer.Option(
        "--reuse-labels",
        help="For rs and baseline: use each label in all phases.",
        rich_help_panel=RUNS_PANEL,
    ),
]
DELAY_FORM = "GOOD,BAD"
Delay = Annotated[
    str | None,
    typer.Option(
        "--delay",
        help="How many people arrive until a good and a bad outcome are known, for example 200,20.",
        metavar=DELAY_FORM,
        rich_help_panel=RUNS_PANEL,
    ),
]
Budget = Annotated[
    float | None,
    typer.Option("--budget", help="Never spend more than this.", rich_help_panel=RUNS_PANEL),
]
Processes = Annotated[
    int | None,
    typer.Option("--n-jobs", help="Processes, -1 for all.", rich_help_panel=RUNS_PANEL),
]


@app.command()
def simulate(
    world: WorldSource = DEFAULT_WORLD,
    group: reading.GroupColumns = None,
    decision: reading.DecisionColumn = None,
    outcome: reading.OutcomeColumn = None,
    positive: reading.PositiveValues = None,
    denied_rate: shared.DeniedRates = None,
    within: shared.StratumColumns = None,
    metric: shared.Metrics = shared.DEFAULT_METRICS,
    gamma: shared.Gamma = 0.05,
    epsilon: shared.Epsilon = 0.05,
    delta: shared.Delta = 0.05,
    compare: shared.CompareBy = "difference",
    against: shared.Against = None,
    direction: shared.Direction = "both",
    leave_out: shared.LeaveOut = None,
    feature_cost: shared.FeatureCost = 0.0,
    label_cost: shared.LabelCost = 1.0,
    audits: AuditNames = None,
    repeats: Repeats = 200,
    seed: Seed = 0,
    history_size: HistorySize = None,
    tau: Tau = None,
    reuse_labels: ReuseLabels = None,
    delay: Delay = None,
    budget: Budget = None,
    n_jobs: Processes = None,
    json: shared.Json = False,
) -> None:
    """Run audits many times on a population whose outcomes are all known.

    Example: equipoise simulate adaptive rs --world fico --metric equal_opportunity
    """
    columns = {
        "group": group,
        "decision": decision,
        "outcome": outcome,
        "within": within,
        "positive": positive,
    }
    simulated_world = find_world(world, columns, denied_rate)
    question = shared.QuestionOptions(
        metrics=metric,
        gamma=gamma,
        epsilon=epsilon,
        delta=delta,
        compare_by=compare,
        against=against,
        direction=direction,
        stratum_columns=within,
        leave_out=leave_out,
    ).single_question()
    costs = Costs(feature_cost, label_cost)
    if history_size is None and world[0] not in WORLDS:
        history_size = round(simulated_world.cells.total)  # as many people as the file has
    delays = None if delay is None else _parse_delay(delay)
    # Not every audit has these, so each gets the ones that it takes.
    audit_options = {"tau": tau, "reuse_labels": reuse_labels, "budget": budget}

    # Imported after the world was read: a mistake in it is shown at once.
    from equipoise.simulation import simulate as run_simulation

    summaries = []
    for name, options in _options_by_audit(audits or ["rs", "baseline"], audit_options).items():
        with show_progress(f"simulating {name}") as progress:
            runs = run_simulation(
                name,
                simulated_world,
                question,
                costs,
                repeats=repeats,
                seed=seed,
                history_size=history_size,
                delay=delays,
                n_jobs=n_jobs,
                progress=progress,
                **options,
            )
        summaries.append(runs.summary())
    show(_compare_runs(world, simulated_world, question, costs, summaries), json)


def _compare_runs(
    names: Sequence[str],
    world: World,
    question: Question,
    costs: Costs,
    summaries: Sequence[Summary],
) -> Output:
    """Return the truth of a world, the least cost, and what each audit did; ``names`` name it."""
    from equipoise.bounds import lower_bound

    with show_activity("Computing the least cost …"):
        least = lower_bound(world, question, costs)
    # All audits ran in one world, so any summary has its gap.
    gap = summaries[0].gap
    right_answers = " or ".join(sorted(question.truth(gap)))
    parts: list[Part] = [
        f"{question}",
        f"costs: {costs}\nworld: {', '.join(names)}",
        f"truth: the gap is {gap:.4f}, {right_answers} is right",
        f"C* = {format_value(least.cost)}: {_explain_lower_bound(least)}",
        runs_table(summaries, least.cost),
    ]
    return Output({"world": names, "runs": summaries, "lower_bound": least}, parts)


def find_world(sources: list[str], columns: dict[str, Any], denied_rate: list[str] | None) -> World:
    """Return a world by its name, or read it from files.

    Parameters
    ----------
    sources
        A name of :data:`WORLDS`, or files.
    columns
        Arguments of :meth:`equipoise.History.read` that say which columns the files have.
    denied_rate
        Values of ``--denied-rate``, if the files hold past decisions and the outcomes of denied
        people are assumed.
    """
    if len(sources) == 1 and sources[0] in WORLDS:
        from equipoise.worlds.data import adult_world, fico_lender

        return fico_lender().world if sources == ["fico"] else adult_world()
    has_columns = columns["group"] and columns["decision"] and columns["outcome"]
    if not has_columns and not sources[0].endswith(".toml"):
        raise InvalidInput(
            f"'--world' must be one of {', '.join(WORLDS)}, or a file together with --group, "
            "--decision and --outcome (or a .toml file of check --save, which says them); got "
            f"{', '.join(sources)}"
        )
    from equipoise.history import History
    from equipoise.worlds import CellWorld, read_world
    from equipoise.worlds.table import MissingOutcomes

    with show_activity("Making the world …"):
        if denied_rate:
            history = History.read(sources, **columns)
            return CellWorld.from_past(history, parse_denied_rates(denied_rate))
        try:
            return read_world(sources, **columns)
        except MissingOutcomes as error:
            raise BadData(
                f"column {error.column!r} lacks the outcome of {error.n_people:,} people; a world "
                "needs everybody's. Past decisions become a world if you state how many of each "
                "group's denied would have succeeded: --denied-rate GROUP=R for every group"
            ) from None


def _options_by_audit(
    audits: Sequence[str], options: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return for each audit those of the options that it has and that are not None.

    Each of these options must belong to at least one of the audits.
    """
    from equipoise.audits.catalogue import audit_class, check_options, options_of

    # An option that was not given must not override an audit's own default.
    given_options = {option: value for option, value in options.items() if value is not None}
    options_by_audit: dict[str, dict[str, Any]] = {}
    unused = dict(given_options)
    for audit in audits:
        known_options = options_of(audit_class(audit))
        options_by_audit[audit] = {}
        for option, value in given_options.items():
            if option in known_options:
                options_by_audit[audit][option] = value
                unused.pop(option, None)
    check_options(audit_class(audits[0]), unused)  # refuses them by name
    return options_by_audit


def _parse_delay(text: str) -> partial[int]:
    """Return a function that says after how many arrivals an outcome shows."""
    good, bad = parse_whole_numbers("--delay", text, DELAY_FORM)
    return partial(_delay_of, good, bad)


def _delay_of(good: int, bad: int, outcome: int, rng: object) -> int:
    """Return when an outcome shows; a function of the module, which processes can share."""
    return good if outcome else bad


def _explain_lower_bound(least: LowerBound) -> str:
    """Return what C* means for this world and question."""
    if least.cost == 0.0:
        return "past data alone decide"
    if least.reference:
        return "an asymptotic reference, since both answers are right"
    return "no audit costs less on average"


def runs_table(summaries: Sequence[Summary], least_cost: float = 0.0) -> Table:
    """Return a row per simulated audit, and how many times the least cost it spent."""
    rows = []
    for summary in summaries:
        always_decides = summary.verdicts[Verdict.INCONCLUSIVE.value] == 0.0
        # An audit that never asks costs nothing, exactly: 0 over almost nothing is 0, too.
        relative_error = summary.standard_error / max(summary.mean_cost, 1e-300)
        shares = [f"{verdict} {share:.1%}" for verdict, share in summary.verdicts.items() if share]
        # C* is the least cost of a verdict, so it says nothing about audits that may give none.
        ratio = None
        if least_cost > 0.0 and always_decides:
            ratio = format_number(summary.mean_cost / least_cost, 3)
        rows.append(
            {
                "audit": summary.audit,
                "verdicts": ", ".join(shares),
                "wrong": f"{summary.errors:,} of {summary.repeats:,}",
                "mean cost": f"{format_value(summary.mean_cost)} ± {relative_error:.1%}",
                "/ C*": ratio,
                "mean labels": summary.mean_labels,
            }
        )
    medians = ", ".join(format_value(summary.cost_quantiles["0.5"]) for summary in summaries)
    runs = f"{summaries[0].repeats:,} runs, median cost {medians}"
    return Table(rows, f"{runs}; ± is the standard error of the mean, as a share of it")
