"""``equipoise simulate``: run audits many times where the truth is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.audits.catalogue import AUDITS
from equipoise.cli.console import bar, console, print_json, say, show_rows, working
from equipoise.cli.options import Json, Within, option, prices, question_asked, with_options
from equipoise.cli.past_options import Positive, read_meaning
from equipoise.cli.plan import DeniedRate, denied_rates
from equipoise.display import written
from equipoise.errors import InvalidInput
from equipoise.question import Costs, Question, Verdict

if TYPE_CHECKING:
    from rich.console import Console

    from equipoise.bounds import LowerBound
    from equipoise.simulation import Delay, Summary
    from equipoise.worlds import World

__all__ = ["app", "find_world", "show_runs"]

app = typer.Typer(add_completion=False)

WORLDS = ("fico", "adult")
WORLD, RUNS = "World", "Runs"


@app.command()
@with_options(question=question_asked, costs=prices)
def simulate(
    audits: Annotated[
        list[str] | None,
        typer.Argument(metavar="[AUDIT]...", help=f"{', '.join(AUDITS)}; several compare."),
    ] = None,
    world: Annotated[
        list[str],
        option(
            *("--world", "-w"),
            what=f"{', '.join(WORLDS)}, or a file with everybody's outcome (or the .toml of one).",
            panel=WORLD,
            metavar="NAME|FILE",
            default=True,
        ),
    ] = ["fico"],  # noqa: B006 - typer copies it
    group: Annotated[
        list[str] | None,
        option(*("--group", "-g"), what="Column of groups.", panel=WORLD, metavar="COLUMN"),
    ] = None,
    decision: Annotated[
        str | None,
        option(*("--decision", "-d"), what="Column of decisions.", panel=WORLD, metavar="COLUMN"),
    ] = None,
    outcome: Annotated[
        str | None,
        option(
            *("--outcome", "-o"),
            what="Column of outcomes, known for everybody.",
            panel=WORLD,
            metavar="COLUMN",
        ),
    ] = None,
    positive: Positive = None,
    denied_rate: DeniedRate = None,
    within: Within = None,
    *,
    question: Question,
    costs: Costs,
    repeats: Annotated[int, option(what="Independent runs.", panel=RUNS, default=True)] = 200,
    seed: Annotated[int, option(what="Where randomness starts.", panel=RUNS, default=True)] = 0,
    history_size: Annotated[
        int | None,
        option(
            what="Past people, drawn anew in every run; else all of a file, or no limit.",
            panel=RUNS,
        ),
    ] = None,
    tau: Annotated[
        int | None, option(what="Threshold of rs and baseline; else the paper's.", panel=RUNS)
    ] = None,
    reuse_labels: Annotated[
        bool | None,
        option("--reuse-labels", what="rs and baseline: one stream for all phases.", panel=RUNS),
    ] = None,
    delay: Annotated[
        str | None,
        option(
            what="Arrivals until a good and a bad outcome of a request show, as in 200,20.",
            panel=RUNS,
            metavar="GOOD,BAD",
        ),
    ] = None,
    budget: Annotated[float | None, option(what="Never spend more than this.", panel=RUNS)] = None,
    n_jobs: Annotated[int | None, option(what="Processes, -1 for all.", panel=RUNS)] = None,
    json: Json = False,
) -> None:
    """Run audits many times in a world whose every outcome is known.

    Example: equipoise simulate adaptive rs --world fico --metric equal_opportunity
    """
    with working("Making the world …"):
        place = find_world(world, group, decision, outcome, positive, denied_rate, within)
    from equipoise.bounds import lower_bound
    from equipoise.simulation import simulate as run_simulation

    if history_size is None and not (len(world) == 1 and world[0] in WORLDS):
        history_size = round(place.cells.total)  # the past as it is
    waits = _read_delay(delay)
    names = audits or ["rs", "baseline"]
    given = {"tau": tau, "reuse_labels": reuse_labels, "budget": budget}
    options = _options(names, given)
    summaries = []
    for name in names:
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
                **options[name],  # type: ignore[arg-type]
            )
        summaries.append(runs.summary())
    with working("Computing the least cost …"):
        least = lower_bound(place, question, costs)
    if json:
        print_json({"world": world, "runs": summaries, "lower_bound": asdict(least)})
    else:
        _show(console(), world, summaries, least)


def find_world(
    world: Sequence[str],
    group: Sequence[str] | None,
    decision: str | None,
    outcome: str | None,
    positive: Sequence[str] | None,
    denied_rate: Sequence[str] | None = None,
    within: Sequence[str] | None = None,
) -> World:
    """Return a world by its name, or read it from files: of past decisions with stated guesses."""
    if len(world) == 1 and world[0] in WORLDS:
        return _built_in(world[0])
    if not (group and decision and outcome) and not world[0].endswith(".toml"):
        raise InvalidInput(
            f"'--world' must be one of {', '.join(WORLDS)}, or a file together with --group, "
            "--decision and --outcome (or a .toml file of check --save, which says them); got "
            f"{', '.join(world)}"
        )
    from equipoise.history import History
    from equipoise.worlds import CellWorld, read_world

    said: dict[str, Any] = {
        "group": group or (),
        "within": within or (),
        "decision": decision or "",
        "outcome": outcome or "",
        "positive": read_meaning("--positive", positive, decision or "", outcome or ""),
    }
    if denied_rate:
        return CellWorld.from_past(History.read(list(world), **said), denied_rates(denied_rate))
    return read_world(list(world), **said)


def _built_in(name: str) -> World:
    from equipoise.worlds.data import adult_world, fico_lender

    return fico_lender().world if name == "fico" else adult_world()


def _options(audits: Sequence[str], given: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """Return for each audit those of the given options that it has; at least one must have each."""
    from equipoise.audits.catalogue import audit_class, check_options, options_of

    kinds = {name: audit_class(name) for name in audits}
    wanted = {name: value for name, value in given.items() if value is not None}
    for name, value in wanted.items():
        if not any(name in options_of(kind) for kind in kinds.values()):
            check_options(kinds[audits[0]], {name: value})
    return {
        name: {o: v for o, v in wanted.items() if o in options_of(kind)}
        for name, kind in kinds.items()
    }


def _read_delay(text: str | None) -> Delay | None:
    if text is None:
        return None
    good, comma, bad = text.partition(",")
    if not (comma and good.strip().isdigit() and bad.strip().isdigit()):
        raise InvalidInput(
            f"'--delay' must be two whole numbers of arrivals, as in 200,20; got {text!r}"
        )
    return _Wait(int(good), int(bad))


@dataclass(frozen=True)
class _Wait:
    """A delay that depends on the outcome; a value, so that processes can share it."""

    good: int
    bad: int

    def __call__(self, outcome: int, rng: object) -> int:
        return self.good if outcome else self.bad


def _show(to: Console, world: Sequence[str], summaries: list[Summary], least: LowerBound) -> None:
    first = summaries[0]
    truth = " or ".join(sorted(first.question.truth(first.gap)))
    say(to, f"{first.question}", "bold")
    say(to, f"costs: {first.costs}\nworld: {', '.join(world)}")
    say(to, f"truth: the gap is {first.gap:.4f}, {truth} is right")
    meaning = (
        "past data alone decide"
        if least.cost == 0.0
        else "an asymptotic reference, since both answers are right"
        if least.reference
        else "no audit costs less on average"
    )
    say(to, f"C* = {written(least.cost)}: {meaning}")
    show_runs(to, summaries, least.cost)


def show_runs(to: Console, summaries: Sequence[Summary], least: float = 0.0) -> None:
    """Print a row per simulated audit, and how many times the least cost it spent."""
    rows = []
    for one in summaries:
        decided = one.verdicts[Verdict.INCONCLUSIVE.value] == 0.0
        error = one.standard_error / max(one.mean_cost, 1e-300)
        rows.append(
            {
                "audit": one.audit,
                "verdicts": ", ".join(f"{v} {p:.1%}" for v, p in one.verdicts.items() if p),
                "wrong": f"{one.errors:,} of {one.repeats:,}",
                "mean cost": f"{written(one.mean_cost)} ± {error:.1%}",
                "/ C*": f"{one.mean_cost / least:,.3g}" if least > 0.0 and decided else None,
                "mean labels": one.mean_labels,
            }
        )
    runs = summaries[0].repeats
    show_rows(to, rows, f"{runs:,} runs; ± is the standard error of the mean, as a share of it")
