"""How the adaptive audit's cost moves with the question."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise._json import JsonValue
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.display import Progress, silent
from equipoise.errors import require_n_jobs, require_whole
from equipoise.history.past import Past, require_past
from equipoise.planning.adaptive_forecast import by_counts, is_undecided, rehearsals, usual_case
from equipoise.planning.estimate import estimate
from equipoise.planning.guessing import MANY
from equipoise.planning.rehearsal import Rehearsal, rehearse
from equipoise.planning.scenarios import scenarios
from equipoise.question import Costs, Question, require_asked

__all__ = ["Variation", "what_if"]

NAMES = ("gamma", "epsilon", "delta")


@dataclass(frozen=True)
class Variation(JsonValue):
    """The question with one number changed, and what the adaptive audit would then cost.

    ``seen`` is None where past data decide, for free, or cannot decide at all.

    Examples
    --------
    >>> Variation("epsilon", 0.1, None).to_dict()
    {'name': 'epsilon', 'value': 0.1, 'seen': None}
    """

    name: str
    value: float
    seen: Rehearsal | None


def what_if(
    history: Past,
    question: Question,
    costs: Costs,
    *,
    audits: int | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Progress = silent,
) -> tuple[Variation, ...]:
    """Rehearse the adaptive audit with each of gamma, epsilon and delta halved, kept and doubled.

    In the usual case of the plan and with as many rehearsals, so that the question as it is costs
    what the plan says.

    Examples
    --------
    >>> [f"{v:g}" for v in _values("epsilon", Question(epsilon=0.04))]
    ['0.02', '0.04', '0.08']
    """
    require_past(history)
    require_asked(question, costs)
    require_n_jobs(n_jobs)
    require_whole("audits", audits)
    wanted = [(name, value) for name in NAMES for value in _values(name, question)]
    past = by_counts(history)
    case = usual_case(scenarios(history.cells, question))
    count = audits or rehearsals(len(history.cells))
    seen: dict[Question, Rehearsal | None] = {}
    found = []
    for done, (name, value) in enumerate(wanted):
        asked = Question.from_dict({**question.to_dict(), name: value})
        if asked not in seen:
            seen[asked] = None
            if len(history.cells) > MANY and audits is None:
                if is_undecided(past, asked):
                    (seen[asked],) = estimate(past, asked, costs, [case], n_jobs=n_jobs)
            elif (audit := AdaptiveAudit(past, asked, costs)).finding is None:
                (seen[asked],) = rehearse(audit, [case], audits=count, seed=seed, n_jobs=n_jobs)
        found.append(Variation(name, value, seen[asked]))
        progress((done + 1) / len(wanted))
    return tuple(found)


def _values(name: str, question: Question) -> tuple[float, ...]:
    here = float(getattr(question, name))
    values = (here / 2.0, here, 2.0 * here) if here > 0.0 else (here, question.epsilon)
    return tuple(value for value in values if _allowed(name, value, question))


def _allowed(name: str, value: float, question: Question) -> bool:
    if name == "delta":
        return value < 1.0
    other = question.epsilon if name == "gamma" else question.gamma
    return value + other < 1.0
