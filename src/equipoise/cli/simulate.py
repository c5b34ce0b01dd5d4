"""``equipoise simulate``: run audits many times where the truth is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from equipoise.audits.catalogue import AUDITS
from equipoise.cli.console import Answer, Part, Table, bar, working
from equipoise.cli.options import WITHIN, command, numbers, option, prices, question_asked
from equipoise.cli.past_options import DECISION, GROUP, OUTCOME, POSITIVE, Text, Texts
from equipoise.cli.plan import DENIED_RATE, denied_rates
from equipoise.display import format_value
from equipoise.errors import InvalidInput
from equipoise.question import Costs, Question, Verdict

if TYPE_CHECKING:
    from equipoise.simulation import Summary
    from equipoise.worlds import World

app = typer.Typer(add_completion=False)

WORLDS = ("fico", "adult")
RUNS = "Runs"
WHICH = typer.Argument(None, metavar="AUDIT", help=f"{', '.join(AUDITS)}; several compare.")
WORLD = option(
    ["fico"],
    f"{', '.join(WORLDS)}, or a file with everybody's outcome (or the .toml of one).",
    "World",
    "NAME|FILE",
    flags="--world -w",
)


def find_world(
    world: list[str] = WORLD,
    group: Texts = GROUP,
    decision: Text = DECISION,
    outcome: Text = OUTCOME,
    positive: Texts = POSITIVE,
    denied_rate: list[str] | None = DENIED_RATE,
    within: list[str] | None = WITHIN,
) -> World:
    """Return a world by its name, or read it from files: of past decisions with stated guesses."""
    if len(world) == 1 and world[0] in WORLDS:
        from equipoise.worlds.data import adult_world, fico_lender

        return fico_lender().world if world == ["fico"] else adult_world()
    if not (group and decision and outcome) and not world[0].endswith(".toml"):
        raise InvalidInput(
            f"'--world' must be one of {', '.join(WORLDS)}, or a file together with --group, "
            "--decision and --outcome (or a .toml file of check --save, which says them); got "
            f"{', '.join(world)}"
        )
    from equipoise.history import History
    from equipoise.worlds import CellWorld, read_world

    said: dict[str, Any] = {"group": group, "decision": decision, "outcome": outcome}
    said |= {"within": within, "positive": positive}
    with working("Making the world …"):
        if denied_rate:
            return CellWorld.from_past(History.read(world, **said), denied_rates(denied_rate))
        return read_world(world, **said)


@app.command()
@command(place=find_world, question=question_asked, costs=prices)
def simulate(
    place: World,
    question: Question,
    costs: Costs,
    audits: list[str] | None = WHICH,
    world: list[str] = WORLD,
    repeats: int = option(200, "Independent runs.", RUNS),
    seed: int = option(0, "Where randomness starts.", RUNS),
    history_size: int | None = option(
        None, "Past people, drawn anew in every run; else all of a file, or no limit.", RUNS
    ),
    tau: int | None = option(None, "Threshold of rs and baseline; else the paper's.", RUNS),
    reuse_labels: bool | None = option(
        None, "rs and baseline: one stream for all phases.", RUNS, flags="--reuse-labels"
    ),
    delay: str | None = option(
        None,
        "Arrivals until a good and a bad outcome of a request show, as in 200,20.",
        RUNS,
        "GOOD,BAD",
    ),
    budget: float | None = option(None, "Never spend more than this.", RUNS),
    n_jobs: int | None = option(None, "Processes, -1 for all.", RUNS),
) -> Answer:
    """Run audits many times in a world whose every outcome is known.

    Example: equipoise simulate adaptive rs --world fico --metric equal_opportunity
    """
    from equipoise.bounds import lower_bound
    from equipoise.simulation import simulate as run_simulation

    if history_size is None and world[0] not in WORLDS:
        history_size = round(place.cells.total)  # the past as it is
    waits = None if delay is None else partial(_wait, *numbers("--delay", delay, "GOOD,BAD"))
    given = {"tau": tau, "reuse_labels": reuse_labels, "budget": budget}
    summaries = []
    for name, options in _options(audits or ["rs", "baseline"], given).items():
        with bar(f"simulating {name}") as progress:
            runs = run_simulation(
                name,
                place,
                question,
                costs,
                repeats=repeats,
                seed=seed,
                history_size=history_size,
                delay=waits,
                n_jobs=n_jobs,
                progress=progress,
                **options,
            )
        summaries.append(runs.summary())
    with working("Computing the least cost …"):
        least = lower_bound(place, question, costs)
    data = {"world": world, "runs": summaries, "lower_bound": least}
    gap = summaries[0].gap
    truth = " or ".join(sorted(question.truth(gap)))
    meaning = "no audit costs less on average"
    if least.cost == 0.0:
        meaning = "past data alone decide"
    elif least.reference:
        meaning = "an asymptotic reference, since both answers are right"
    words: list[Part] = [
        f"{question}",
        f"costs: {costs}\nworld: {', '.join(world)}",
        f"truth: the gap is {gap:.4f}, {truth} is right",
        f"C* = {format_value(least.cost)}: {meaning}",
        runs_told(summaries, least.cost),
    ]
    return Answer(data, words)


def _options(audits: Sequence[str], given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return for each audit those of the given options that it has; at least one must have each."""
    from equipoise.audits.catalogue import audit_class, check_options, options_of

    known = {name: options_of(audit_class(name)) for name in audits}
    wanted = {name: value for name, value in given.items() if value is not None}
    anywhere = set().union(*known.values())
    nowhere = {name: value for name, value in wanted.items() if name not in anywhere}
    check_options(audit_class(audits[0]), nowhere)
    return {name: {o: v for o, v in wanted.items() if o in own} for name, own in known.items()}


def _wait(good: int, bad: int, outcome: int, rng: object) -> int:
    """Return when an outcome shows; a function of the module, which processes can share."""
    return good if outcome else bad


def runs_told(summaries: Sequence[Summary], least: float = 0.0) -> Table:
    """Return a row per simulated audit, and how many times the least cost it spent."""
    rows = []
    for one in summaries:
        decided = one.verdicts[Verdict.INCONCLUSIVE.value] == 0.0
        error = one.standard_error / max(one.mean_cost, 1e-300)
        rows.append(
            {
                "audit": one.audit,
                "verdicts": ", ".join(f"{v} {p:.1%}" for v, p in one.verdicts.items() if p),
                "wrong": f"{one.errors:,} of {one.repeats:,}",
                "mean cost": f"{format_value(one.mean_cost)} ± {error:.1%}",
                "/ C*": f"{one.mean_cost / least:,.3g}" if least > 0.0 and decided else None,
                "mean labels": one.mean_labels,
            }
        )
    medians = ", ".join(format_value(one.cost_quantiles["0.5"]) for one in summaries)
    runs = f"{summaries[0].repeats:,} runs, median cost {medians}"
    return Table(rows, f"{runs}; ± is the standard error of the mean, as a share of it")
