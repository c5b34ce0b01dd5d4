"""What an audit is created with: the first event, and all that a replay needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from equipoise.audits.base import Audit
from equipoise.audits.catalogue import audit_class, check_options
from equipoise.cells import Cells
from equipoise.errors import InvalidInput, ProtocolError, UnknownName
from equipoise.history.past import Past
from equipoise.ledger.verify import FORMAT
from equipoise.question import Costs, Question

__all__ = ["RecordedPast", "Settings", "build", "rehearse", "whole"]

if TYPE_CHECKING:
    from equipoise.mixture.model import MixtureModel

STREAMS = ("everybody", "denied")

Position = tuple[int, str, int, bool]


class RecordedPast:
    """Past decisions that remember what they were asked, so that a replay needs nothing else."""

    def __init__(
        self,
        cells: Cells,
        exact: bool,
        positions: Mapping[Position, int | None] | None = None,
        source: Past | None = None,
    ) -> None:
        self.cells = cells
        self.exact = exact
        self.positions = dict(positions or {})
        self._source = source

    def rows_until(
        self, tau: int, *, group: str, outcome: int, within_group: bool = True
    ) -> int | None:
        """Answer from memory, or ask the source and remember."""
        key = (tau, group, outcome, within_group)
        if key not in self.positions:
            if self._source is None:
                raise ProtocolError(f"the first event does not say where tau={tau} is reached")
            self.positions[key] = self._source.rows_until(
                tau, group=group, outcome=outcome, within_group=within_group
            )
        return self.positions[key]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "cells": self.cells.to_dict(),
            "exact": self.exact,
            "positions": [[*key, rows] for key, rows in self.positions.items()],
            "model": None,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], groups: Sequence[str]) -> RecordedPast:
        """Build from what :meth:`to_dict` gave, with the groups in their first order."""
        positions = {(t, g, y, w): rows for t, g, y, w, rows in data["positions"]}
        cells = Cells.from_dict({group: data["cells"][group] for group in groups})
        if data["model"] is None:
            return RecordedPast(cells, data["exact"], positions)
        from equipoise.ledger.modelled import model_from_data

        model = model_from_data(data["model"])
        return RecordedModelledPast(cells, data["exact"], positions, model=model)

    @staticmethod
    def of(history: Past) -> RecordedPast:
        """Begin to remember what a past is asked."""
        model = getattr(history, "model", None)
        if model is None:
            return RecordedPast(history.cells, history.exact, source=history)
        return RecordedModelledPast(history.cells, history.exact, source=history, model=model)


class RecordedModelledPast(RecordedPast):
    """The same with a mixture model of the features of past approved people."""

    def __init__(
        self,
        cells: Cells,
        exact: bool,
        positions: Mapping[Position, int | None] | None = None,
        source: Past | None = None,
        *,
        model: MixtureModel,
    ) -> None:
        super().__init__(cells, exact, positions, source)
        self.model = model

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        from equipoise.ledger.modelled import model_to_data

        return {**super().to_dict(), "model": model_to_data(self.model)}


@dataclass(frozen=True)
class Settings:
    """Everything that is fixed when an audit begins. Money is in whole minor units (cents).

    Attributes
    ----------
    max_in_flight, max_in_flight_groups
        How many overrides may be without an outcome at once, over all and in single groups.
    lottery
        The chance that a person is considered at all.
    overdue_after
        Days after which an outcome is overdue, or None.
    stream
        ``everybody`` if approved people are asked about as well, ``denied`` if not; without
        them approval rates cannot be compared with the past.
    options
        Further arguments of the audit.
    coding
        What columns and values of the past decisions mean, for tables that come later.
    """

    name: str
    audit: str
    question: Question
    costs: Costs
    past: RecordedPast
    seed_hash: str
    software: str
    budget: int | None = None
    max_in_flight: int | None = None
    max_in_flight_groups: Mapping[str, int] = field(default_factory=dict)
    lottery: float = 1.0
    overdue_after: float | None = None
    stream: str = "everybody"
    currency: str = ""
    decimals: int = 0
    simulated: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    coding: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.name or len(self.name) > 200 or not self.name.isprintable():
            raise InvalidInput(f"'name' must be 1 to 200 printable characters; got {self.name!r}")
        check_options(audit_class(self.audit), self.options, without=("budget", "model"))
        if self.stream not in STREAMS:
            raise UnknownName("stream", self.stream, STREAMS)
        if not 0.0 < self.lottery <= 1.0:
            raise InvalidInput(f"'lottery' must be in (0, 1]; got {self.lottery!r}")
        if self.overdue_after is not None and not self.overdue_after > 0:
            raise InvalidInput(
                f"'overdue_after' must be a number of days > 0; got {self.overdue_after!r}"
            )
        limits = {"max_in_flight": self.max_in_flight}
        limits |= {f"max_in_flight of {g!r}": n for g, n in self.max_in_flight_groups.items()}
        for what, limit in limits.items():
            if limit is not None and (not isinstance(limit, int) or limit < 1):
                raise InvalidInput(f"{what} must be a whole number >= 1; got {limit!r}")
        for group in self.max_in_flight_groups:
            if group not in self.groups:
                raise UnknownName("group in 'max_in_flight_groups'", group, self.groups)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups' names."""
        return self.past.cells.groups

    def money(self, amount: float) -> str:
        """Write minor units as people read money."""
        unit = f" {self.currency}" if self.currency else ""
        return f"{amount / 10**self.decimals:,.{self.decimals}f}{unit}"

    def to_data(self) -> dict[str, Any]:
        """Return the first event's data."""
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        data |= {
            "format": FORMAT,
            "groups": list(self.groups),
            "question": self.question.to_dict(),
            "costs": _whole_costs(self.costs),
            "past": self.past.to_dict(),
            "max_in_flight_groups": dict(self.max_in_flight_groups),
            "options": dict(self.options),
            "coding": dict(self.coding),
        }
        return data

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Settings:
        """Build from the first event's data."""
        known = {f.name for f in fields(cls)}
        values = {name: value for name, value in data.items() if name in known}
        values["question"] = Question.from_dict(data["question"])
        values["costs"] = Costs.from_dict(data["costs"])
        values["past"] = RecordedPast.from_dict(data["past"], data["groups"])
        return cls(**values)


def rehearse(settings: Settings) -> None:
    """Make the audit once, so that the past is asked all that it will ever be asked."""
    audit = build(settings)
    fallback = getattr(audit, "fallback_question", None)
    if fallback is not None:  # Exp-Audit may turn to labels later
        from equipoise.audits.rs import RSAudit

        tau = settings.options.get("tau")
        RSAudit(settings.past, fallback, settings.costs, tau=tau)


def build(settings: Settings) -> Audit:
    """Make the audit that the settings describe."""
    budget = None if settings.budget is None else float(settings.budget)
    return audit_class(settings.audit)(
        settings.past, settings.question, settings.costs, budget=budget, **settings.options
    )


def whole(name: str, amount: float) -> int:
    """Return an amount of money as whole minor units."""
    if isinstance(amount, bool) or amount != amount or amount < 0 or amount != int(amount):
        raise InvalidInput(
            f"{name!r} must be a whole number of minor units (cents), so that no rounding can "
            f"exceed a cap; got {amount!r}"
        )
    return int(amount)


def _whole_costs(costs: Costs) -> dict[str, Any]:
    return {
        "feature": whole("costs.feature", costs.feature),
        "label": whole("costs.label", costs.label),
        "groups": {group: _whole_costs(own) for group, own in costs.groups.items()},
    }
