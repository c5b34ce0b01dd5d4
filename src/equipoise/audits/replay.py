"""Replay of a log: bring an adaptive audit to where the audit that wrote the log was.

Examining the evidence is what makes an audit slow, and a live audit does it after every answer. A
replay need not, for two reasons:

* The audit that wrote the log asked for labels until its last request. So no answer before that
  request decided, and the evidence is examined only where a plan or a check is due.
* An answer never lowers the evidence. So after the last request a batch of answers is recorded at
  once. If all of them together do not decide, none of them did. If they do decide, they are taken
  back and applied one by one, so that the audit ends at the same answer as the first time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from equipoise.audits.base import Step
from equipoise.evidence.request_log import PENDING
from equipoise.protocol import Want

if TYPE_CHECKING:
    from equipoise.audits.adaptive import AdaptiveAudit


class Replayer:
    """Takes an adaptive audit through a log, batch by batch.

    A batch is a run of steps that are applied together. It ends where the live audit made a plan or
    a check, at the last request, and wherever the caller wants to stop. A correction, and a person
    of whom nothing was wanted, are applied alone. So is every step where scores assist, because
    there each person changes the sampling of the next one.

    It uses methods of the audit that nobody else should call: they change parts of its state.

    Parameters
    ----------
    audit
        The audit to change. It may have taken in earlier steps.
    log
        The steps to apply, in the order in which they happened.
    """

    def __init__(self, audit: AdaptiveAudit, log: Sequence[Step]) -> None:
        self._audit = audit
        self._log = log
        self._last_request = 0  # position of the last request for a label, counted from 1
        for position, step in enumerate(log, start=1):
            if step.kind == "asked" and step.ticket.want is not Want.NOTHING:
                self._last_request = position

    def replay(self, stops: Collection[int]) -> Iterator[int]:
        """Apply the log; yield the number of steps applied, after each number of ``stops``."""
        batch: list[Step] = []
        # Counted down here, because the audit does not know of the steps in the batch yet.
        labels_until_due = self._audit._labels_until_due()
        for position, step in enumerate(self._log, start=1):
            if step.kind == "corrected" or step.ticket.want is Want.NOTHING:
                # Steps before this one have to be in the audit first.
                self._apply_batch(batch, position)
                self._apply_alone(step, position, is_stop=position in stops)
                is_batch_done = True
            else:
                batch.append(step)
                labels_until_due -= step.kind == "told"
                # The live audit makes plans and checks after answers, never after a request.
                is_due = labels_until_due <= 0.0 and step.kind != "asked"
                is_batch_done = is_due or position in stops or self._must_end_batch(position)
                if is_batch_done:
                    self._apply_batch(batch, position)
            if is_batch_done:
                batch = []
                labels_until_due = self._audit._labels_until_due()
            if position in stops:
                yield position

    def _must_end_batch(self, position: int) -> bool:
        is_last = position in (self._last_request, len(self._log))
        return is_last or self._audit.assist is not None

    def _apply_alone(self, step: Step, position: int, *, is_stop: bool) -> None:
        audit = self._audit
        if step.kind == "corrected":
            is_after_last_request = position > self._last_request
            next_steps = self._log[position : position + 1]
            # Each correction takes back what the one before may have decided.
            more_follow = any(following.kind == "corrected" for following in next_steps)
            audit._apply_correction(
                step,
                examine=is_after_last_request,
                more_follow=more_follow and is_after_last_request and not is_stop,
            )
            return
        # Nothing was wanted of this person. To choose that may have closed a group or ended the
        # audit, for lack of money, so the audit chooses again.
        audit._choose_affordable_want(step.ticket.group, step.ticket.decision)
        audit._apply(step)

    def _apply_batch(self, batch: Sequence[Step], position: int) -> None:
        if not batch:
            return
        audit = self._audit
        is_after_last_request = position > self._last_request
        # In these cases there is no answer to look for: none of them decided, there is only one,
        # or the audit has ended already.
        if not is_after_last_request or len(batch) == 1 or audit._finding is not None:
            audit._apply_batch(batch, examine=is_after_last_request)
        elif self._decides(batch):
            for step in batch:
                audit._apply(step)
        else:  # they are recorded already, and did not decide
            for step in batch:
                audit._record_spending(step)
            audit._follow_answers(examine=True)

    def _decides(self, answers: Sequence[Step]) -> bool:
        """Record answers, none of them a request; if they decide, take them back and return True.

        Otherwise they stay recorded.
        """
        audit = self._audit
        # A damaged log is refused before the evidence changes. Otherwise the account does this.
        for step in answers:
            audit._require_open(step.ticket)
        audit._record_answers(answers)
        evidence = audit._require_evidence()
        # Without a plan: if these answers are taken back, a plan made by them would stay.
        if evidence.advance(replan=False) is None:
            return False
        numbers = audit._numbers_of(answers)
        evidence.record(numbers, np.full(len(numbers), PENDING))
        return True
