"""The money of an audit: what requests cost, what is held for them, and what is left of a budget.

Only denied people cost anything. A request costs the feature price when it is made, and the label
price on top if its outcome turns out to be 0. Until the outcome is known the label price is held.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from equipoise._arrays import Array, Flags, Ints
from equipoise.protocol import Ticket, Want
from equipoise.question import Costs


@dataclass
class Spending:
    """What has been requested of one group's denied people, as counts; money follows from them.

    Attributes
    ----------
    labels, features
        Requests for a label, and for features or a score alone.
    failures
        Labels that came back 0.
    pending
        Labels that have not come back.
    adjustment
        Money beyond the audit's prices, or below them: what a withdrawn request cost instead of
        the feature price, and what failures of people with a price of their own cost instead of
        the label price.
    held
        How much pending labels of people with a price of their own may still add to it.
    """

    labels: int = 0
    failures: int = 0
    features: int = 0
    pending: int = 0
    adjustment: float = 0.0
    held: float = 0.0

    def cost(self, costs: Costs) -> float:
        """Return the money spent at these prices."""
        requests = costs.feature * (self.labels + self.features)
        return requests + costs.label * self.failures + self.adjustment

    def reserved(self, costs: Costs) -> float:
        """Return the money that the pending labels may still cost."""
        return costs.label * self.pending + self.held


class Account:
    """The spending of all groups of an audit, and its budget.

    Parameters
    ----------
    costs, budget
        As of the audit; None for no budget.
    groups
        The names of all groups.
    """

    def __init__(self, costs: Costs, budget: float | None, groups: Iterable[str]) -> None:
        self.costs = costs
        self.budget = budget
        self.by_group = {group: Spending() for group in groups}
        self._withdrawal_adjustments: dict[int, float] = {}  # by ticket number

    @property
    def cost(self) -> float:
        """Money spent so far; a pending label counts its feature cost only."""
        return sum(s.cost(self.costs.of(group)) for group, s in self.by_group.items())

    @property
    def reserved(self) -> float:
        """Money held for the failures that pending labels may still turn out to be."""
        return sum(s.reserved(self.costs.of(group)) for group, s in self.by_group.items())

    @property
    def unspent(self) -> float:
        """The budget less what is spent and held; below 0 after an overrun."""
        return math.inf if self.budget is None else self.budget - (self.cost + self.reserved)

    def worst_cost(self, group: str, decision: int, want: Want, price: float | None) -> float:
        """Return the most that a request may cost.

        ``price`` is what the label costs if it is 0; None for the price that the costs have.
        """
        if decision == 1 or want is Want.NOTHING:
            return 0.0
        costs = self.costs.of(group)
        if want is not Want.LABEL:
            return costs.feature
        return costs.worst if price is None else costs.feature + price

    def record_request(self, ticket: Ticket) -> None:
        """Enter a request."""
        # Only denied people cost anything: an approved person needs no override.
        if ticket.decision == 1 or ticket.want is Want.NOTHING:
            return
        spending = self.by_group[ticket.group]
        if ticket.want is Want.LABEL:
            spending.labels += 1
            spending.pending += 1
            spending.held += self._extra_price(ticket)
        else:
            spending.features += 1

    def record_answer(self, ticket: Ticket, outcome: int | None, cost: float | None) -> None:
        """Enter the first answer to a request.

        ``outcome`` is None for a withdrawal, and ``cost`` what that cost all the same; None for
        the feature price.
        """
        if ticket.decision == 1:
            return
        spending = self.by_group[ticket.group]
        if ticket.want is Want.LABEL:
            # What was held for a failure is free again, and is spent if it was one.
            extra_price = self._extra_price(ticket)
            spending.pending -= 1
            spending.held -= extra_price
            if outcome == 0:
                spending.failures += 1
                spending.adjustment += extra_price
        if cost is not None:
            adjustment = cost - self.costs.of(ticket.group).feature
            self._withdrawal_adjustments[ticket.number] = adjustment
            spending.adjustment += adjustment

    def correct(self, ticket: Ticket, *, was_failure: bool, outcome: int) -> None:
        """Enter another outcome of a label that was answered or withdrawn."""
        more_failures = (outcome == 0) - was_failure  # -1, 0 or 1
        spending = self.by_group[ticket.group]
        spending.failures += more_failures
        spending.adjustment += more_failures * self._extra_price(ticket)
        # With an outcome the request costs what its outcome costs, not what the withdrawal did.
        spending.adjustment -= self._withdrawal_adjustments.pop(ticket.number, 0.0)

    def record_block(
        self,
        group_names: Sequence[str],
        groups: Ints,
        outcomes: Ints,
        is_label_asked: Flags,
        extra_prices: Array,
    ) -> None:
        """Enter requests of denied people that are answered at once.

        Parameters
        ----------
        group_names
            The groups by position.
        groups, outcomes, is_label_asked, extra_prices
            One entry per person: the position of the group, the outcome, whether the label was
            asked for (else only a score was read), and what a failure costs beyond the label price.
        """
        for position, group in enumerate(group_names):
            in_group = groups == position
            # The outcome of a person who was not asked is not known, whatever the array holds.
            has_failed = in_group & is_label_asked & (outcomes == 0)
            spending = self.by_group[group]
            spending.labels += int((in_group & is_label_asked).sum())
            spending.features += int((in_group & ~is_label_asked).sum())
            spending.failures += int(has_failed.sum())
            spending.adjustment += float(extra_prices[has_failed].sum())

    def _extra_price(self, ticket: Ticket) -> float:
        """Return what a failure of this person, if asked, costs beyond the label price."""
        record = ticket.score_record
        if record is None or ticket.want is not Want.LABEL:
            return 0.0
        return record.price - self.costs.of(ticket.group).label
