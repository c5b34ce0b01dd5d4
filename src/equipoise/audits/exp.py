"""Exp-Audit (paper, Algorithm 2): count outcomes by features, where features tell them apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from equipoise.audits.base import Answer, Audit, Features, Spending
from equipoise.audits.branch import Branch, ExpConstants, choose_branch
from equipoise.audits.rs import RSAudit
from equipoise.audits.stopping import (
    RATE_OF_OUTCOME,
    Online,
    checked_tau,
    compare_rates,
    rate_intervals,
)
from equipoise.bounds.stopping import level_of, outcomes_of
from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.finding import Finding, Interval
from equipoise.history.past import Past
from equipoise.identify import check
from equipoise.mixture.model import MixtureModel, SelfCheck
from equipoise.mixture.tally import FeatureTally
from equipoise.mixture.weights import Weight
from equipoise.question import Costs, Question, Ticket, Verdict, Want
from equipoise.worlds.mixture import ModelledPast

__all__ = ["FALLBACKS", "PHASES", "WEIGHTS", "ExpAudit"]

PHASES = ("coarse", "features", "fallback")
WEIGHTS = ("auto", "map", "likelihood")
FALLBACKS = ("rs", "adaptive")
CHECK_LEVEL = 0.01  # of a false alarm, all self-checks together


class ExpAudit(Audit):
    """Label few, look at many: the weights of the outcomes come from features.

    Coarse weights from labels (within 10%), then the features of many people, weighed with the
    laws that a model of past approved people's features gives. UNFAIR if the largest estimated
    difference is above ``gamma + epsilon/2``, else FAIR.

    Parameters
    ----------
    question, costs, history, budget
        As for every audit. Metrics: equalized odds, equal opportunity, predictive equality.
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
    """

    name: ClassVar[str] = "exp"

    def __init__(
        self,
        question: Question,
        costs: Costs,
        history: Past,
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
        self._outcomes = outcomes_of(question.metric)
        super().__init__(question, costs, history, budget=budget)
        self.model = model if model is not None else _model_of(history)
        self.weights = weights
        self.seed = seed
        self._fallback_kind = fallback
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
        self.checks: list[SelfCheck] = []
        self.fallback_reason: str | None = None
        self.phases: dict[str, dict[str, Spending]] = {
            phase: {group: Spending() for group in self.cells} for phase in PHASES
        }
        self._phase_of: dict[int, str] = {}  # of requests without an answer
        self._coarse = {g: Online(self.coarse_tau, [[(0, g)], [(1, g)]]) for g in self.cells}
        self._tallies: dict[str, FeatureTally] = {}
        self._asked = dict.fromkeys(self.cells, 0)
        self._inner: Audit | None = None
        self._inner_tickets: dict[int, Ticket] = {}
        self._rows: dict[tuple[int, str], int] = {}
        self._finding = self._before_start()

    # -- the protocol ----------------------------------------------------------------------------

    def tell(
        self, ticket: Ticket, outcome: int | None = None, features: Features | None = None
    ) -> None:
        """Bring what the ticket wanted; features must be a vector that the model's family knows."""
        if ticket.want is Want.FEATURES and features is not None:
            family = self.model.of(ticket.group)[0].family
            row = np.atleast_1d(np.asarray(features, dtype=float))
            family.points(row[None, :], name="features")
            expected = family.dimension(self.model.of(ticket.group)[0].theta)
            if row.shape != (expected,):
                raise InvalidInput(
                    f"'features' must be a vector of length {expected}; got shape {row.shape}"
                )
            features = row
        super().tell(ticket, outcome, features)

    def _wants(self, group: str, decision: int) -> Want:
        # Whoever is passed over for money would bias the counts, so the dearest must be affordable.
        if self.budget is not None and self._least_hold() > self.available:
            return Want.NOTHING
        want = Want.NOTHING
        if self.stage == "coarse":
            want = Want.NOTHING if self._coarse[group].done else Want.LABEL
        elif self.stage == "features":
            if self._asked[group] < self.branches[group].features:
                self._asked[group] += 1
                want = Want.FEATURES
        elif self._inner is not None:
            ticket = self._inner.ask(group, decision)
            want = ticket.want
            if want is not Want.NOTHING:
                self._inner_tickets[self._issued] = ticket
        if want is not Want.NOTHING:
            self._phase_of[self._issued] = self.stage
        return want

    def _least_hold(self) -> float:
        prices = [self.costs.of(g) for g in self.cells]
        if self.stage == "features":
            return max(p.feature for p in prices)
        return max(p.worst for p in prices)

    def _learn(self, answer: Answer) -> Finding | None:
        number, group = answer.ticket.number, answer.ticket.group
        phase = self._phase_of.pop(number)
        if phase == "fallback":
            return self._learn_inside(answer)
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
        complete = all(self._tallies[g].size == self.branches[g].features for g in self.cells)
        return self._weigh() if complete else None

    def _conclude(self, why: str) -> Finding:
        if self._inner is not None:
            inner = self._inner.conclude()
            return self._adopt(replace(inner, reason=f"{why}: {inner.reason}"))
        missing = {
            "coarse": "labels for the coarse weights (and the features after them)",
            "features": "features of "
            + ", ".join(
                f"{self.branches[g].features - self._tallies[g].size:,} more people of group {g!r}"
                for g in self._tallies
            ),
        }[self.stage]
        return self._inconclusive(why, (missing,))

    # -- money by phase --------------------------------------------------------------------------

    def cost_of(self, phase: str) -> float:
        """Return what one of :data:`PHASES` has cost so far."""
        if phase not in self.phases:
            raise UnknownName("phase", phase, PHASES)
        return sum(s.cost(self.costs.of(g)) for g, s in self.phases[phase].items())

    def _book_request(self, group: str, want: Want) -> None:
        super()._book_request(group, want)
        spending = self.phases[self._phase_of[self._issued - 1]][group]
        if want is Want.LABEL:
            spending.labels += 1
            spending.pending += 1
        else:
            spending.features += 1

    def _settle(self, answer: Answer) -> None:
        ticket = answer.ticket
        if ticket.decision == 0 and ticket.want is Want.LABEL:
            spending = self.phases[self._phase_of[ticket.number]][ticket.group]
            spending.pending -= 1
            spending.failures += answer.outcome == 0
        super()._settle(answer)

    def _give_up_if_broke(self) -> None:
        if not self._open and self._least_hold() > self.available:
            self._finding = self._conclude(f"the budget of {self.budget:,.10g} is spent")

    # -- many people at once ---------------------------------------------------------------------

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
        for spending in (self._spending[group], self.phases[phase][group]):
            spending.labels += labels
            spending.failures += failures
            spending.features += features

    # -- from one stage to the next --------------------------------------------------------------

    def _before_start(self) -> Finding | None:
        if not self._outcomes:
            return check(self.history, self.question)
        dry = []
        for group in self.cells:
            for outcome in (0, 1):
                rows = self.history.rows_until(self.tau, group=group, outcome=outcome)
                if rows is None:
                    dry.append(
                        f"more past people of group {group!r} who were approved and had outcome "
                        f"{outcome}: {self.tau:,} are needed"
                    )
                else:
                    self._rows[outcome, group] = rows
        problem = self._problem_of_model()
        if self.weights != "auto":
            if problem is not None and not self.checks:
                raise BadData(problem)
            return self._inconclusive("the past data run dry", tuple(dry)) if dry else None
        if dry:
            problem = "the past data run dry"
        return None if problem is None else self._fall_back(problem)

    def _problem_of_model(self) -> str | None:
        for group in self.cells:
            if group in self.model.problems or group not in self.model.fits:
                why = self.model.problems.get(group, "it was not fitted")
                return f"there is no model of group {group!r}: {why}"
            for outcome, fit in enumerate(self.model.of(group)):
                if fit.diagnostics.plainly_wrong:
                    why = "; ".join(fit.diagnostics.warnings)
                    return f"the law of group {group!r}, outcome {outcome}, does not fit: {why}"
        self.checks = [
            self.model.self_check(
                g,
                self.cells[g],
                exact=self.history.exact,
                level=CHECK_LEVEL / (3 * len(self.cells)),
                slack=self.question.epsilon / 36.0,
            )
            for g in self.cells
        ]
        return self._failed_check()

    def _failed_check(self) -> str | None:
        failed = [c for c in self.checks if not c.passed]
        return f"the model contradicts itself ({failed[0]})" if failed else None

    def _choose(self) -> Finding | None:
        for group, coarse in self._coarse.items():
            weights = tuple(min(1.0, self.coarse_tau / coarse.lengths[y, group]) for y in (0, 1))
            fits = self.model.of(group)
            branch = choose_branch(
                fits, (weights[0], weights[1]), self.constants, weights=self.weights, seed=self.seed
            )
            if self.feature_cap is not None:
                branch = replace(branch, features=min(branch.features, self.feature_cap))
            self.branches[group] = branch
            self._tallies[group] = FeatureTally(fits, weights[1] / weights[0])
            if branch.way == "fallback":
                return self._fall_back(f"group {group!r}: {branch.why}")
        self.stage = "features"
        return None

    def _weigh(self) -> Finding | None:
        found: dict[str, Weight] = {}
        for group, branch in self.branches.items():
            tally = self._tallies[group]
            weight = (
                tally.map_weight() if branch.way == "map" else tally.likelihood_weight(self.seed)
            )
            found[group] = weight
            self.checks += tally.self_check(
                group,
                weight,
                *_shares(self.history, group),
                level=CHECK_LEVEL / (3 * len(self.cells)),
                slack=self.question.epsilon / 12.0,
                seed=self.seed,
            )
            smaller = min(weight.estimate, 1.0 - weight.estimate)
            allowed = self.question.epsilon * smaller / 12.0
            reached = self.constants.z * weight.standard_error
            if branch.way == "likelihood" and self.weights == "auto" and reached > 1.1 * allowed:
                return self._fall_back(
                    f"group {group!r}: the weight is known to within {reached:.2g} only, where "
                    f"{allowed:.2g} is needed"
                )
        if self.weights == "auto" and (problem := self._failed_check()):
            return self._fall_back(problem)
        return self._decide(found)

    def _decide(self, found: Mapping[str, Weight]) -> Finding:
        ratios = np.array(
            [
                [
                    self.tau
                    / self._rows[y, g]
                    / max(found[g].estimate if y else 1.0 - found[g].estimate, 1e-12)
                    for g in self.cells
                ]
                for y in self._outcomes
            ]
        )
        low, high = rate_intervals(ratios, self.question.epsilon / 12.0)
        estimate, lower, upper = (float(x) for x in compare_rates(ratios, low, high))
        limit = self.question.gamma + self.question.epsilon / 2.0
        verdict = Verdict.UNFAIR if estimate > limit else Verdict.FAIR
        ways = ", ".join(f"{g}: {b.way}" for g, b in self.branches.items())
        return Finding(
            question=self.question,
            verdict=verdict,
            estimate=estimate,
            lower=lower,
            upper=upper,
            reason=f"the estimated difference {estimate:.4g} is "
            f"{'above' if verdict is Verdict.UNFAIR else 'at most'} gamma + epsilon/2 = {limit:g} "
            f"(weights from features, {ways})",
            rates={
                RATE_OF_OUTCOME[y]: {
                    g: Interval(float(low[i, j]), float(high[i, j]), float(ratios[i, j]))
                    for j, g in enumerate(self.cells)
                }
                for i, y in enumerate(self._outcomes)
            },
            cost=self.cost,
            labels=self.labels,
            features=self.features,
            assumptions=self._assumptions(),
        )

    # -- the fall-back ---------------------------------------------------------------------------

    @property
    def fallback_question(self) -> Question:
        """The question at the share of the error probability that the fall-back may use."""
        return replace(
            self.question,
            delta=self.constants.delta,
            delta_wrong_fair=None,
            delta_wrong_unfair=None,
        )

    def _fall_back(self, why: str) -> Finding | None:
        self.stage = "fallback"
        self.fallback_reason = why
        question = self.fallback_question
        if self._fallback_kind == "adaptive":
            from equipoise.audits.adaptive import AdaptiveAudit

            self._inner = AdaptiveAudit(question, self.costs, self.history)
        else:
            self._inner = RSAudit(question, self.costs, self.history, tau=self._own_tau)
        return None if self._inner.finding is None else self._adopt(self._inner.finding)

    def _learn_inside(self, answer: Answer) -> Finding | None:
        inner, ticket = self._inner, self._inner_tickets.pop(answer.ticket.number)
        assert inner is not None
        if inner.finding is None:
            if answer.outcome is None:
                inner.withdraw(ticket)
            else:
                inner.tell(ticket, answer.outcome)
        return None if inner.finding is None else self._adopt(inner.finding)

    def _adopt(self, finding: Finding) -> Finding:
        return replace(
            finding,
            question=self.question,
            reason=f"{finding.reason} (by labels, because {self.fallback_reason})",
            cost=self.cost,
            labels=self.labels,
            features=self.features,
            assumptions=finding.assumptions,
        )

    # -- words -----------------------------------------------------------------------------------

    def _assumptions(self) -> tuple[str, ...]:
        family = self.model.of(self.cells.groups[0])[0].family
        lines = [
            "everybody comes from one population, past and present, independently",
            f"the features of each outcome in each group follow the {family.name} family, also "
            "where nobody was approved, and 'accepts' is the decision-maker that was used",
        ]
        for group, branch in self.branches.items():
            lines.append(f"group {group!r}: {branch.way} weights from features: {branch.why}")
        if any(b.way == "likelihood" for b in self.branches.values()) or any(
            fit.theta_covariance.any() for pair in self.model.fits.values() for fit in pair
        ):
            lines.append("normal approximation of the error of estimated laws and weights")
        if self.weights == "map":
            lines.append(
                "the paper's separation condition, untested: MAP counts are biased where the "
                "two laws overlap"
            )
        lines += [f"self-check: {c}" for c in self.checks]
        proven = ExpConstants(self.question.epsilon, self.constants.delta, len(self.cells))
        capped = self.feature_cap is not None and any(
            b.features == self.feature_cap for b in self.branches.values()
        )
        if self.tau < proven.tau or self.coarse_tau < proven.coarse_tau or capped:
            lines.append(
                "thresholds below the proof's were given: the verdict has no proven error "
                "probability"
            )
        return tuple(lines)

    def _inconclusive(self, why: str, missing: tuple[str, ...]) -> Finding:
        free = check(self.history, self.question)
        return replace(
            free,
            verdict=Verdict.INCONCLUSIVE,
            reason=f"{why}; {free.reason}",
            cost=self.cost,
            labels=self.labels,
            features=self.features,
            missing=missing,
        )


def _model_of(history: Past) -> MixtureModel:
    if isinstance(history, ModelledPast):
        return history.model
    raise InvalidInput(
        "'model' is needed: this history has no features; fit one with equipoise.mixture.fit_model"
    )


def _shares(history: Past, group: str) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return ``P[f=1, Y=y | a]`` for y = 0, 1 by the past, and their standard errors."""
    p1, p0, _ = history.cells[group].shares
    if history.exact:
        return (p0, p1), (0.0, 0.0)
    total = history.cells[group].total
    return (p0, p1), (float(np.sqrt(p0 / total)), float(np.sqrt(p1 / total)))
