"""Exp-Audit drawn at once: stopping times and MAP counts from their exact distributions.

What needs no people is drawn (the coarse counts, and how often the MAP oracle says 1 among R
people); what needs features gets them (likelihood weights, self-checks). How many of the R people
were denied is drawn apart from what the oracle said of them: the verdict and the cost each have
their own exact distribution.
"""

from __future__ import annotations

import numpy as np

from equipoise.audits.exp import ExpAudit
from equipoise.errors import BadData
from equipoise.mixture.quadratic import map_share
from equipoise.mixture.tally import FeatureTally
from equipoise.mixture.weights import SUBSAMPLE
from equipoise.simulation.race import endless_counts
from equipoise.simulation.result import Draws
from equipoise.simulation.runner import run_repeats
from equipoise.simulation.setting import Setting, audit_class, fast_draw
from equipoise.worlds import CellWorld
from equipoise.worlds.mixture import GroupMixture, MixtureWorld

__all__ = ["draw"]

_CHUNK = 1_000_000


def draw(setting: Setting) -> Draws | None:
    """Draw every repeat of Exp-Audit in a mixture world; None for other settings."""
    world = setting.world
    late = setting.delay is not None or setting.people is not None
    if late or not isinstance(world, MixtureWorld) or "budget" in setting.options:
        return None
    runs = [
        _run(setting, world, np.random.default_rng(seed))
        for seed in np.random.SeedSequence(setting.seed).spawn(setting.repeats)
    ]
    return _collect(setting, world, runs)


def _run(setting: Setting, world: MixtureWorld, rng: np.random.Generator) -> ExpAudit | None:
    try:
        past = world.past(setting.history_size, rng)
    except BadData:  # a past without one of the groups
        return None
    audit = ExpAudit(setting.question, setting.costs, past, **setting.options)  # type: ignore[arg-type]
    if audit.finding is None and audit.stage == "coarse":
        audit.take_coarse({g: _coarse(audit, world, g, rng) for g in world.groups})
    if audit.finding is None and audit.stage == "features":
        audit.take_features({g: _features(audit, world, g, rng) for g in world.groups})
    return audit


def _coarse(
    audit: ExpAudit, world: MixtureWorld, group: str, rng: np.random.Generator
) -> tuple[int, int]:
    mixture = world.mixtures[group]
    shares = np.array([1.0 - mixture.q, mixture.q])
    denied = [1.0 - law.acceptance for law in mixture.laws]
    lengths = []
    for outcome in (0, 1):
        counts = endless_counts(rng, audit.coarse_tau, [outcome], shares, 1)[0, 0]
        lengths.append(int(counts.sum()))
        asked = [int(rng.binomial(counts[y], denied[y])) for y in (0, 1)]
        audit.book("coarse", group, labels=sum(asked), failures=asked[0], features=0)
    return lengths[0], lengths[1]


def _features(
    audit: ExpAudit, world: MixtureWorld, group: str, rng: np.random.Generator
) -> FeatureTally:
    mixture, branch, tally = world.mixtures[group], audit.branches[group], audit.tally(group)
    laws = mixture.laws
    shares = [map_share(law, tally.fits, tally.odds) for law in laws]
    left = branch.features
    some = min(left, SUBSAMPLE)  # these are kept whole, so they come first and complete
    tally.add_many(_people(mixture, some, rng))
    if branch.way == "map" and shares[0] is not None and shares[1] is not None:
        share = mixture.q * shares[1] + (1.0 - mixture.q) * shares[0]
        tally.add_counts(left - some, int(rng.binomial(left - some, share)))
    else:
        for start in range(some, left, _CHUNK):
            tally.add_many(_people(mixture, min(left - start, _CHUNK), rng))
    _, _, s = world.cells[group].shares
    denied = int(rng.binomial(branch.features, s))
    audit.book("features", group, labels=0, failures=0, features=denied)
    return tally


def _people(mixture: GroupMixture, size: int, rng: np.random.Generator) -> np.ndarray[
    tuple[int, int], np.dtype[np.float64]
]:  # fmt: skip
    ones = int(rng.binomial(size, mixture.q))
    zero, one = mixture.laws
    return np.concatenate(
        [
            one.family.sample(one.theta, ones, rng),
            zero.family.sample(zero.theta, size - ones, rng),
        ]
    )


def _collect(setting: Setting, world: MixtureWorld, runs: list[ExpAudit | None]) -> Draws:
    n = len(runs)
    draws = Draws(
        verdict=np.full(n, "INCONCLUSIVE", dtype="<U12"),
        cost=np.zeros(n),
        labels=np.zeros(n, np.int64),
        features=np.zeros(n, np.int64),
        estimate=np.full(n, np.nan),
        lower=np.zeros(n),
        upper=np.ones(n),
    )
    open_ended = []
    for i, audit in enumerate(runs):
        if audit is None:
            continue
        draws.cost[i], draws.labels[i], draws.features[i] = (
            audit.cost,
            audit.labels,
            audit.features,
        )
        finding = audit.finding
        if finding is None:
            open_ended.append(i)
            continue
        draws.verdict[i] = finding.verdict.value
        draws.estimate[i] = np.nan if finding.estimate is None else finding.estimate
        draws.lower[i], draws.upper[i] = finding.lower, finding.upper
    if open_ended:
        _run_fallbacks(setting, world, runs, open_ended, draws)
    return draws


def _run_fallbacks(
    setting: Setting,
    world: MixtureWorld,
    runs: list[ExpAudit | None],
    rows: list[int],
    draws: Draws,
) -> None:
    """Let the fall-back audit finish the runs that went over to labels."""
    first = runs[rows[0]]
    assert first is not None
    options = {"tau": setting.options["tau"]} if setting.options.get("tau") else {}
    kind = str(setting.options.get("fallback", "rs"))
    inner = Setting(
        audit_class(kind),
        CellWorld(world.cells, world.r),
        first.fallback_question,
        setting.costs,
        repeats=len(rows),
        seed=setting.seed + 1,
        history_size=setting.history_size,
        options=options if kind == "rs" else {},
    )
    fast = fast_draw(inner.audit)
    done = None if fast is None else fast(inner)
    done = run_repeats(inner) if done is None else done
    for name in ("cost", "labels", "features"):
        getattr(draws, name)[rows] += getattr(done, name)
    for name in ("verdict", "estimate", "lower", "upper"):
        getattr(draws, name)[rows] = getattr(done, name)
