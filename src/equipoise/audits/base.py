"""The ask/tell protocol that every audit follows, and the bookkeeping all of them share.

An audit does no I/O and keeps no clock. People arrive; :meth:`Audit.ask` says what is wanted of
each; :meth:`Audit.tell` brings the answer, in any order and after any delay. Statistics follow
*request order*, so that outcomes that show early (defaults) are not counted before those that show
late (repayments): a label counts once every earlier request is settled. The adaptive audit need not
wait; there a pending label counts at its worst (:mod:`equipoise.evidence`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise.audits.scores import Assist, require_usable_score
from equipoise.audits.spending import Account, Spending
from equipoise.display import format_count
from equipoise.errors import (
    InvalidInput,
    ProtocolError,
    UnknownName,
    require_kind,
    require_non_negative,
)
from equipoise.finding import Finding, Interval
from equipoise.free_check import Check, check
from equipoise.history.coding import ValueReader
from equipoise.history.past import Past, require_past
from equipoise.protocol import ScoreRecord, Ticket, Want
from equipoise.question import Costs, Question, require_question_and_costs

Features = NDArray[np.float64]
RandomAcceptCounts = Mapping[str, Sequence[int]]
"""Labels of a test programme per group: good, bad and unknown outcomes."""
CorrectionCounts = Mapping[str, int] | None


class Step(NamedTuple):
    """What happened to a request; an audit's log is a list of steps.

    ``outcome`` is None if the request was withdrawn, or wanted features alone. ``corrected``
    replaces an outcome that was told, or gives one after all where the request was withdrawn.
    A step ``asked`` whose ticket wants nothing is somebody whose arrival ended the audit.
    """

    kind: Literal["asked", "told", "withdrawn", "corrected"]
    ticket: Ticket
    outcome: int | None = None
    features: Features | None = None
    cost: float | None = None


def apply_corrections(log: Sequence[Step]) -> list[Step]:
    """Return the log as it would be if every outcome had been told as it is known now."""
    corrected_outcomes = {
        step.ticket.number: step.outcome for step in log if step.kind == "corrected"
    }
    steps: list[Step] = []
    for step in log:
        number = step.ticket.number
        if step.kind in ("told", "withdrawn") and number in corrected_outcomes:
            steps.append(step._replace(kind="told", outcome=corrected_outcomes[number], cost=None))
        elif step.kind != "corrected":
            steps.append(step)
    return steps


class Audit(ABC):
    """Base of all audits: it keeps the order of answers and the money.

    A subclass decides what to ask (``_choose_want``), what follows from an answer (``_learn``) and
    how the audit ends when nobody else comes (``_conclude``).

    Parameters
    ----------
    history
        Past decisions.
    question, costs
        What is asked and what answers cost.
    budget
        The most that may be spent, or None. The worst case of a request is reserved when it is
        made, so requests never exceed the budget. A correction can, if the money was used again
        before it came (:attr:`overrun`).

    Examples
    --------
    >>> from equipoise.audits.rs_audit import RSAudit
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> audit = RSAudit(world.past(), Question(), Costs(), tau=5, budget=1.0)
    >>> ticket = audit.ask("A", 0)
    >>> audit.tell(ticket, 0)
    >>> audit.cost, audit.conclude().verdict.value
    (1.0, 'INCONCLUSIVE')
    """

    name: ClassVar[str]
    wants_approved: ClassVar[bool] = True
    """Whether approved people are wanted, and counted by outcome. If not, a simulation may leave
    them out, and their past outcomes may be unknown."""
    correctable: bool = False
    """Whether :meth:`correct` changes an answer in place; else a new audit restores the log."""
    assist: Assist | None = None
    """How scores decide whom to ask; None if they do not."""
    fallback_reason: str | None = None
    """Why an audit by features let labels decide; None if it did not, and for other audits."""
    _seed: int = 0  # where the audit's own draws start, if it has assist

    def __init__(
        self, history: Past, question: Question, costs: Costs, *, budget: float | None = None
    ) -> None:
        if budget is not None:
            require_non_negative("budget", budget)
        require_past(history)
        require_question_and_costs(question, costs)
        if history.cells.unknown and self.wants_approved:
            raise InvalidInput(
                f"the audit {self.name!r} counts approved people by their outcome, and those of "
                f"{format_count(history.cells.unknown)} are not known; the adaptive audit and "
                "'check' take such data, or cut them by date"
            )
        for group in costs.groups:
            if group not in history.cells:
                raise UnknownName("group in 'costs'", group, history.cells.groups)
        self.history = history
        self.question = question
        self.costs = costs
        self.budget = budget
        self.cells = history.cells
        self._values = ValueReader(history.cells, getattr(history, "coding", None))
        self._account = Account(costs, budget, history.cells)
        self._next_number = 0
        self._open_tickets: dict[int, Ticket] = {}  # requests without an answer
        # Requests that are not counted yet, in their order; None for those without an answer.
        self._answers_in_order: OrderedDict[int, Step | None] = OrderedDict()
        self.closed: frozenset[str] = frozenset()  # groups that the budget closed for good
        self._finding: Finding | None = None
        self._conclude_reason: str | None = None  # why nobody else was to come

    # -- the protocol ---------------------------------------------------------------------------

    def ask(
        self,
        group: object,
        decision: object,
        *,
        score: float | None = None,
        price: float | None = None,
        version: str = "",
        draw: float | None = None,
        number: int | None = None,
    ) -> Ticket:
        """Return what is wanted of the person who just arrived, and enter the request.

        Parameters
        ----------
        group
            The group's name. Where the past was read from a table, also as the table writes it,
            the values of several group columns as a tuple.
        decision
            1 or "approved", 0 or "denied"; or as the table of past decisions writes it.
        score, version
            What a model, of some version, predicts for this person: any number, in any unit,
            the higher or the lower the better. Audits with ``assist`` use it.
        price
            What this person's label costs if it is 0, instead of the audit's costs.
        draw
            A number in [0, 1) that the people who gave score and price could not foresee. The
            audit draws one itself if it is left out.
        number
            The ticket's number, where a ledger counts people itself; the next one if left out.
        """
        name = self._parse_group(group)
        decision_bit = self._parse_bit("decision", decision)
        require_usable_score(self.assist, score, price)
        if draw is not None and not 0.0 <= draw < 1.0:
            raise InvalidInput(f"'draw' must be in [0, 1); got {draw!r}")
        number = self._next_number if number is None else number
        # Before score and price are read: whether somebody is welcome may not follow from them
        # (guarantees, 3.16).
        want = self._choose_affordable_want(name, decision_bit)
        record = None
        if want is Want.LABEL and decision_bit == 0 and self.assist is not None:
            if draw is None:  # by the number, so that a replayed audit does not draw it again
                draw = np.random.default_rng([self._seed, number]).random()
            record = self._complete_score_record(
                name,
                ScoreRecord(
                    score=None if score is None else float(score),
                    version=version,
                    price=self.costs.of(name).label if price is None else float(price),
                    m=0.0,  # guess, chance and range stand until the group's rule is known
                    pi=1.0,
                    low=0.0,
                    high=1.0,
                    draw=float(draw),
                ),
            )
            want = Want.LABEL if record.asked else Want.SCORE_ONLY
        hold = self._worst_cost(name, decision_bit, want, record)
        ticket = Ticket(number, name, decision_bit, want, hold, record)
        self._apply(Step("asked", ticket))
        return ticket

    def tell(
        self, ticket: Ticket, outcome: object = None, features: Features | None = None
    ) -> None:
        """Enter what the ticket wanted: 1 or "good", 0 or "bad", or a word of the past's table.

        The number 1 is a good outcome even if the past's column wrote 1 for a bad one.
        Exp-Audit's tickets may want ``features`` in place of an outcome.

        Raises ProtocolError if the ticket has an answer already or is not of this audit.
        """
        self._require_open(ticket)
        if ticket.want is Want.LABEL:
            outcome = self._parse_bit("outcome", outcome)
        elif features is None or outcome is not None:
            raise InvalidInput(
                f"ticket {ticket} asked for 'features' and nothing else; got outcome={outcome!r}"
            )
        self._apply(Step("told", ticket, outcome, features))

    def withdraw(self, ticket: Ticket, *, cost: float | None = None) -> None:
        """Enter that the answer will never come: it stays unknown, which never helps a verdict.

        ``cost`` is what the request cost all the same, at most what was held for it; the feature
        price if left out.
        """
        self._require_open(ticket)
        self._apply(Step("withdrawn", ticket, cost=cost))

    def correct(self, ticket: Ticket, outcome: object) -> None:
        """Replace an outcome that was told, or bring one after the request was withdrawn.

        A good outcome that turns out bad costs its price after all. If the money was used for
        other people meanwhile, that is an :attr:`overrun` of the budget.
        """
        raise ProtocolError(
            f"a {self.name} audit cannot change the answer to ticket {ticket}; make a new audit "
            "and bring it the right answers"
        )

    def set_random_accepts(
        self,
        random_accepts: RandomAcceptCounts,
        corrected: CorrectionCounts = None,
        *,
        dry_run: bool = False,
    ) -> dict[str, list[int]]:
        """Count a later file of the test programme whose labels are in the past data.

        Return the counts of all groups; a ``dry_run`` counts nothing.
        """
        raise ProtocolError(
            f"a {self.name} audit counts no labels of a test programme; the adaptive audit does"
        )

    def restore(self, log: Sequence[Step]) -> None:
        """Apply the log of another audit of this kind, to be where that one is.

        What was wanted stands, whatever this audit would want now. Where answers cannot be
        corrected in place they count from the beginning as they are known now.
        """
        for _ in self.replay(log if self.correctable else apply_corrections(log)):
            pass

    def replay(self, log: Sequence[Step], stops: Collection[int] = ()) -> Iterator[int]:
        """Apply a log; yield the number of steps applied, after each number of ``stops``."""
        for n_applied, step in enumerate(log, start=1):
            if step.kind == "asked":
                self._next_number = step.ticket.number
                # What is wanted stands in the log. Choosing it again may end the audit, as it did.
                self._choose_affordable_want(step.ticket.group, step.ticket.decision)
            self._apply(step)
            if n_applied in stops:
                yield n_applied

    def conclude(self, why: str = "nobody else is to come") -> Finding:
        """End the audit, since no more people will come; return what the evidence supports."""
        if self._finding is None:
            self._conclude_reason = why
            self._finding = self._conclude(why)
        return self.so_far(why)

    def so_far(self, why: str = "the audit goes on") -> Finding:
        """Return what :meth:`conclude` would return now; the audit goes on."""
        return self.finding or self._conclude(why)

    def gap_so_far(self) -> Interval:
        """Return the range and the best guess of the gap that :meth:`so_far` states."""
        finding = self.so_far()
        return Interval(finding.lower, finding.upper, finding.estimate)

    @property
    def finding(self) -> Finding | None:
        """The answer, or None while the audit goes on."""
        return self._finding

    def __repr__(self) -> str:
        finding = self.finding
        answer = "no verdict yet" if finding is None else str(finding.verdict)
        return (
            f"<{type(self).__name__} of {self.question.metric.replace('_', ' ')} in "
            f"{len(self.cells)} groups: {answer}, {self.labels:,} labels, cost "
            f"{format_count(self.cost)}>"
        )

    # -- where it stands ------------------------------------------------------------------------

    @cached_property
    def known_for_free(self) -> Check:
        """What the past data establish without a label."""
        return check(self.history, self.question)

    @property
    def spending(self) -> dict[str, Spending]:
        """What has been requested of each group's denied people."""
        return self._account.by_group

    @property
    def cost(self) -> float:
        """Money spent so far; a pending label counts its feature cost only."""
        return self._account.cost

    @property
    def reserved(self) -> float:
        """Money held for the failures that pending labels may still turn out to be."""
        return self._account.reserved

    @property
    def available(self) -> float:
        """Money that may still be committed."""
        return max(self._account.unspent, 0.0)

    @property
    def overrun(self) -> float:
        """Money beyond the budget: corrections that came after the money was used again."""
        return max(-self._account.unspent, 0.0)

    @property
    def is_broke(self) -> bool:
        """Whether the budget forbids every further request."""
        return self.budget is not None and self._smallest_hold_needed() > self.available

    @property
    def labels(self) -> int:
        """Labels requested of denied people."""
        return sum(s.labels for s in self.spending.values())

    @property
    def features(self) -> int:
        """Denied people whose features or scores alone were wanted."""
        return sum(s.features for s in self.spending.values())

    @property
    def pending(self) -> int:
        """Requests without an answer."""
        return len(self._open_tickets)

    def with_spending(self, finding: Finding) -> Finding:
        """Return a finding with what was spent so far."""
        return replace(finding, cost=self.cost, labels=self.labels, features=self.features)

    # -- what a subclass provides ---------------------------------------------------------------

    @abstractmethod
    def _choose_want(self, group: str, decision: int) -> Want:
        """Decide what to ask of the person who arrived."""

    def _learn(self, answer: Step) -> Finding | None:
        """Learn from the next answer in request order; return the finding if it ends the audit."""
        raise NotImplementedError

    def _complete_score_record(self, group: str, record: ScoreRecord) -> ScoreRecord:
        """Return the record with the chance of asking this person; audits with assist have one."""
        raise NotImplementedError

    @abstractmethod
    def _conclude(self, why: str) -> Finding:
        """Return the finding when no further label will be requested."""

    def _smallest_hold_needed(self) -> float:
        """Return what must be affordable for the audit to go on: here, its cheapest request.

        An audit that may leave nobody out for the price needs its most expensive one.
        """
        return min(self.costs.of(group).worst for group in self.cells)

    # -- bookkeeping ----------------------------------------------------------------------------

    def _parse_group(self, group: object) -> str:
        """Return the name of a group that may be written as the table of the past writes it."""
        is_name = isinstance(group, str) and group in self.cells
        name = str(group) if is_name else self._values.read_group(group)
        if name not in self.cells:
            raise UnknownName("group", group, self.cells.groups)
        return name

    def _parse_bit(self, role: str, value: object) -> int:
        """Return 0 or 1 for a number, or for a word that the table of the past uses."""
        if isinstance(value, str):
            return require_bit(role, self._values.read_bit(role, value))
        return require_bit(role, value)

    def _choose_affordable_want(self, group: str, decision: int) -> Want:
        """Return what is wanted and can be paid; the audit may end because nothing can be."""
        want = Want.NOTHING if self._finding is not None else self._choose_want(group, decision)
        hold = self._worst_cost(group, decision, want)
        if hold > 0.0 and hold > self.available:
            want = Want.NOTHING
            # Where people have prices, asking again when money comes back would prefer cheap
            # people, and the sample would be biased.
            if self.assist is not None and self.assist.max_price is not None:
                self.closed |= {group}
        if want is Want.NOTHING and self._finding is None:
            self._conclude_if_broke()
        return want

    def _apply(self, step: Step) -> None:
        """Enter a step in the books; learn from all answers up to the first that is pending."""
        # The account refuses a step that may not be, so it goes first: then nothing else changes.
        self._record_spending(step)
        number = step.ticket.number
        if step.kind == "asked":
            if number in self._open_tickets:
                self._answers_in_order[number] = None
            return
        self._answers_in_order[number] = step
        while self._answers_in_order:
            first_number, answer = next(iter(self._answers_in_order.items()))
            if answer is None:  # all later answers wait for this one
                break
            del self._answers_in_order[first_number]
            if self._finding is None:
                self._finding = self._learn(answer)
        if self._finding is None:
            self._conclude_if_broke()

    def _record_spending(self, step: Step) -> None:
        """Enter a request, or its first answer, in the open requests and the account."""
        ticket = step.ticket
        if step.kind == "asked":
            self._next_number = ticket.number + 1
            if ticket.want in (Want.LABEL, Want.FEATURES):
                self._open_tickets[ticket.number] = ticket
            self._account.record_request(ticket)
            return
        if self._open_tickets.get(ticket.number) is not ticket:
            self._require_open(ticket)
        if step.cost is not None:
            _require_covered(step.cost, ticket)
        if step.kind == "told" and ticket.want is Want.LABEL:
            require_bit("outcome", step.outcome)
        del self._open_tickets[ticket.number]
        self._account.record_answer(ticket, step.outcome, step.cost)

    def _worst_cost(
        self, group: str, decision: int, want: Want, record: ScoreRecord | None = None
    ) -> float:
        """Return the most that a request may cost: at the largest price until a record has one."""
        price = None if self.assist is None else self.assist.max_price
        if record is not None:
            price = record.price
        return self._account.worst_cost(group, decision, want, price)

    def _conclude_if_broke(self) -> None:
        """End the audit if no money is left; pending answers may still bring some back."""
        if self._open_tickets or not self.is_broke:
            return
        why = "the budget is spent: what is left does not cover one more request at its worst"
        if self.cost == 0.0 and not self.closed:
            assert self.budget is not None  # else there is no end of it
            cheapest = min(self._worst_cost(group, 0, Want.LABEL) for group in self.cells)
            why = (
                f"the budget of {format_count(self.budget)} does not cover one request, which "
                f"may cost {format_count(cheapest)}"
            )
        self._finding = self._conclude(why)

    def _require_open(self, ticket: Ticket) -> None:
        require_kind("ticket", ticket, Ticket, "what ask returned, a Ticket")
        if self._open_tickets.get(ticket.number) == ticket:
            return
        if ticket.number >= self._next_number:
            raise ProtocolError(f"ticket {ticket} was never issued by this audit")
        if ticket.want is Want.NOTHING:
            raise ProtocolError(f"ticket {ticket}: nothing was asked about this person")
        raise ProtocolError(f"ticket {ticket} is settled already, or differs from the one issued")


def _require_covered(cost: float, ticket: Ticket) -> None:
    """Raise unless the cost of a withdrawn request is at most what was held for it."""
    require_non_negative("cost", cost)
    if cost > ticket.hold * (1.0 + 1e-12):  # sums of prices are rounded
        raise InvalidInput(
            f"'cost' of a withdrawn request must be at most the {format_count(ticket.hold)} that "
            f"is held for ticket {ticket}; got {cost!r}"
        )


def require_bit(name: str, value: object) -> int:
    """Return 0 or 1; raise InvalidInput, which names the argument, for anything else."""
    if not isinstance(value, int | np.integer | np.bool_) or value not in (0, 1):
        raise InvalidInput(f"{name!r} must be 0 or 1; got {value!r}")
    return int(value)
