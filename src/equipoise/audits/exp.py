"""Exp-Audit (paper, Algorithm 2): count outcomes by features, where features tell them apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, cast

import numpy as np

from equipoise.audits.base import Answer, Audit, Features, Spending
from equipoise.audits.tau_audits import (
    FAIR_SAMPLE,
    ApprovalShares,
    Online,
    RSAudit,
    checked_tau,
    finding_from_rates,
    inconclusive,
    outcomes_of,
    rows_missing,
)
from equipoise.bounds import lower_bound, rs_expectation
from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.finding import Finding
from equipoise.free_check import check
from equipoise.history.past import Past
from equipoise.levels import exp_level
from equipoise.mixture.exp_model import Branch, ExpConstants, ModelChecks, choose_branch
from equipoise.mixture.model import MixtureModel, learned_model
from equipoise.mixture.weights import FeatureCounts, Weight
from equipoise.question import Costs, Question, Ticket, Want
from equipoise.worlds import CellWorld

__all__ = ["ACCEPTS", "FALLBACKS", "PHASES", "WEIGHTS", "ExpAudit"]

PHASES = ("learning", "coarse", "features", "fallback")
WEIGHTS = ("auto", "map", "likelihood")
FALLBACKS = ("rs", "adaptive")
ACCEPTS = ("known", "learn")


class ExpAudit(Audit):
    """Label few, look at many: the weights of the outcomes come from features.

    Coarse weights from labels (within 10%), then the features of many people, weighed with the
    laws that a model of past approved people's features gives. UNFAIR if the largest estimated
    difference is above ``gamma + epsilon/2``, else FAIR.

    Parameters
    ----------
    history, question, costs, budget
        As for every audit. Metrics: equalized odds, equal opportunity, predictive equality, and
        demographic parity, which is answered by the free check.
    model
        The laws per group (:func:`equipoise.mixture.fit_model`); taken from ``history`` if that
        offers one.
    accepts, rules
        "learn": the decision-maker cannot be asked; the history's model is that of what its past
        decisions show, if they follow a "threshold" or "half_space" rule in every
        group (:func:`equipoise.mixture.learn_model`). The features of denied people that this
        takes are paid for.
    weights
        "map": Algorithm 2 as published, constants of the proof; since separation is not tested
        the verdict has no proven error probability. "likelihood": maximum likelihood weights, or
        labels (``fallback``) where these cannot be precise enough. "auto": the cheapest of what
        tests of separation and of the model support, labels included. With both, the error
        probability is split evenly between the two ways of ending.
    trust_model
        With "map" or "likelihood", decide even if the model fails its self-checks, which the
        finding then says first. Otherwise such a model gives INCONCLUSIVE.
    fallback
        "rs" (the paper's) or "adaptive".
    tau, coarse_tau, features
        Other thresholds than the proof's: for the past (and a fall-back to RS-Audit), for the
        coarse weights, and a cap on feature vectors per group. The verdict then has no proven
        error probability.
    seed
        Seed of the simulations inside the tests.

    Examples
    --------
    >>> from equipoise.simulation import run
    >>> from equipoise.worlds import MixtureWorld
    >>> world = MixtureWorld.synthetic(separation=14.0, approval={"1": 0.8, "0": 0.4})
    >>> question = Question(gamma=0.05, epsilon=0.2)
    >>> audit = ExpAudit(world.past(), question, Costs(), coarse_tau=50, features=500)
    >>> finding = run(audit, world, 0)
    >>> finding.verdict, audit.branches["1"].way, audit.cost_of("features")
    (<Verdict.UNFAIR: 'UNFAIR'>, 'likelihood', 0.0)
    """

    name: ClassVar[str] = "exp"

    def __init__(
        self,
        history: Past,
        question: Question,
        costs: Costs,
        *,
        model: MixtureModel | None = None,
        accepts: str = "known",
        rules: str = "threshold",
        weights: str = "auto",
        fallback: str = "rs",
        trust_model: bool = False,
        tau: int | None = None,
        coarse_tau: int | None = None,
        features: int | None = None,
        budget: float | None = None,
        seed: int = 0,
    ) -> None:
        if accepts not in ACCEPTS:
            raise UnknownName("accepts", accepts, ACCEPTS)
        if weights not in WEIGHTS:
            raise UnknownName("weights", weights, WEIGHTS)
        if fallback not in FALLBACKS:
            raise UnknownName("fallback", fallback, FALLBACKS)
        self.outcomes = outcomes_of(question, by_features=True)
        super().__init__(history, question, costs, budget=budget)
        self.model = model if model is not None else _model_of(history, accepts, rules)
        self.weights = weights
        self.seed = seed
        level = question.strictest if weights == "map" else exp_level(question)
        self.constants = ExpConstants(question.epsilon, level, len(self.cells))
        self._own_tau = tau
        self.tau = self.constants.tau if tau is None else checked_tau(tau)
        self.coarse_tau = (
            self.constants.coarse_tau if coarse_tau is None else checked_tau(coarse_tau)
        )
        self.feature_cap = None if features is None else checked_tau(features)
        self.stage = "coarse"
        self.branches: dict[str, Branch] = {}
        self.trust_model = trust_model
        self.checks = ModelChecks(self.model, history, question.epsilon)
        self.books = {phase: {g: Spending() for g in self.cells} for phase in PHASES}
        self._approvals = ApprovalShares(history)
        self._begins = {"coarse": 0}  # phase -> number of its first ticket
        self._fallback_kind = fallback
        self.label_audit: Audit | None = None
        self.fallback_reason: str | None = None
        self._coarse = {g: Online(self.coarse_tau, [[(0, g)], [(1, g)]]) for g in self.cells}
        self._counts: dict[str, FeatureCounts] = {}
        self._asked = dict.fromkeys(self.cells, 0)  # features, approved people's included
        self.rows: dict[tuple[int, str], int] = {}  # past people until tau of (outcome, group)
        for group, size in self.model.denied_features.items():
            self.book("learning", group, labels=0, failures=0, features=size)
        if self.overrun > 0.0:
            raise InvalidInput(
                f"'budget' must cover the {self.cost:,.10g} that the features of denied people "
                f"cost who taught the decision-maker's rule; got {budget!r}"
            )
        self._finding = self._before_start()

    # -- where it stands -------------------------------------------------------------------------

    def cost_of(self, phase: str) -> float:
        """Return what one of :data:`PHASES` has cost so far."""
        if phase not in self.books:
            raise UnknownName("phase", phase, self.books)
        return sum(s.cost(self.costs.of(g)) for g, s in self.books[phase].items())

    @property
    def fallback_question(self) -> Question:
        """The question at the share of the error probability that the fall-back may use."""
        return replace(
            self.question,
            delta=self.constants.delta,
            delta_wrong_fair=None,
            delta_wrong_unfair=None,
        )

    # -- the protocol ----------------------------------------------------------------------------

    def tell(
        self, ticket: Ticket, outcome: object = None, features: Features | None = None
    ) -> None:
        """Bring what the ticket wanted; features must be a vector that the model's family knows."""
        if ticket.want is Want.FEATURES and features is not None:
            features = self._vector(ticket.group, features)
        super().tell(ticket, outcome, features)

    def _vector(self, group: str, features: Features) -> Features:
        law = self.model.of(group)[0]
        length = law.family.dimension(law.theta)
        points = law.family.points([features], name="features")
        if points.shape != (1, length):
            raise InvalidInput(
                f"'features' must be a vector of length {length}; got length {points.shape[1]}"
            )
        return np.asarray(points[0])

    def _wants(self, group: str, decision: int) -> Want:
        # Whoever is passed over for money would bias the counts, so the dearest must be affordable.
        if self.budget is not None and self._least_hold() > self.available:
            return Want.NOTHING
        if self.label_audit is not None:  # its tickets have our numbers
            self.label_audit._issued = self._issued
            return self.label_audit.ask(group, decision).want
        if self.stage == "coarse":
            return Want.NOTHING if self._coarse[group].done else Want.LABEL
        if self._asked[group] >= self.branches[group].features:
            return Want.NOTHING
        self._asked[group] += 1
        return Want.FEATURES

    def _least_hold(self) -> float:
        prices = [self.costs.of(g) for g in self.cells]
        if self.stage == "features":
            return max(p.feature for p in prices)
        return max(p.worst for p in prices)

    def _give_up_if_broke(self) -> None:
        if not self._open and self._least_hold() > self.available:
            self._finding = self._conclude(self._why_broke())

    def _book_request(self, ticket: Ticket) -> None:
        super()._book_request(ticket)
        labels = int(ticket.want is Want.LABEL)
        book = self.books[self.stage][ticket.group]
        book.labels, book.pending = book.labels + labels, book.pending + labels
        book.features += 1 - labels

    def _settle(self, answer: Answer) -> None:
        ticket = answer.ticket
        if ticket.decision == 0 and ticket.want is Want.LABEL:
            book = self.books[self._phase_of(ticket)][ticket.group]
            book.pending -= 1
            book.failures += answer.outcome == 0
        super()._settle(answer)

    def _phase_of(self, ticket: Ticket) -> str:
        return [p for p, first in self._begins.items() if first <= ticket.number][-1]

    def _begin(self, stage: str) -> None:
        self.stage = stage
        self._begins[stage] = self._issued

    def _learn(self, answer: Answer) -> Finding | None:
        phase, group = self._phase_of(answer.ticket), answer.ticket.group
        if phase == "fallback":
            assert self.label_audit is not None
            if answer.outcome is None:
                self.label_audit.withdraw(answer.ticket)
            else:
                self.label_audit.tell(answer.ticket, answer.outcome)
            return self._handed_back()
        if (why := self._approvals.see(group, answer.ticket.decision)) is not None:
            return inconclusive(self, why, (FAIR_SAMPLE,))
        if phase != self.stage or (phase == "coarse" and self._coarse[group].done):
            return None  # asked for before it was known that no more was needed
        if phase == "coarse":
            if answer.outcome is None:
                return self._conclude(f"the outcome of person {answer.ticket} is missing")
            self._coarse[group].see(group, answer.outcome)
            return self._choose() if all(c.done for c in self._coarse.values()) else None
        if answer.features is None:
            return self._conclude(f"the features of person {answer.ticket} are missing")
        self._counts[group].add(answer.features)
        complete = all(self._counts[g].size >= self.branches[g].features for g in self.cells)
        return self._weigh() if complete else None

    def _conclude(self, why: str) -> Finding:
        if self.label_audit is not None:
            found = self._by_labels(self.label_audit.so_far("nobody else is to come"))
            return replace(found, reason=f"{why}: {found.reason}")
        if self.stage == "coarse":
            return inconclusive(self, why, ("labels for the coarse weights, then features",))
        left = {g: b.features - self._counts[g].size for g, b in self.branches.items()}
        missing = tuple(
            f"the features of {n:,} more people of group {g!r}" for g, n in left.items() if n
        )
        return inconclusive(self, why, missing)

    # -- many people at once, for simulations ----------------------------------------------------

    def take_coarse(self, lengths: Mapping[str, tuple[int, int]]) -> None:
        """Take in finished coarse counts: people until the last of outcome 0 and 1, per group."""
        for group, pair in lengths.items():
            self._coarse[group].lengths = {(y, group): pair[y] for y in (0, 1)}
            self._coarse[group].phases = []
        self._finding = self._choose()

    def take_features(self, counts: Mapping[str, FeatureCounts]) -> None:
        """Take in finished counts of the features of every group."""
        self._counts = dict(counts)
        self._finding = self._weigh()

    def counts(self, group: str) -> FeatureCounts:
        """Return the counts of a group's features so far."""
        return self._counts[group]

    def book(self, phase: str, group: str, *, labels: int, failures: int, features: int) -> None:
        """Book requests to denied people that were made elsewhere."""
        for spending in (self.books[phase][group], self._spending[group]):
            spending.labels += labels
            spending.failures += failures
            spending.features += features

    # -- from one stage to the next --------------------------------------------------------------

    def _before_start(self) -> Finding | None:
        if not self.outcomes:
            return check(self.history, self.question)
        goals = [(y, g) for y in self.outcomes for g in self.cells]
        self.rows = self.history.rows_until(self.tau, self.question, outcomes=self.outcomes)
        dry = len(self.rows) < len(goals)
        problem = self.checks.missing
        if problem is not None and self.weights != "auto":
            raise BadData(problem)
        if problem is None:
            self.checks.check_for_free()
            problem = self.checks.broken
        if self.weights == "auto":
            problem = "the past data run dry" if dry else problem
            return None if problem is None else self._fall_back(problem)
        if not dry:
            return self._refused()
        missing = rows_missing(self.history, goals, self.tau, within_group=True)
        return inconclusive(self, "the past data run dry", missing)

    def _refused(self) -> Finding | None:
        """Return the finding where the model must be believed, and is not to be."""
        problem = self.checks.broken
        if problem is None or self.trust_model:
            return None
        remedy = "a model that fits these people, or labels: weights='auto' goes over to them"
        return inconclusive(self, problem, (remedy,))

    def _choose(self) -> Finding | None:
        for group in self.cells:
            zero, one = self._coarse_weights(group)
            fits = self.model.of(group)
            branch = choose_branch(
                fits, (zero, one), self.constants, weights=self.weights, seed=self.seed
            )
            if self.feature_cap is not None:
                branch = replace(branch, features=min(branch.features, self.feature_cap))
            self.branches[group] = branch
            self._counts[group] = FeatureCounts(fits, one / zero)
            if branch.way == "fallback":
                return self._fall_back(f"group {group!r}: {branch.why}")
        if self.weights == "auto":
            by_features, by_labels = self._price_of_features(), self._price_of_labels()
            if by_labels < by_features:
                return self._fall_back(
                    "labels are cheaper than the features that the weights would take"
                )
        self._begin("features")
        return None

    def _coarse_weights(self, group: str) -> tuple[float, float]:
        lengths = self._coarse[group].lengths
        zero, one = (min(1.0, self.coarse_tau / lengths[y, group]) for y in (0, 1))
        return zero, one

    def _price_of_features(self) -> float:
        return sum(
            branch.features * self.cells[g].shares[2] * self.costs.of(g).feature
            for g, branch in self.branches.items()
        )

    def _price_of_labels(self) -> float:
        """Return what the fall-back would cost if the coarse weights are right."""
        r = {}
        for group, coarse in self._coarse.items():
            p1, _, s = self.cells[group].shares
            ahead = self.coarse_tau / coarse.lengths[1, group] - p1
            r[group] = float(np.clip(ahead / s, 0.0, 1.0)) if s > 0.0 else 0.0
        world = CellWorld(self.cells, r)
        if self._fallback_kind == "adaptive":  # twice its bound is what it costs on average
            return 2.0 * float(lower_bound(world, self.fallback_question, self.costs))
        return rs_expectation(world, self.fallback_question, self.costs, tau=self._own_tau).cost

    def _weigh(self) -> Finding | None:
        if (why := self._approvals.contradiction()) is not None:
            return inconclusive(self, why, (FAIR_SAMPLE,))
        found: dict[str, Weight] = {}
        for group, branch in self.branches.items():
            counts = self._counts[group]
            by_map = branch.way == "map"
            weight = counts.map_weight() if by_map else counts.likelihood_weight()
            found[group] = weight
            self.checks.check_weight(group, counts, weight)
            self.checks.check_labels(group, weight, self._coarse_weights(group), self.coarse_tau)
            allowed = self.question.epsilon * min(weight.estimate, 1.0 - weight.estimate) / 12.0
            reached = self.constants.z * weight.standard_error
            capped = branch.features == self.feature_cap
            if not by_map and not capped and reached > 1.1 * allowed:
                return self._fall_back(
                    f"group {group!r}: the weight is known to within {reached:.2g} only, where "
                    f"{allowed:.2g} is needed"
                )
        problem = self.checks.broken
        if self.weights == "auto" and problem is not None:
            return self._fall_back(problem)
        refused = self._refused()
        return refused or self._booked(_finding_from_weights(self, found, problem))

    def _fall_back(self, why: str) -> Finding | None:
        self._begin("fallback")
        self.fallback_reason = why
        if self._fallback_kind == "adaptive":
            from equipoise.audits.adaptive import AdaptiveAudit

            self.label_audit = AdaptiveAudit(self.history, self.fallback_question, self.costs)
        else:
            self.label_audit = RSAudit(
                self.history, self.fallback_question, self.costs, tau=self._own_tau
            )
        return self._handed_back()

    def _handed_back(self) -> Finding | None:
        found = None if self.label_audit is None else self.label_audit.finding
        return None if found is None else self._by_labels(found)

    def _by_labels(self, finding: Finding) -> Finding:
        reason = f"{finding.reason} (by labels, because {self.fallback_reason})"
        return self._booked(replace(finding, reason=reason))

    def _booked(self, finding: Finding) -> Finding:
        return replace(
            finding,
            question=self.question,
            cost=self.cost,
            labels=self.labels,
            features=self.features,
        )


def _model_of(history: Past, accepts: str, rules: str) -> MixtureModel:
    if history.model is not None:
        known = cast(MixtureModel, history.model)
        return known if accepts == "known" else learned_model(history, rules)
    raise InvalidInput(
        "'model' is needed: this history has no features; fit one with "
        f"equipoise.mixture.{'fit_model' if accepts == 'known' else 'learn_model'}"
    )


# -- the verdict from weights ---------------------------------------------------------------------


def _finding_from_weights(
    audit: ExpAudit, weights: Mapping[str, Weight], problem: str | None
) -> Finding:
    """Return the verdict; ``problem`` is why the model should not have been believed."""
    shape = len(audit.outcomes), len(audit.cells)
    ratios, low, high = np.empty(shape), np.empty(shape), np.empty(shape)
    past = audit.question.epsilon / 12.0 * np.sqrt(audit.constants.tau / audit.tau)
    for j, (group, weight) in enumerate(weights.items()):
        for i, y in enumerate(audit.outcomes):
            q = max(weight.estimate if y else 1.0 - weight.estimate, 1e-12)
            online = _weight_error(audit, group, weight, q)
            ratio = audit.tau / audit.rows[y, group] / q
            ratios[i, j] = min(ratio, 1.0)
            low[i, j] = min(ratio * max(1.0 - past, 0.0) / (1.0 + online), 1.0)
            high[i, j] = min(ratio * (1.0 + past) / (1.0 - online), 1.0) if online < 1 else 1.0
    finding = finding_from_rates(audit.question, audit.cells.groups, ratios, low, high)
    ways = ", ".join(f"{g}: {b.way}" for g, b in audit.branches.items())
    headline = "" if problem is None else f"the model was believed although {problem}: "
    return replace(
        finding,
        reason=f"{headline}{finding.reason} (weights from features, {ways})",
        guaranteed=problem is None and audit.weights != "map" and _thresholds_proven(audit),
        assumptions=_assumptions(audit),
        warnings=() if problem is None else (problem,),
    )


def _weight_error(audit: ExpAudit, group: str, weight: Weight, q: float) -> float:
    """Return how far off a weight q may be, relative to it: the proof's, or what caps leave."""
    epsilon = audit.question.epsilon
    bias = epsilon / 36.0 if audit.branches[group].way == "map" else 0.0
    chance = audit.constants.z * max(weight.standard_error, 1.0 / weight.size) / q
    return max(epsilon / 12.0, bias + chance)


def _thresholds_proven(audit: ExpAudit) -> bool:
    capped = audit.feature_cap is not None and any(
        b.features == audit.feature_cap for b in audit.branches.values()
    )
    own = audit.tau < audit.constants.tau or audit.coarse_tau < audit.constants.coarse_tau
    return not (own or capped)


def _assumptions(audit: ExpAudit) -> tuple[str, ...]:
    """Return what the answer rests on, one line each."""
    fits = [fit for pair in audit.model.fits.values() for fit in pair]
    families = " or ".join(dict.fromkeys(fit.family.name for fit in fits))
    lines = [
        "everybody comes from one population, past and present, independently",
        f"the features of each outcome in each group follow the {families} family, also where "
        "nobody was approved",
    ]
    if not audit.model.rules:
        lines.append("'accepts' is the decision-maker that was used")
    lines += [
        f"group {group!r}: the decision-maker, who could not be asked, follows {rule}"
        for group, rule in audit.model.rules.items()
    ]
    lines += [
        f"group {group!r}: {branch.way} weights from features: {branch.why}"
        for group, branch in audit.branches.items()
    ]
    estimated = any(fit.theta_covariance.any() for fit in fits)
    if estimated or any(b.way == "likelihood" for b in audit.branches.values()):
        lines.append("normal approximation of the error of estimated laws and weights")
    if audit.weights == "map":
        lines.append("separation was not tested: MAP counts are biased where laws overlap")
    lines += [f"self-check: {check}" for check in audit.checks.made]
    if not _thresholds_proven(audit):
        lines.append(
            "thresholds below the proof's were given: the verdict has no proven error probability"
        )
    return tuple(lines)
