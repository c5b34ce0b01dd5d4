"""Exp-Audit (paper, Algorithm 2): count outcomes by features, where features tell them apart.

The audit has two phases. In the *coarse* phase people are labelled until the weights of the two
outcomes are known to within 10% in every group. In the *feature* phase only features are asked for,
and the fitted laws turn them into exact weights. Where the laws cannot do that the audit falls back
to labels: a third phase, in which another audit decides.
"""

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
    finding_of_free_check,
    inconclusive_finding,
    outcomes_to_estimate,
    paper_tau,
    parse_count,
)
from equipoise.audits.exp_finding import finding_from_weights
from equipoise.audits.label_work import LabelWork
from equipoise.audits.rs_audit import RSAudit
from equipoise.audits.tau_audit import Online
from equipoise.display import format_number
from equipoise.errors import BadData, InvalidInput, UnknownName, require_kind
from equipoise.finding import Finding
from equipoise.history.past import Goal, Past
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
from equipoise.mixture.model_checks import LawSeparation, ModelChecks, measure_separation
from equipoise.mixture.trunc_est import StructuralConstants
from equipoise.protocol import Ticket, Want
from equipoise.question import Costs, Question, Verdict, require_question_and_costs

WEIGHTS = ("auto", "map", "likelihood", "published")
FALLBACKS = ("rs", "adaptive")
SWITCHES = ("self_checks", "separation")


class ExpAudit(Audit):
    """Label few people and read the features of many, which give the weights of the outcomes.

    A model of past approved people's features says how the features of each outcome are
    distributed in each group: the laws. Labels give coarse weights of the outcomes (within 10%).
    With the laws, the features of many people give exact ones. UNFAIR if the largest estimated
    difference is above ``gamma + epsilon/2``, else FAIR.

    A verdict by features holds *if the model holds*, so it is never guaranteed: self-checks can
    contradict a model but cannot prove one. A verdict by labels is guaranteed. The finding has the
    cost of both.

    Algorithm 2 line by line: ``constants`` (line 1), ``model`` (4), ``_learn_label`` and
    ``_finding_before_start`` (5), ``_coarse_weights`` (6), ``_choose_branch`` (7),
    ``_learn_features`` and ``_weigh`` (8), :mod:`equipoise.audits.exp_finding` (9, 10).

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
        ending, features and labels. "published": Algorithm 2 to the letter, where no test changes
        the course, see :meth:`published`.
    fallback
        Who takes over by labels: "rs" (the paper's) or "adaptive".
    switch
        Which rule decides between features and labels. "self_checks": the tests above.
        "separation": the remark on the paper's Assumption 2. Once the laws and the coarse weights
        are known (Algorithm 2, lines 2 to 7), and before features are bought, condition (1) is
        evaluated with them in every group. Where it holds, the audit goes on. Where it does not,
        the audit continues as RS-Audit. With ``weights="auto"`` nothing else decides, and the
        weights are MAP counts. Other ``weights`` keep their own tests, after this one.
    constants
        L, beta, kappa and lambda of condition (1), for ``switch="separation"``. If they are left
        out, those that the fits support (:func:`equipoise.mixture.check_assumptions`).
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
        switch: str = "self_checks",
        constants: StructuralConstants | None = None,
        tau: int | None = None,
        coarse_tau: int | None = None,
        features: int | None = None,
        budget: float | None = None,
    ) -> None:
        _require_audit_arguments(history, question)
        if weights not in WEIGHTS:
            raise UnknownName("weights", weights, WEIGHTS)
        if fallback not in FALLBACKS:
            raise UnknownName("fallback", fallback, FALLBACKS)
        _require_switch(switch, fallback, constants)
        self.outcomes = outcomes_to_estimate(question, by_features=True)
        super().__init__(history, question, costs, budget=budget)
        if model is None and history.model is None:
            raise InvalidInput(
                "'model' is needed: this history has no features; fit one to features of past "
                "people with equipoise.mixture.PastFeatures(...).model"
            )
        self.model: MixtureModel = history.model if model is None else model
        require_kind("model", self.model, MixtureModel, "a MixtureModel")
        self.weights = weights
        self.switch = switch
        self.structural_constants = constants
        self.separations: dict[str, LawSeparation] = {}  # by group, with switch="separation"
        # Where separation alone decides, and in Algorithm 2 as printed, self-checks only warn.
        self._self_checks_decide = weights != "published" and not self._separation_decides_all
        self._unseen_past: PastFeatures | None = None  # past people whom the fit did not see
        if model is None and weights != "published":
            self._unseen_past = history.features
        # By features and by labels: where both are possible, each may spend half of delta.
        self._has_two_endings = weights != "published" or switch == "separation"
        # Which ending comes follows from the data, so the levels of both have to add up.
        level = exp_level(question) if self._has_two_endings else question.strictest_level
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
        self._first_ticket_of_phase = 0
        self._fallback_name = fallback
        self.label_audit: Audit | None = None
        # Online(tau', y, a) for y = 0, then y = 1, in each group.
        self._coarse_phase = {
            group: Online(self.coarse_tau, [[(0, group)], [(1, group)]]) for group in self.cells
        }
        # The people behind the coarse weights, of groups where all features came with the labels.
        self._coarse_people: dict[str, list[Labelled]] = {group: [] for group in self.cells}
        self.feature_counts: dict[str, FeatureCounts] = {}
        self._features_requested = dict.fromkeys(self.cells, 0)  # approved people's included
        self.past_stopping_times: dict[Goal, int] = {}  # N = Past(D, tau, y, a)
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
        """Return Algorithm 2 to the letter: TruncEst as printed, no test changes its course.

        ``TruncEst(D_ya, f, epsilon/(2 beta), delta/(14K), c, Theta)`` gives the laws, with the
        theorem's ``n``, ``m`` and ``eta`` or your own; ``model=`` in their place takes laws that
        are there already. R has ``log(12K/delta)``. Features are bought as they come, estimates
        are not clipped, and people are counted whatever share of them was denied. Self-checks of
        the model appear as warnings of the finding.

        The audit departs from the printed algorithm only where that has no answer, and then ends
        INCONCLUSIVE: an estimated rate has an empty denominator (no feature vector was assigned
        to an outcome, so ``q_hat`` is 0), or ``Past(D, tau, y, a)`` runs out of rows.

        ``switch="separation"`` adds the remark on Assumption 2: the printed algorithm if condition
        (1) holds for the estimates, else RS-Audit. Each of these two endings has half of delta.

        Parameters
        ----------
        constants
            ``c = (L, beta, kappa, alpha)`` and lambda; see
            :func:`equipoise.mixture.check_assumptions` for what a fit supports.
        options
            ``model``, ``switch``, ``tau``, ``coarse_tau``, ``features``, ``budget``.
        """
        _require_audit_arguments(history, question)
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
        if options.get("switch") == "separation":
            options["constants"] = constants
        return cls(history, question, costs, weights="published", **options)

    # -- the protocol ----------------------------------------------------------------------------

    def tell(
        self, ticket: Ticket, outcome: object = None, features: Features | None = None
    ) -> None:
        """Record what the ticket wanted. Features must be a vector that the model's family accepts.

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
        return max(self._worst_cost(group, 0, want) for group in self.cells)

    def _learn(self, answer: Step) -> Finding | None:
        ticket = answer.ticket
        is_of_earlier_phase = ticket.number < self._first_ticket_of_phase
        if self.label_audit is not None and not is_of_earlier_phase:
            return self._learn_in_fallback(self.label_audit, answer)
        contradiction = self._approvals.count_person(ticket.group, ticket.decision)
        if contradiction is not None and self.weights != "published":
            return inconclusive_finding(self, contradiction, (FAIR_SAMPLE,))
        if is_of_earlier_phase:  # asked for before it was known that no more was needed
            return None
        if self.phase == "coarse":
            return self._learn_label(answer)
        return self._learn_features(answer)

    def _learn_in_fallback(self, label_audit: Audit, answer: Step) -> Finding | None:
        if answer.outcome is None:
            label_audit.withdraw(answer.ticket)
        else:
            label_audit.tell(answer.ticket, answer.outcome)
        finding = label_audit.finding
        return None if finding is None else self._finding_by_labels(finding)

    def _learn_label(self, answer: Step) -> Finding | None:
        """Count a label for the coarse weights (Algorithm 2, line 5)."""
        group = answer.ticket.group
        if self._coarse_phase[group].is_done:
            return None
        if answer.outcome is None:
            return self._conclude(f"the outcome of person {answer.ticket} is missing")
        self._coarse_phase[group].count_person(group, answer.outcome)
        # Only people all of whom have features are a fair sample, so one without ends the list.
        if answer.features is None:
            self._coarse_people.pop(group, None)
        elif group in self._coarse_people:
            person = Labelled(answer.features[None], np.array([answer.outcome]))
            self._coarse_people[group].append(person)
        is_complete = all(online.is_done for online in self._coarse_phase.values())
        return self._end_coarse_phase() if is_complete else None

    def _learn_features(self, answer: Step) -> Finding | None:
        """Count a person's features for the weights (Algorithm 2, line 8)."""
        # To leave the person out would bias the weight: who lacks features may differ.
        if answer.features is None:
            return self._conclude(f"the features of person {answer.ticket} are missing")
        self.feature_counts[answer.ticket.group].add(answer.features)
        return self._weigh_if_complete()

    def _conclude(self, why: str) -> Finding:
        if self.label_audit is not None:
            finding = self.label_audit.so_far("nobody else is to come")
            return self._finding_by_labels(replace(finding, reason=f"{why}: {finding.reason}"))
        if self.phase == "coarse":
            missing = ("labels for the coarse weights, then features",)
            return inconclusive_finding(self, why, missing)
        lines: list[str] = []
        for group, branch in self.branches.items():
            n_missing = branch.features - self.feature_counts[group].size
            if n_missing:
                lines.append(f"the features of {n_missing:,} more people of group {group!r}")
        return inconclusive_finding(self, why, tuple(lines))

    # -- many people at once, for simulations ----------------------------------------------------

    def finish_coarse_phase(
        self, stopping_times: Mapping[str, tuple[int, int]], labelled: Mapping[str, Labelled] = {}
    ) -> None:
        """Take in finished coarse counts: people until the last of outcome 0 and 1, per group."""
        for group, (until_zeros, until_ones) in stopping_times.items():
            self._coarse_phase[group].finish({(0, group): until_zeros, (1, group): until_ones})
        self._coarse_people = {group: [people] for group, people in labelled.items()}
        self._finding = self._end_coarse_phase()

    def finish_feature_phase(self) -> None:
        """Weigh the features that were added to ``feature_counts`` of every group."""
        self._finding = self._weigh_if_complete()

    # -- from one phase to the next --------------------------------------------------------------

    def _finding_before_start(self) -> Finding | None:
        if not self.outcomes:
            return finding_of_free_check(self)
        is_published = self.weights == "published"
        try:
            self.checks.check_for_free()
        except BadData as error:  # there is no model of a group
            if is_published:
                raise
            return self._fall_back(str(error))
        goals = [(outcome, group) for outcome in self.outcomes for group in self.cells]
        self.past_stopping_times = self.history.rows_until(
            self.tau, self.question, outcomes=self.outcomes
        )
        if len(self.past_stopping_times) < len(goals):
            too_short = "the past data run dry"
            missing = describe_missing_rows(self.history, goals, self.tau, within_group=True)
            if is_published:
                return inconclusive_finding(self, too_short, missing)
            return self._fall_back(": ".join([too_short, *missing[:1]]))
        problem = self.checks.broken
        if problem is None or not self._self_checks_decide:
            return None
        return self._fall_back(problem)

    def _end_coarse_phase(self) -> Finding | None:
        """Choose how each group's weights are found, and whether features are worth their price."""
        if self.switch == "separation":
            violation = self._test_separation()
            if violation is not None:
                return self._fall_back(violation)
        for group in self.cells:
            problem = self._choose_branch(group)
            if problem is not None:
                return self._fall_back(problem)
        # Both endings keep their level whichever is chosen, so prices may choose.
        if self.weights == "auto" and self.switch != "separation":
            price_of_labels = self._price_of_labels(self.fallback_question)
            if price_of_labels < self._price_of_features():
                why = "labels are cheaper than the features that the weights would take"
                return self._fall_back(why)
        self.phase = "features"
        self._first_ticket_of_phase = self._next_number
        # At once, because free features of past people may be all that is needed.
        return self._weigh_if_complete()

    def _test_separation(self) -> str | None:
        """Evaluate condition (1) in every group; return where it is violated, None if nowhere."""
        violations = []
        for group in self.cells:
            weight_zero, weight_one = self._coarse_weights(group)
            separation = measure_separation(
                self.model,
                group,
                epsilon=self.question.epsilon,
                q=weight_one / (weight_zero + weight_one),
                constants=self.structural_constants,
            )
            self.separations[group] = separation
            if not separation.is_met:
                violations.append(f"group {group!r}: {separation}")
        if not violations:
            return None
        return "the separation condition is violated: " + "; ".join(violations)

    @property
    def _separation_decides_all(self) -> bool:
        """Whether condition (1) is the only test: MAP counts where it holds, else labels."""
        return self.switch == "separation" and self.weights == "auto"

    def _choose_branch(self, group: str) -> str | None:
        """Choose how a group's weight is found; return why features cannot find it, or None."""
        fits = self.model.of(group)
        coarse_weights = self._coarse_weights(group)
        people = self._labelled_people(group)
        branch = choose_branch(
            fits,
            coarse_weights,
            self.constants,
            weights="separated" if self._separation_decides_all else self.weights,
            labelled=people,
        )
        branch = replace(branch, features=min(branch.features, self.feature_cap))
        self.branches[group] = branch
        # The MAP oracle M_a of Algorithm 2, line 7, has the coarse odds and the fitted laws.
        weight_zero, weight_one = coarse_weights
        self.feature_counts[group] = FeatureCounts(fits, weight_one / weight_zero)
        if branch.way == "fallback":
            return f"group {group!r}: {branch.why}"
        if branch.way == "likelihood" and people is not None:
            self.checks.check_people(group, people)
            if self.checks.broken is not None:
                return self.checks.broken
        if self._unseen_past is not None:  # past people whom the fit did not see are free
            rows = self._unseen_past.unseen(group)[: branch.features]
            self.feature_counts[group].add(rows)
            self.free_features[group] = len(rows)
            self._features_requested[group] = len(rows)
        return None

    def _labelled_people(self, group: str) -> Labelled | None:
        """Return the people behind a group's coarse weights; None if features are missing."""
        parts = self._coarse_people.get(group)
        if not parts:
            return None
        features = np.concatenate([people.features for people in parts])
        return Labelled(features, np.concatenate([people.outcome for people in parts]))

    def _coarse_weights(self, group: str) -> tuple[float, float]:
        """Return ``tau' / N'`` of the outcomes 0 and 1 (Algorithm 2, line 6)."""
        stopping_times = self._coarse_phase[group].stopping_times
        weight_zero = min(1.0, self.coarse_tau / stopping_times[0, group])
        weight_one = min(1.0, self.coarse_tau / stopping_times[1, group])
        return weight_zero, weight_one

    def _price_of_features(self) -> float:
        """Return what the features that are not free cost on average; approved people's are."""
        price = 0.0
        for group, branch in self.branches.items():
            denied_share = self.cells[group].shares[2]
            n_bought = branch.features - self.free_features[group]
            price += n_bought * (denied_share * self.costs.of(group).feature)
        return price

    def _price_of_labels(self, question: Question) -> float:
        """Return what the fall-back would cost if the coarse weights are right."""
        r = {group: self._denied_success_rate(group) for group in self.cells}
        if self._fallback_name == "rs":
            return self._price_of_rs_audit(question, r)
        work = LabelWork(self.history, question, self.costs)
        verdict_costs = [work.for_verdict(v, r).cost for v in (Verdict.FAIR, Verdict.UNFAIR)]
        return work.pilot_cost(r) + min(verdict_costs)

    def _denied_success_rate(self, group: str) -> float:
        """Return a group's r as the coarse weights have it; 0 if nobody is denied."""
        approved_good, _, denied = self.cells[group].shares
        if denied <= 0.0:
            return 0.0
        _, weight_one = self._coarse_weights(group)
        return float(np.clip((weight_one - approved_good) / denied, 0.0, 1.0))

    def _price_of_rs_audit(self, question: Question, r: Mapping[str, float]) -> float:
        tau = self._requested_tau or paper_tau(question, len(self.cells))
        price = 0.0
        for group, cells in self.cells.items():
            approved_good, _, denied = cells.shares
            # RS-Audit labels everybody of a group in turn, and the denied among them cost money.
            if denied > 0.0:
                good = approved_good + denied * r[group]
                shares = [good if y else 1.0 - good for y in outcomes_to_estimate(question)]
                n_denied = arrivals_in_turn(shares, tau) * denied
                price += n_denied * self.costs.of(group).expected(r[group])
        return price

    def _weigh_if_complete(self) -> Finding | None:
        """Return the verdict, or go over to labels, once every group's features are there."""
        for group, branch in self.branches.items():
            if self.feature_counts[group].size < branch.features:
                return None
        # The sample is tested once more before a verdict, at whatever count it has come to.
        contradiction = self._approvals.contradiction()
        if contradiction is not None and self.weights != "published":
            return inconclusive_finding(self, contradiction, (FAIR_SAMPLE,))
        weights: dict[str, Weight] = {}
        for group, branch in self.branches.items():
            weights[group] = self._weigh(group, branch)
            too_vague = self._describe_vague_weight(branch, weights[group])
            if too_vague is not None:
                return self._fall_back(f"group {group!r}: {too_vague}")
        problem = self.checks.broken
        if problem is not None and self._self_checks_decide:
            return self._fall_back(problem)
        return finding_from_weights(self, weights, problem)

    def _weigh(self, group: str, branch: Branch) -> Weight:
        """Return the share of outcome 1 in a group by its features, which the model must fit."""
        counts = self.feature_counts[group]
        if branch.way == "map":
            weight = counts.map_weight(branch.bias)
        else:
            weight = counts.likelihood_weight()
        coarse_weights = self._coarse_weights(group)
        self.checks.check_weight(group, counts, weight, coarse_weights, self.coarse_tau)
        return weight

    def _describe_vague_weight(self, branch: Branch, weight: Weight) -> str | None:
        """Return why a weight is not exact enough for the proof, or None if it is."""
        is_capped = branch.features == self.feature_cap
        # With a cap of the user's own the finding says that no error probability is proven.
        if branch.way == "map" or is_capped:
            return None
        allowed = self.question.epsilon * min(weight.estimate, 1.0 - weight.estimate) / 12.0
        reached = self.constants.z * weight.standard_error
        if reached <= 1.1 * allowed:
            return None
        return (
            f"the weight is known to within {format_number(reached, 2)} only, where "
            f"{format_number(allowed, 2)} is needed"
        )

    def _fall_back(self, why: str) -> Finding | None:
        """Let labels decide from now on; return a finding if they are not needed either."""
        self.phase = "fallback"
        self._first_ticket_of_phase = self._next_number
        self.fallback_reason = why
        if self._fallback_name == "rs":
            self.label_audit = RSAudit(
                self.history, self.fallback_question, self.costs, tau=self._requested_tau
            )
        else:
            self.label_audit = AdaptiveAudit(self.history, self.fallback_question, self.costs)
        finding = self.label_audit.finding
        return None if finding is None else self._finding_by_labels(finding)

    def _finding_by_labels(self, finding: Finding) -> Finding:
        """Return what the fall-back found as a finding of this audit."""
        reason = f"{finding.reason} (not by features, because {self.fallback_reason})"
        by_labels = replace(
            finding,
            question=self.question,
            reason=reason,
            error_level=self.error_level_of_all_endings,
            assumptions=(*finding.assumptions, self.switch_rule),
        )
        return self.with_spending(by_labels)

    @property
    def error_level_of_all_endings(self) -> float | None:
        """The error probability of a verdict over all ways of ending; None for the question's.

        Features and labels have one half of the level each. RS-Audit with its printed threshold,
        on finite historical data, has two endings of its own, so there are three halves.
        """
        if not self._has_two_endings or self._fallback_name != "rs" or self.history.exact:
            return None
        return 3.0 * exp_level(self.question)

    @property
    def switch_rule(self) -> str:
        """The rule that decides between features and labels, as a finding shows it."""
        if self.switch == "self_checks":
            if self.weights == "published":
                return "features or labels: Algorithm 2 as printed always counts by features"
            return "features or labels: decided by Equipoise's self-checks of model and weights"
        rule = "features or labels: decided by the paper's separation condition (1)"
        measured = [f"group {group!r}: {text}" for group, text in self.separations.items()]
        return ", ".join([rule, *measured])

    def price_of_guaranteed_verdict(self) -> float:
        """Return what a verdict by labels would cost at the question's full error probability."""
        return self._price_of_labels(self.question)


def _require_audit_arguments(history: object, question: object) -> None:
    """Raise unless the first arguments are historical data and a question.

    Whoever knows scikit-learn may try ``ExpAudit(classifier, X, y)``; the message says how a
    classifier, features and outcomes are given.
    """
    if not isinstance(history, Past):
        raise InvalidInput(
            "'history' must be past decisions; got "
            f"{type(history).__name__}. ExpAudit takes (history, question, costs), not a "
            "classifier with X and y. With a classifier f, features X, groups, decisions and "
            "outcomes: history = History.from_predictions(outcome, decision, group); past = "
            "mixture.PastFeatures(X, group, decision, outcome, f, mixture.Gaussian()); "
            "ExpAudit(dataclasses.replace(history, model=past.model, features=past), question, "
            "costs)"
        )
    require_question_and_costs(question)


def _require_switch(switch: str, fallback: str, constants: object) -> None:
    """Raise unless the rule between features and labels, and what belongs to it, fit together."""
    if switch not in SWITCHES:
        raise UnknownName("switch", switch, SWITCHES)
    if constants is not None:
        require_kind("constants", constants, StructuralConstants, "StructuralConstants")
        if switch != "separation":
            raise InvalidInput("'constants' are used with switch='separation' only; add that")
    if switch == "separation" and fallback != "rs":
        raise InvalidInput(
            "switch='separation' continues as RS-Audit, as the paper says; leave out 'fallback'"
        )
