"""Exp-Audit (paper, Algorithm 2): count outcomes by features, where features tell them apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.audits.approval_shares import FAIR_SAMPLE, ApprovalShares
from equipoise.audits.base import Audit, Features, Step
from equipoise.audits.estimated_rates import (
    arrivals_in_turn,
    describe_missing_rows,
    finding_from_rates,
    finding_of_free_check,
    inconclusive_finding,
    outcomes_to_estimate,
    paper_tau,
    parse_count,
)
from equipoise.audits.label_work import LabelWork
from equipoise.audits.rs_audit import RSAudit
from equipoise.audits.tau_audit import Online
from equipoise.errors import BadData, InvalidInput, UnknownName, require_kind
from equipoise.finding import Finding
from equipoise.history.past import Past
from equipoise.levels import exp_event_level, exp_level
from equipoise.mixture.likelihood_weights import Weight
from equipoise.mixture.map_weights import (
    Branch,
    ExpConstants,
    FeatureCounts,
    Labelled,
    choose_branch,
)
from equipoise.mixture.model import MixtureModel, PastFeatures
from equipoise.mixture.model_checks import ModelChecks
from equipoise.mixture.trunc_est import StructuralConstants
from equipoise.protocol import Ticket, Want
from equipoise.question import Costs, Question, Verdict

WEIGHTS = ("auto", "map", "likelihood", "published")
FALLBACKS = ("rs", "adaptive")


class ExpAudit(Audit):
    """Label few people, see the features of many: these give the weights of the outcomes.

    Coarse weights from labels (within 10%), then the features of many people, weighed with the
    laws that a model of past approved people's features gives. UNFAIR if the largest estimated
    difference is above ``gamma + epsilon/2``, else FAIR.

    A verdict by features holds *if the model holds*, so it is never guaranteed: self-checks can
    contradict a model and prove none. One by labels is guaranteed. The finding has both costs.

    Parameters
    ----------
    history, question, costs, budget
        As for every audit. Metrics: equalized odds, equal opportunity, predictive equality, and
        demographic parity, which is answered by the free check. Features that the history holds
        of past people whom its fit did not see (:class:`~equipoise.mixture.PastFeatures`) are
        read first and free; only what is missing is bought.
    model
        The laws per group (``model`` of :class:`~equipoise.mixture.PastFeatures`); taken from
        ``history`` if that offers one.
    weights
        "auto": the cheapest way that tests of separation and of the model support, labels
        included. "map" (MAP counts) and "likelihood": that way where the tests support it, else
        what they do support. The error probability is split evenly between the two ways of
        ending, features and labels. "published": Algorithm 2 to the letter, nothing tested, see
        :meth:`published`.
    fallback
        Who takes over by labels: "rs" (the paper's) or "adaptive".
    tau, coarse_tau, features
        Other thresholds than the proof's: for the past (and a fall-back to RS-Audit), for the
        coarse weights, and a cap on feature vectors per group.

    Examples
    --------
    >>> from equipoise.simulation import run
    >>> from equipoise.worlds import MixtureWorld
    >>> world = MixtureWorld.synthetic(separation=14.0, approval={"1": 0.8, "0": 0.4})
    >>> question = Question(gamma=0.05, epsilon=0.2)
    >>> audit = ExpAudit(world.past(), question, Costs(), coarse_tau=50, features=500)
    >>> finding = run(audit, world, 0)
    >>> finding.verdict, audit.branches["1"].way, audit.phase
    (<Verdict.UNFAIR: 'UNFAIR'>, 'likelihood', 'features')
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
    ) -> None:
        if weights not in WEIGHTS:
            raise UnknownName("weights", weights, WEIGHTS)
        if fallback not in FALLBACKS:
            raise UnknownName("fallback", fallback, FALLBACKS)
        self.outcomes = outcomes_to_estimate(question, by_features=True)
        super().__init__(history, question, costs, budget=budget)
        if model is None and history.model is None:
            raise InvalidInput(
                "'model' is needed: this history has no features; fit one to features of past "
                "people with equipoise.mixture.PastFeatures(...).model"
            )
        self.model: MixtureModel = history.model if model is None else model
        require_kind("model", self.model, MixtureModel, "a MixtureModel")
        unseen = history.features if model is None and weights != "published" else None
        self._unseen_past: PastFeatures | None = unseen
        self.weights = weights
        level = question.strictest_level if weights == "published" else exp_level(question)
        self.constants = ExpConstants(question.epsilon, level, len(self.cells))
        # what the fall-back is asked: the same, at its share of the error probability
        self.fallback_question = replace(
            question, delta=level, delta_wrong_fair=None, delta_wrong_unfair=None
        )
        self._requested_tau = tau
        self.tau = parse_count(tau, self.constants.tau)
        self.coarse_tau = parse_count(coarse_tau, self.constants.coarse_tau, "coarse_tau")
        self.feature_cap = parse_count(features, 2**53 - 1, "features")  # left out: no cap
        self.branches: dict[str, Branch] = {}
        self.checks = ModelChecks(self.model, history, question.epsilon)
        self._approvals = ApprovalShares(history)
        self.phase = "coarse"  # then "features", and "fallback" where labels have to decide
        self._first_ticket_of_phase = 0  # its first ticket
        self._fallback_name = fallback
        self.label_audit: Audit | None = None
        self.fallback_reason: str | None = None
        self._coarse_phase = {g: Online(self.coarse_tau, [[(0, g)], [(1, g)]]) for g in self.cells}
        # the people behind the coarse weights, of groups where all features came with the labels
        self._coarse_people: dict[str, list[Labelled]] = {g: [] for g in self.cells}
        self.counts: dict[str, FeatureCounts] = {}
        self._features_requested = dict.fromkeys(
            self.cells, 0
        )  # features, approved people's included
        self.rows: dict[tuple[int, str], int] = {}  # past people until tau of (outcome, group)
        self.free_features = dict.fromkeys(self.cells, 0)  # read off past people
        self._finding = self._finding_before_start()

    @classmethod
    def published(
        cls,
        history: Past,
        question: Question,
        costs: Costs,
        *,
        constants: StructuralConstants | None = None,
        n: int | None = None,
        m: int | None = None,
        eta: float | None = None,
        **options: Any,
    ) -> ExpAudit:
        """Return Algorithm 2 to the letter: TruncEst as printed, nothing tested, nothing clipped.

        ``TruncEst(D_ya, f, epsilon/(2 beta), delta/(14K), c, Theta)`` gives the laws, with the
        theorem's ``n``, ``m`` and ``eta`` or your own; ``model=`` in their place takes laws that
        are there already. R has ``log(12K/delta)``. Features are bought as they come.

        Parameters
        ----------
        constants
            ``c = (L, beta, kappa, alpha)`` and lambda; see
            :func:`equipoise.mixture.check_assumptions` for what a fit supports.
        options
            ``model``, ``tau``, ``coarse_tau``, ``features``, ``budget``.
        """
        if options.get("model") is None:
            if constants is None or history.features is None:
                raise InvalidInput(
                    "ExpAudit.published needs 'constants' and a history with features "
                    "(equipoise.mixture.PastFeatures) for TruncEst, or a 'model'"
                )
            everybody = replace(history.features, held_out=0.0)
            level = exp_event_level(question.strictest_level, len(history.cells))
            options["model"] = everybody.published_model(
                question.epsilon / (2.0 * constants.beta), level, constants, n=n, m=m, eta=eta
            )
        return cls(history, question, costs, weights="published", **options)

    # -- the protocol ----------------------------------------------------------------------------

    def tell(
        self, ticket: Ticket, outcome: object = None, features: Features | None = None
    ) -> None:
        """Bring what the ticket wanted; features must be a vector that the model's family knows.

        A label brings the person's features too, if they are known: only then can MAP counts be
        tested, and the model be held against these labels before features are bought.
        """
        if self.label_audit is None and features is not None:
            law = self.model.of(ticket.group)[0]
            length = law.family.dimension(law.theta)
            remedy = "nobody may be left out: tell a label without them, or withdraw the ticket"
            points = law.family.points([features], name="features", remedy=remedy)
            if points.shape != (1, length):
                raise InvalidInput(
                    f"'features' must be a vector of length {length}; got length {points.shape[1]}"
                )
            features = np.asarray(points[0])
        super().tell(ticket, outcome, features)

    def _choose_want(self, group: str, decision: int) -> Want:
        # Passing over people for want of money would bias the counts, so the audit ends as soon as
        # the most expensive request is out of reach.
        if self.is_broke:
            return Want.NOTHING
        if self.label_audit is not None:  # its tickets have our numbers
            return self.label_audit.ask(group, decision, number=self._next_number).want
        if self.phase == "coarse":
            return Want.NOTHING if self._coarse_phase[group].is_done else Want.LABEL
        if self._features_requested[group] >= self.branches[group].features:
            return Want.NOTHING
        self._features_requested[group] += 1
        return Want.FEATURES

    def _smallest_hold_needed(self) -> float:
        want = Want.FEATURES if self.phase == "features" else Want.LABEL
        return max(self._worst_cost(g, 0, want) for g in self.cells)

    def _learn(self, answer: Step) -> Finding | None:
        ticket, outcome, phase = answer.ticket, answer.outcome, self.phase
        group, is_late = ticket.group, ticket.number < self._first_ticket_of_phase
        if self.label_audit is not None and not is_late:
            if outcome is None:
                self.label_audit.withdraw(ticket)
            else:
                self.label_audit.tell(ticket, outcome)
            found = self.label_audit.finding
            return None if found is None else self._finding_by_labels(found)
        if (why := self._approvals.count_person(group, ticket.decision)) is not None:
            return inconclusive_finding(self, why, (FAIR_SAMPLE,))
        if is_late or (phase == "coarse" and self._coarse_phase[group].is_done):
            return None  # asked for before it was known that no more was needed
        if phase == "features":
            if answer.features is None:
                return self._conclude(f"the features of person {ticket} are missing")
            self.counts[group].add(answer.features)
            return self._weigh_if_complete()
        if outcome is None:
            return self._conclude(f"the outcome of person {ticket} is missing")
        self._coarse_phase[group].count_person(group, outcome)
        if answer.features is None:
            self._coarse_people.pop(group, None)
        elif group in self._coarse_people:
            self._coarse_people[group].append(Labelled(answer.features[None], np.array([outcome])))
        return (
            self._choose_branches() if all(c.is_done for c in self._coarse_phase.values()) else None
        )

    def _conclude(self, why: str) -> Finding:
        if self.label_audit is not None:
            found = self.label_audit.so_far("nobody else is to come")
            return self._finding_by_labels(replace(found, reason=f"{why}: {found.reason}"))
        if self.phase == "coarse":
            return inconclusive_finding(
                self, why, ("labels for the coarse weights, then features",)
            )
        left = {g: b.features - self.counts[g].size for g, b in self.branches.items()}
        lacks = (f"the features of {n:,} more people of group {g!r}" for g, n in left.items() if n)
        return inconclusive_finding(self, why, tuple(lacks))

    # -- many people at once, for simulations ----------------------------------------------------

    def finish_coarse_phase(
        self, stopping_times: Mapping[str, tuple[int, int]], labelled: Mapping[str, Labelled] = {}
    ) -> None:
        """Take in finished coarse counts: people until the last of outcome 0 and 1, per group."""
        for group, pair in stopping_times.items():
            self._coarse_phase[group].stopping_times = {(y, group): pair[y] for y in (0, 1)}
            self._coarse_phase[group].phases = []
        self._coarse_people = {group: [people] for group, people in labelled.items()}
        self._finding = self._choose_branches()

    def finish_feature_phase(self) -> None:
        """Weigh the features that were added to ``counts`` of every group."""
        self._finding = self._weigh_if_complete()

    # -- from one phase to the next --------------------------------------------------------------

    def _finding_before_start(self) -> Finding | None:
        if not self.outcomes:
            return finding_of_free_check(self)
        published = self.weights == "published"
        try:
            self.checks.check_for_free()
            problem = self.checks.broken
        except BadData as error:  # there is no model of a group
            if published:
                raise
            problem = str(error)
        goals = [(y, g) for y in self.outcomes for g in self.cells]
        self.rows = self.history.rows_until(self.tau, self.question, outcomes=self.outcomes)
        if len(self.rows) < len(goals):
            dry = "the past data run dry"
            missing = describe_missing_rows(self.history, goals, self.tau, within_group=True)
            if published:
                return inconclusive_finding(self, dry, missing)
            problem = ": ".join([dry, *missing[:1]])
        return None if published or problem is None else self._fall_back(problem)

    def _choose_branches(self) -> Finding | None:
        for group in self.cells:
            fits, weights = self.model.of(group), self.weights
            zero, one = coarse = self._coarse_weights(group)
            parts = self._coarse_people.get(group)
            people = Labelled(*map(np.concatenate, zip(*parts, strict=True))) if parts else None
            branch = choose_branch(fits, coarse, self.constants, weights=weights, labelled=people)
            branch = replace(branch, features=min(branch.features, self.feature_cap))
            self.branches[group] = branch
            self.counts[group] = FeatureCounts(fits, one / zero)
            if branch.way == "fallback":
                return self._fall_back(f"group {group!r}: {branch.why}")
            if branch.way == "likelihood" and people is not None:
                self.checks.check_people(group, people)
                if (problem := self.checks.broken) is not None:
                    return self._fall_back(problem)
            if self._unseen_past is not None:  # past people whom the fit did not see are free
                rows = self._unseen_past.unseen(group)[: branch.features]
                self.counts[group].add(rows)
                self.free_features[group] = self._features_requested[group] = len(rows)
        price = sum(
            (branch.features - self.free_features[g])
            * (self.cells[g].shares[2] * self.costs.of(g).feature)
            for g, branch in self.branches.items()
        )
        if self.weights == "auto" and self._price_of_labels(self.fallback_question) < price:
            why = "labels are cheaper than the features that the weights would take"
            return self._fall_back(why)
        self.phase, self._first_ticket_of_phase = "features", self._next_number
        return self._weigh_if_complete()

    def _coarse_weights(self, group: str) -> tuple[float, float]:
        stopping_times = self._coarse_phase[group].stopping_times
        zero, one = (min(1.0, self.coarse_tau / stopping_times[y, group]) for y in (0, 1))
        return zero, one

    def _price_of_labels(self, question: Question) -> float:
        """Return what the fall-back would cost if the coarse weights are right."""
        by_rs, r = 0.0, dict.fromkeys(self.cells, 0.0)
        tau = self._requested_tau or paper_tau(question, len(self.cells))
        for group, cells in self.cells.items():
            p1, _, s = cells.shares
            if s > 0.0:
                r[group] = float(np.clip((self._coarse_weights(group)[1] - p1) / s, 0.0, 1.0))
                one = p1 + s * r[group]
                shares = [one if y else 1.0 - one for y in outcomes_to_estimate(question)]
                people = arrivals_in_turn(shares, tau)
                by_rs += people * s * self.costs.of(group).expected(r[group])
        if self._fallback_name == "rs":
            return by_rs
        work = LabelWork(self.history, question, self.costs)
        return work.pilot_cost(r) + min(
            work.for_verdict(v, r).cost for v in (Verdict.FAIR, Verdict.UNFAIR)
        )

    def _weigh_if_complete(self) -> Finding | None:
        if any(self.counts[g].size < branch.features for g, branch in self.branches.items()):
            return None
        if (why := self._approvals.contradiction()) is not None:
            return inconclusive_finding(self, why, (FAIR_SAMPLE,))
        found: dict[str, Weight] = {}
        for group, branch in self.branches.items():
            counts, by_map = self.counts[group], branch.way == "map"
            weight = counts.map_weight(branch.bias) if by_map else counts.likelihood_weight()
            found[group] = weight
            coarse = self._coarse_weights(group)
            self.checks.check_weight(group, counts, weight, coarse, self.coarse_tau)
            allowed = self.question.epsilon * min(weight.estimate, 1.0 - weight.estimate) / 12.0
            reached = self.constants.z * weight.standard_error
            capped = branch.features == self.feature_cap
            if not by_map and not capped and reached > 1.1 * allowed:
                return self._fall_back(
                    f"group {group!r}: the weight is known to within {reached:.2g} only, where "
                    f"{allowed:.2g} is needed"
                )
        problem = self.checks.broken
        if problem is not None and self.weights != "published":
            return self._fall_back(problem)
        return _finding_from_weights(self, found, problem)

    def _fall_back(self, why: str) -> Finding | None:
        self.phase, self._first_ticket_of_phase = "fallback", self._next_number
        self.fallback_reason = why
        asked = self.history, self.fallback_question, self.costs
        by_rs = self._fallback_name == "rs"
        self.label_audit = (
            RSAudit(*asked, tau=self._requested_tau) if by_rs else AdaptiveAudit(*asked)
        )
        found = self.label_audit.finding
        return None if found is None else self._finding_by_labels(found)

    def _finding_by_labels(self, found: Finding) -> Finding:
        """Return what the fall-back found as a finding of this audit."""
        reason = f"{found.reason} (not by features, because {self.fallback_reason})"
        return self.with_spending(replace(found, question=self.question, reason=reason))


# -- the verdict from weights ---------------------------------------------------------------------


def _finding_from_weights(
    audit: ExpAudit, weights: Mapping[str, Weight], problem: str | None
) -> Finding:
    """Return the verdict; ``problem`` is why the model should not have been believed.

    A rate above 1 is an error of estimation, and is taken for 1 except in Algorithm 2 as printed.
    """
    question, constants, found = audit.question, audit.constants, list(weights.values())
    p_hat = np.array([[audit.tau / audit.rows[y, g] for g in weights] for y in audit.outcomes])
    q = np.array([weight.estimate for weight in found])
    q_hat = np.maximum([q if y else 1.0 - q for y in audit.outcomes], 1e-12)
    # how far off counts and weights may be, relative to them: the proof's, or what caps leave
    past = question.epsilon / 12.0 * np.sqrt(constants.tau / audit.tau)
    chance = constants.z * np.array([max(w.standard_error, 1.0 / w.size) for w in found])
    bias = np.array([audit.branches[group].error for group in weights])
    online = np.maximum(question.epsilon / 12.0, (bias + chance) / q_hat)
    rate, most = p_hat / q_hat, np.inf if audit.weights == "published" else 1.0
    low = np.minimum(rate * max(1.0 - past, 0.0) / (1.0 + online), 1.0)
    high = np.minimum(rate * (1.0 + past) / np.maximum(1.0 - online, 1e-12), 1.0)
    finding = finding_from_rates(audit, p_hat, q_hat, np.minimum(rate, most), low, high)
    ways = ", ".join(f"{g}: {b.way}" for g, b in audit.branches.items())
    headline = "if the model holds, " if problem is None else f"although {problem}: "
    return replace(
        finding,
        reason=f"{headline}{finding.reason} (weights from features, {ways})",
        guaranteed=False,
        assumptions=_assumptions(audit),
        warnings=() if problem is None else (problem,),
    )


def _assumptions(audit: ExpAudit) -> tuple[str, ...]:
    """Return what the answer rests on, one line each."""
    fits = [fit for pair in audit.model.fits.values() for fit in pair]
    families = " or ".join(dict.fromkeys(fit.family.name for fit in fits))
    lines = [
        "everybody comes from one population, past and present, independently",
        f"the features of each outcome in each group follow the {families} family, also where "
        "nobody was approved",
    ]
    lines += [
        f"group {group!r}: the decision-maker, who could not be asked, follows {rule}"
        for group, rule in audit.model.rules.items()
    ] or ["'accepts' is the decision-maker that was used"]
    lines += [
        f"group {group!r}: {branch.way} weights from features: {branch.why}"
        for group, branch in audit.branches.items()
    ]
    if any(branch.way == "likelihood" for branch in audit.branches.values()):
        lines.append("normal approximation of the error of estimated laws and weights")
    if free := sum(audit.free_features.values()):
        lines.append(f"the features of {free:,} past people whom the fit did not see were free")
    by_labels = audit._price_of_labels(audit.question)
    lines.append(
        "the verdict holds if the model does, and is not guaranteed: it cost "
        f"{audit.cost:,.10g}; a guaranteed one by labels would cost about {by_labels:,.4g}"
    )
    if audit.weights == "published":
        lines.append("separation was not tested: MAP counts are biased where laws overlap")
    lines += [f"self-check: {check}" for check in audit.checks.made]
    own = audit.tau < audit.constants.tau or audit.coarse_tau < audit.constants.coarse_tau
    if own or any(b.features == audit.feature_cap for b in audit.branches.values()):
        lines.append(
            "thresholds below the proof's were given: the verdict has no proven error probability"
        )
    return tuple(lines)
