"""Evidence for both verdicts, request by request.

One object holds all that an audit's statistics are, in three parts that may be read at any time:

- the **log** has what was asked and told (:mod:`equipoise.evidence.request_log`),
- the **refutation** which null cells still stand (:mod:`equipoise.evidence.refutation`),
- the **plan** whom to label next (:mod:`equipoise.evidence.label_plan`).

Where each group's r lies follows from the log (:mod:`equipoise.evidence.intervals`). Whatever
changes the log goes through the methods here, which keep the other two in step with it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from equipoise._arrays import Array, Flags, Ints
from equipoise.evidence.epochs import BetScales
from equipoise.evidence.label_plan import LabelPlan
from equipoise.evidence.observation import LABEL
from equipoise.evidence.refutation import Refutation
from equipoise.evidence.request_log import RequestLog
from equipoise.evidence.row_answers import RowAnswers
from equipoise.evidence.wrong_answers import WrongAnswers
from equipoise.question import Verdict


class Evidence:
    """Evidence for both verdicts, and the plan of whom to label next.

    Parameters
    ----------
    wrong
        The wrong answers to refute.
    prices
        What a request costs, and what a label of 0 costs besides, shape (2, groups).
    reachable
        Which groups have denied people to label.
    rescale_bets
        Returns at every plan how bets on observations of each group are sized from now on, None
        for one whose observations are labels. Left out if all of them are.

    Attributes
    ----------
    log, refutation, plan
        What was asked and told, what that refutes, and whom to label next.
    verdict
        The answer, None as long as neither wrong answer is refuted.
    """

    def __init__(
        self,
        wrong: WrongAnswers | RowAnswers,
        prices: Array,
        reachable: Flags,
        rescale_bets: Callable[[], BetScales] | None = None,
    ) -> None:
        self._rescale_bets = rescale_bets
        self.log = RequestLog(len(reachable), rescales_bets=rescale_bets is not None)
        self.refutation = Refutation(wrong, self.log)
        self.plan = LabelPlan(self.log, self.refutation, prices, reachable)
        self.verdict: Verdict | None = None

    def request(self, groups: Ints, ends: Array | None = None) -> Ints:
        """Record that people are observed; return the requests' numbers.

        ``ends`` has Z of each for the outcomes 0 and 1, shape (n, 2); labels if left out. Whoever
        is not asked for the label is settled at once, and counts at the next look.
        """
        return self.log.request(groups, ends)

    def record(self, numbers: Ints, outcomes: Ints) -> None:
        """Take in outcomes of different requests, the first or other ones.

        UNKNOWN is one that will never be known. What follows from them is left to :meth:`advance`.
        """
        change = self.log.record(numbers, outcomes)
        self.refutation.mark_stale(change.first_epoch)
        # First outcomes only raise evidence, so what they refuted stays refuted. A replaced one may
        # lower it.
        if change.replaces_outcomes:
            self._forget()

    def record_block(self, groups: Ints, outcomes: Ints, ends: Array | None = None) -> int:
        """Request observations that are told at once; return how many until a verdict, or all.

        It equals request, record and advance one by one: the evidence is looked at after each
        label, by cumulative counts. At most ``plan.labels_until_plan`` label equivalents at a time.
        """
        labels_left = self.plan.labels_until_plan
        if self.log.label_equivalents[groups[:-1]].sum() >= labels_left:
            raise ValueError(f"{len(groups)} labels; at most {labels_left:g} now")
        n_recorded = 0
        while n_recorded < len(groups) and self.verdict is None:
            # Observations count by epoch, so a block is recorded epoch by epoch.
            part = slice(n_recorded, n_recorded + self.log.left_in_epoch())
            ends_of_part = None if ends is None else ends[part]
            n_recorded += self._record_part(groups[part], outcomes[part], ends_of_part)
        return n_recorded

    def _record_part(self, groups: Ints, outcomes: Ints, ends: Array | None) -> int:
        """Record observations of one epoch up to the one that decides; return how many."""
        z_of_zero, z_of_one = np.broadcast_to(LABEL if ends is None else ends, (len(groups), 2)).T
        path = self.log.count_path(groups, outcomes, np.where(outcomes == 1, z_of_one, z_of_zero))
        asked_places = np.flatnonzero(z_of_zero != z_of_one)
        # The path begins with a look at what was there before these people.
        # Only after labels is the evidence looked at: who is not asked is settled at once.
        first, self.verdict = self.refutation.first_verdict(path.select(1 + asked_places))
        n_needed = len(groups)
        if self.verdict is not None:
            n_needed = int(asked_places[first]) + 1
            asked_places = asked_places[: first + 1]
        numbers = self.request(groups[:n_needed], None if ends is None else ends[:n_needed])
        self.record(numbers[asked_places], outcomes[asked_places])
        if len(asked_places) and asked_places[-1] == n_needed - 1:  # plans change after labels
            self.replan_if_due()
        return n_needed

    def advance(self, *, replan: bool = True) -> Verdict | None:
        """Look at the evidence of what is recorded; plan anew where enough was told since."""
        if self.verdict is None:
            _, self.verdict = self.refutation.first_verdict(self.log.current_counts())
        if replan:
            self.replan_if_due()
        return self.verdict

    def replan_if_due(self) -> None:
        """End the epoch and divide the labels to come anew, if enough was told since the last plan.

        Where scores assist, bets are sized anew as well: from what was told before the new epoch.
        """
        if self.verdict is None and self.plan.is_due():
            rescale_bets = self._rescale_bets
            self.log.begin_epoch(self.log.bet_scales if rescale_bets is None else rescale_bets())
            self.plan.renew()

    def set_random_accepts(self, counts: Array) -> None:
        """Put a test programme's labels in the place of those of an earlier look at its file.

        Per group those that are 0, 1 and unknown. Cells, weights and bets stay those of the first
        look. What follows is left to :meth:`advance`.
        """
        self.log.set_random_accepts(counts)
        self._forget()

    def _forget(self) -> None:
        """Forget what followed from an outcome that is no longer so."""
        self.verdict = None
        self.refutation.restart()
