"""Exp-Audit (paper, Algorithm 2): count outcomes by features, where features tell them apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from equipoise.audits.base import Answer, Audit, Features
from equipoise.audits.branch import Branch, ExpConstants, choose_branch
from equipoise.audits.exp_finding import assumptions, finding_from_weights
from equipoise.audits.fallback import Fallback
from equipoise.audits.phases import PhaseBooks
from equipoise.audits.rs import RSAudit
from equipoise.audits.tau_audit import Online, checked_tau, rows_missing
from equipoise.audits.trust import Trust
from equipoise.bounds.stopping import level_of, outcomes_of
from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.finding import Finding
from equipoise.history.past import Past
from equipoise.identify import check
from equipoise.mixture.model import MixtureModel
from equipoise.mixture.tally import FeatureTally
from equipoise.mixture.weights import Weight
from equipoise.question import Costs, Question, Ticket, Verdict, Want
from equipoise.worlds.mixture import ModelledPast

__all__ = ["FALLBACKS", "PHASES", "WEIGHTS", "ExpAudit"]

PHASES = ("coarse", "features", "fallback")
WEIGHTS = ("auto", "map", "likelihood")
FALLBACKS = ("rs", "adaptive")


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
    weights
        "map": Algorithm 2 as published, constants of the proof, no test of its assumptions.
        "likelihood": maximum likelihood weights. "auto": whichever a test of separation and of
        the model itself supports, else labels (``fallback``); the error probability is then
        split evenly between the two ways of ending.
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
    (<Verdict.UNFAIR: 'UNFAIR'>, 'map', 0.0)
    """

    name: ClassVar[str] = "exp"

    def __init__(
        self,
        history: Past,
        question: Question,
        costs: Costs,
        *,
        model: MixtureModel | None = None,
        weights: str = "auto",
        fallback: str = "rs",
        tau: int | None = None,
        coarse_tau: int | None = None,
        features: int | None = None,
        budget: float | None = None,
        seed: int = 0,
    ) -> None:
        if weights not in WEIGHTS:
            raise UnknownName("weights", weights, WEIGHTS)
        if fallback not in FALLBACKS:
            raise UnknownName("fallback", fallback, FALLBACKS)
        self._outcomes = outcomes_of(question)
        super().__init__(history, question, costs, budget=budget)
        self.model = model if model is not None else _model_of(history)
        self.weights = weights
        self.seed = seed
        level = level_of(question)
        self.constants = ExpConstants(
            question.epsilon, level / 2.0 if weights == "auto" else level, len(self.cells)
        )
        self._own_tau = tau
        self.tau = self.constants.tau if tau is None else checked_tau(tau)
        self.coarse_tau = (
            self.constants.coarse_tau if coarse_tau is None else checked_tau(coarse_tau)
        )
        self.feature_cap = None if features is None else checked_tau(features)
        self.stage = "coarse"
        self.branches: dict[str, Branch] = {}
        self.trust = Trust(self.model, history, question.epsilon)
        self.books = PhaseBooks(PHASES, self.cells)
        self._fallback_kind = fallback
        self._fallback: Fallback | None = None
        self._coarse = {g: Online(self.coarse_tau, [[(0, g)], [(1, g)]]) for g in self.cells}
        self._tallies: dict[str, FeatureTally] = {}
        self._asked = dict.fromkeys(self.cells, 0)  # features, approved people's included
        self._rows: dict[tuple[int, str], int] = {}
        self._finding = self._before_start()

    # -- where it stands -------------------------------------------------------------------------

    def cost_of(self, phase: str) -> float:
        """Return what one of :data:`PHASES` has cost so far."""
        return self.books.cost(phase, self.costs)

    @property
    def fallback_reason(self) -> str | None:
        """Why the audit went over to labels, None if it did not."""
        return None if self._fallback is None else self._fallback.why

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

    def ask(self, group: str, decision: int, *, decided: Want | None = None) -> Ticket:
        """Say what is wanted of the person who just arrived."""
        stage = self.stage
        ticket = super().ask(group, decision, decided=decided)
        if ticket.want is not Want.NOTHING:
            self.books.request(ticket, stage)
            self._asked[group] += ticket.want is Want.FEATURES
            if self._fallback is not None:
                self._fallback.asked(ticket)
        return ticket

    def tell(
        self, ticket: Ticket, outcome: int | None = None, features: Features | None = None
    ) -> None:
        """Bring what the ticket wanted; features must be a vector that the model's family knows."""
        if ticket.want is Want.FEATURES and features is not None:
            law = self.model.of(ticket.group)[0]
            features = np.atleast_1d(np.asarray(features, dtype=float))
            if features.shape != (law.family.dimension(law.theta),):
                raise InvalidInput(
                    f"'features' must be a vector of length {law.family.dimension(law.theta)}; "
                    f"got shape {features.shape}"
                )
            law.family.points(features[None, :], name="features")
        super().tell(ticket, outcome, features)

    def _wants(self, group: str, decision: int) -> Want:
        # Whoever is passed over for money would bias the counts, so the dearest must be affordable.
        if self.budget is not None and self._least_hold() > self.available:
            return Want.NOTHING
        if self._fallback is not None:
            return self._fallback.wants(group, decision)
        if self.stage == "coarse":
            return Want.NOTHING if self._coarse[group].done else Want.LABEL
        enough = self._asked[group] >= self.branches[group].features
        return Want.NOTHING if enough else Want.FEATURES

    def _least_hold(self) -> float:
        prices = [self.costs.of(g) for g in self.cells]
        if self.stage == "features":
            return max(p.feature for p in prices)
        return max(p.worst for p in prices)

    def _give_up_if_broke(self) -> None:
        if not self._open and self._least_hold() > self.available:
            self._finding = self._conclude("the budget is spent")

    def _settle(self, answer: Answer) -> None:
        self.books.settle(answer.ticket, answer.outcome)
        super()._settle(answer)

    def _learn(self, answer: Answer) -> Finding | None:
        phase, group = self.books.close(answer.ticket), answer.ticket.group
        if phase == "fallback":
            assert self._fallback is not None
            self._fallback.learn(answer)
            return self._handed_back()
        if phase != self.stage or (phase == "coarse" and self._coarse[group].done):
            return None  # asked for before it was known that no more was needed
        if phase == "coarse":
            if answer.outcome is None:
                return self._conclude(f"the outcome of person {answer.ticket} is missing")
            self._coarse[group].see(group, answer.outcome)
            return self._choose() if all(c.done for c in self._coarse.values()) else None
        if answer.features is None:
            return self._conclude(f"the features of person {answer.ticket} are missing")
        self._tallies[group].add(answer.features)
        complete = all(self._tallies[g].size >= self.branches[g].features for g in self.cells)
        return self._weigh() if complete else None

    def _conclude(self, why: str) -> Finding:
        if self._fallback is not None:
            inner = self._fallback.conclude()
            return self._booked(replace(inner, reason=f"{why}: {inner.reason}"))
        if self.stage == "coarse":
            return self._inconclusive(why, ("labels for the coarse weights, then features",))
        left = {g: b.features - self._tallies[g].size for g, b in self.branches.items()}
        missing = tuple(
            f"the features of {n:,} more people of group {g!r}" for g, n in left.items() if n
        )
        return self._inconclusive(why, missing)

    # -- many people at once, for simulations ----------------------------------------------------

    def take_coarse(self, lengths: Mapping[str, tuple[int, int]]) -> None:
        """Take in finished coarse counts: people until the last of outcome 0 and 1, per group."""
        for group, pair in lengths.items():
            self._coarse[group].lengths = {(y, group): pair[y] for y in (0, 1)}
            self._coarse[group].phases = []
        self._finding = self._choose()

    def take_features(self, tallies: Mapping[str, FeatureTally]) -> None:
        """Take in finished tallies of the features of every group."""
        self._tallies = dict(tallies)
        self._finding = self._weigh()

    def tally(self, group: str) -> FeatureTally:
        """Return the tally of a group's features so far."""
        return self._tallies[group]

    def book(self, phase: str, group: str, *, labels: int, failures: int, features: int) -> None:
        """Book requests to denied people that were made elsewhere."""
        self.books.add(phase, group, labels=labels, failures=failures, features=features)
        spending = self._spending[group]
        spending.labels += labels
        spending.failures += failures
        spending.features += features

    # -- from one stage to the next --------------------------------------------------------------

    def _before_start(self) -> Finding | None:
        if not self._outcomes:
            return check(self.history, self.question)
        goals = [(y, g) for y in self._outcomes for g in self.cells]
        for y, group in goals:
            rows = self.history.rows_until(self.tau, group=group, outcome=y)
            if rows is not None:
                self._rows[y, group] = rows
        dry = len(self._rows) < len(goals)
        problem = self.trust.missing
        if problem is not None and self.weights != "auto":
            raise BadData(problem)
        if problem is None:
            self.trust.check_for_free()
            problem = self.trust.broken
        if self.weights != "auto":
            if not dry:
                return None
            missing = rows_missing(self.history, goals, self.tau, within_group=True)
            return self._inconclusive("the past data run dry", missing)
        problem = "the past data run dry" if dry else problem
        return None if problem is None else self._fall_back(problem)

    def _choose(self) -> Finding | None:
        for group, coarse in self._coarse.items():
            zero, one = (min(1.0, self.coarse_tau / coarse.lengths[y, group]) for y in (0, 1))
            fits = self.model.of(group)
            branch = choose_branch(
                fits, (zero, one), self.constants, weights=self.weights, seed=self.seed
            )
            if self.feature_cap is not None:
                branch = replace(branch, features=min(branch.features, self.feature_cap))
            self.branches[group] = branch
            self._tallies[group] = FeatureTally(fits, one / zero)
            if branch.way == "fallback":
                return self._fall_back(f"group {group!r}: {branch.why}")
        self.stage = "features"
        return None

    def _weigh(self) -> Finding | None:
        found: dict[str, Weight] = {}
        for group, branch in self.branches.items():
            tally = self._tallies[group]
            by_map = branch.way == "map"
            weight = tally.map_weight() if by_map else tally.likelihood_weight(self.seed)
            found[group] = weight
            self.trust.check_weight(group, tally, weight, self.seed)
            allowed = self.question.epsilon * min(weight.estimate, 1.0 - weight.estimate) / 12.0
            reached = self.constants.z * weight.standard_error
            if self.weights == "auto" and not by_map and reached > 1.1 * allowed:
                return self._fall_back(
                    f"group {group!r}: the weight is known to within {reached:.2g} only, where "
                    f"{allowed:.2g} is needed"
                )
        if self.weights == "auto" and (problem := self.trust.broken):
            return self._fall_back(problem)
        shares = {goal: self.tau / rows for goal, rows in self._rows.items()}
        finding = finding_from_weights(self.question, self.cells.groups, shares, found)
        ways = ", ".join(f"{g}: {b.way}" for g, b in self.branches.items())
        return self._booked(
            replace(
                finding,
                reason=f"{finding.reason} (weights from features, {ways})",
                guaranteed=self._thresholds_proven(),
                assumptions=assumptions(
                    self.model,
                    self.branches,
                    self.trust.checks,
                    tested=self.weights == "auto",
                    proven=self._thresholds_proven(),
                ),
            )
        )

    def _fall_back(self, why: str) -> Finding | None:
        self.stage = "fallback"
        inner: Audit
        if self._fallback_kind == "adaptive":
            from equipoise.audits.adaptive import AdaptiveAudit

            inner = AdaptiveAudit(self.history, self.fallback_question, self.costs)
        else:
            inner = RSAudit(self.history, self.fallback_question, self.costs, tau=self._own_tau)
        self._fallback = Fallback(inner, why)
        return self._handed_back()

    def _thresholds_proven(self) -> bool:
        capped = self.feature_cap is not None and any(
            b.features == self.feature_cap for b in self.branches.values()
        )
        own = self.tau < self.constants.tau or self.coarse_tau < self.constants.coarse_tau
        return not (own or capped)

    def _handed_back(self) -> Finding | None:
        found = None if self._fallback is None else self._fallback.finding
        return None if found is None else self._booked(found)

    def _booked(self, finding: Finding) -> Finding:
        return replace(
            finding,
            question=self.question,
            cost=self.cost,
            labels=self.labels,
            features=self.features,
        )

    def _inconclusive(self, why: str, missing: tuple[str, ...]) -> Finding:
        free = check(self.history, self.question)
        return self._booked(
            Finding(
                question=self.question,
                verdict=Verdict.INCONCLUSIVE,
                lower=free.lower,
                upper=free.upper,
                reason=f"{why}; {free.reason}",
                rates=free.rates,
                missing=missing,
                assumptions=free.assumptions,
            )
        )


def _model_of(history: Past) -> MixtureModel:
    if isinstance(history, ModelledPast):
        return history.model
    raise InvalidInput(
        "'model' is needed: this history has no features; fit one with equipoise.mixture.fit_model"
    )
