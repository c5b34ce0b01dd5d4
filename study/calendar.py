"""When audits end and what a budget buys, against what a plan says: random populations and pasts.

Each case is one of ``study forecast``, with people who arrive one by one and outcomes that come
later. An audit asks without a limit until it has its verdict. Counted are audits that end within
the plan's 80% range, audits that reach their verdict within budgets for which the plan gives
chances of 10, 50 and 90%, and those within a budget at the smallest margin for 80%.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from tests.support.tables import table

import equipoise as eq
from equipoise.planning.forecasts import Forecast, forecast
from equipoise.planning.time_and_money import chance_within, estimate_budget, estimate_times
from equipoise.planning.trial_runs import run_trial
from equipoise.protocol import Want
from study.forecast import Case, draw

PER_DAY = 20.0
DELAY = 10.0  # days until an outcome
MOST_COST = 150.0  # a case whose forecast is above is left out, so that the study ends
BROKEN_OFF = 1.5  # times the latest end, after which an audit is outside the range for certain


@dataclass
class Counts:
    """Hits, tries, and the sum of the chances that the plan gave."""

    hits: float = 0.0
    tries: int = 0
    promised: float = 0.0

    def add(self, hits: Sequence[bool], chance: float) -> None:
        self.hits += sum(hits)
        self.tries += len(hits)
        self.promised += chance * len(hits)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--first", type=int, default=1000, help="number of the first case")
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--runs", type=int, default=20, help="audits of each case")


def run(options: argparse.Namespace) -> Table:
    kinds = ("end within the 80% range", "within budget, 10%", "within budget, 50%",
             "within budget, 90%", "within budget, at the smallest margin for 80%")  # fmt: skip
    counts = {kind: Counts() for kind in kinds}
    ratios: list[float] = []
    # Interrupted, the study shows what it has.
    with suppress(KeyboardInterrupt), Progress(console=Console(stderr=True), transient=True) as bar:
        numbers = range(options.first, options.first + options.cases)
        for number in bar.track(numbers, description="cases"):
            case = draw(number)
            if case is None:
                continue
            (seen,) = forecast(case.past, case.question, case.costs, [case.scenario])
            if seen.median is None or seen.median > MOST_COST or seen.cost["0.9"] is None:
                continue
            ratio = measure_times(case, seen, options.runs, counts[kinds[0]])
            measure_budgets(case, seen, options.runs, counts)
            ratios.append(ratio)
    n_cases = len(ratios)
    out = table(
        f"{n_cases} cases: median of the ends over the plan's typical end, median of cases "
        f"{np.median(ratios):.2f}, 80% of cases {np.quantile(ratios, 0.1):.2f} to "
        f"{np.quantile(ratios, 0.9):.2f}",
        "what", "plan", "measured", "audits",
    )  # fmt: skip
    for kind, count in counts.items():
        promised = count.promised / max(count.tries, 1)
        measured = count.hits / max(count.tries, 1)
        out.add_row(kind, f"{promised:.1%}", f"{measured:.1%}", f"{count.tries:,}")
    return out


def measure_times(case: Case, seen: Forecast, runs: int, count: Counts) -> float:
    """Count ends within the range; return their median over the typical end, without the delay."""
    (time,) = estimate_times([seen], PER_DAY, DELAY)
    assert time.earliest_end is not None
    assert time.typical_end is not None
    assert time.latest_end is not None
    most_people = round(BROKEN_OFF * time.latest_end * PER_DAY)
    luck = [np.random.default_rng([3, seed]) for seed in range(runs)]
    ends = [end_of_audit(case, rng, most_people) for rng in luck]
    count.add([time.earliest_end <= end <= time.latest_end for end in ends], 0.8)
    return (float(np.median(ends)) - DELAY) / max(time.typical_end - DELAY, 1.0 / PER_DAY)


def end_of_audit(case: Case, rng: np.random.Generator, most_people: int) -> float:
    """Return the day of the verdict of one audit whose outcomes come late; infinite without one."""
    audit = eq.AdaptiveAudit(case.past, case.question, case.costs)
    groups = list(case.past.cells)
    totals = np.array([case.past.cells[group].total for group in groups])
    denied = np.array([case.past.cells[group].denied for group in groups]) / totals
    positions = rng.choice(len(groups), size=most_people, p=totals / totals.sum())
    is_denied = rng.random(most_people) < denied[positions]
    waiting: deque[tuple[float, object, int]] = deque()
    for number in range(most_people):
        day = number / PER_DAY
        while waiting and waiting[0][0] <= day:
            _, ticket, outcome = waiting.popleft()
            audit.tell(ticket, outcome=outcome)  # type: ignore[arg-type]
            if audit.finding is not None:
                has_verdict = audit.finding.verdict is not eq.Verdict.INCONCLUSIVE
                return day if has_verdict else np.inf
        if not is_denied[number]:
            continue
        group = groups[positions[number]]
        ticket = audit.ask(group, decision=0)
        if ticket.want is Want.LABEL:
            outcome = int(rng.random() < case.scenario.r[group])
            waiting.append((day + DELAY, ticket, outcome))
    return np.inf


def measure_budgets(case: Case, seen: Forecast, runs: int, counts: dict[str, Counts]) -> None:
    """Count verdicts within budgets, and within the typical cost at the smallest margin for 80%."""
    costs = _costs(case, case.question, runs)
    for share in ("0.1", "0.5", "0.9"):
        budget = seen.cost[share]
        assert budget is not None
        kind = f"within budget, {float(share):.0%}"
        counts[kind].add([cost <= budget for cost in costs], chance_within(seen, budget))
    budget = seen.cost["0.5"]

    def forecast_usual(question: eq.Question) -> Forecast:
        return forecast(case.past, question, case.costs, [case.scenario])[0]

    bought = estimate_budget([seen], seen, case.question, budget, forecast_usual)
    if budget is None or bought is None or bought.smallest_margin is None:
        return
    wider = replace(case.question, epsilon=bought.smallest_margin)
    promised = chance_within(forecast_usual(wider), budget)
    hits = [cost <= budget for cost in _costs(case, wider, runs)]
    counts["within budget, at the smallest margin for 80%"].add(hits, promised)


def _costs(case: Case, question: eq.Question, runs: int) -> list[float]:
    audit = eq.AdaptiveAudit(case.past, question, case.costs)
    if audit.finding is not None:  # the past decides: nothing is paid
        is_decided = audit.finding.verdict is not eq.Verdict.INCONCLUSIVE
        return [0.0 if is_decided else np.inf] * runs
    luck = [np.random.default_rng(seed) for seed in np.random.SeedSequence(1).spawn(runs)]
    return [run_trial(audit, case.scenario, rng).cost for rng in luck]
