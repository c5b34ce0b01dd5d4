"""What an audit is created with: the first event, and all that a replay needs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from equipoise import evidence
from equipoise._json import to_plain_data
from equipoise._version import __version__
from equipoise.audits.base import Audit
from equipoise.audits.catalogue import audit_class, check_options
from equipoise.audits.scores import Assist
from equipoise.cells import Cells
from equipoise.display import format_money
from equipoise.errors import InvalidInput, UnknownName, require_kind
from equipoise.history.coding import Coding, ValueReader
from equipoise.history.past import Past, require_past
from equipoise.ledger import inputs
from equipoise.ledger.verify import APPROVABLE, FORMAT
from equipoise.question import Costs, Question, require_question_and_costs

STREAMS = ("everybody", "denied")


@dataclass(frozen=True)
class Settings:
    """Everything that is fixed when an audit begins. Money is in whole minor units (cents).

    Attributes
    ----------
    software, edition
        The version of this package, and of its statistics, that began the audit.
    max_in_flight, max_in_flight_groups
        How many overrides may be without an outcome at once, over all and in single groups.
    lottery
        The chance that a person is considered at all.
    overdue_after
        Days after which an outcome is overdue, or None.
    stream
        ``everybody`` if approved people are asked about as well, ``denied`` if not; without
        them approval rates cannot be compared with the past.
    approvals
        What a second person must approve, of ``budget``, ``concluded``, ``corrected``, ``erased``,
        ``limits``, ``random_accepts``, ``resumed`` and ``upgraded``.
    options
        Further arguments of the audit.
    coding
        What columns and values of the past decisions mean, for tables that come later.
    """

    name: str
    audit: str
    question: Question
    costs: Costs
    past: Past
    seed_hash: str
    software: str
    edition: int
    budget: int | None = None
    max_in_flight: int | None = None
    max_in_flight_groups: Mapping[str, int] = field(default_factory=dict)
    lottery: float = 1.0
    overdue_after: float | None = None
    stream: str = "everybody"
    currency: str = ""
    decimals: int = 0
    simulated: bool = False
    approvals: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    coding: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A frozen dataclass can be filled in here only by this detour.
        object.__setattr__(self, "name", inputs.name("name", self.name))
        object.__setattr__(self, "currency", inputs.text("currency", self.currency))
        self._check_audit()
        self._check_stream()
        self._check_numbers()
        for kind in self.approvals:
            if kind not in APPROVABLE:
                raise UnknownName("kind of event in 'approvals'", kind, APPROVABLE)
        require_limits(self.max_in_flight, self.max_in_flight_groups, self.groups)

    def _check_audit(self) -> None:
        """Refuse an audit that a ledger cannot keep, and options that it does not have."""
        if self.audit == "exp":
            raise InvalidInput(
                "'audit' must not be 'exp': Exp-Audit asks for features, which a ledger does not "
                "keep; it runs in Python and in simulations"
            )
        assist = self.assist
        if assist is not None:  # stored with everything that it leaves to defaults
            object.__setattr__(self, "options", {**self.options, "assist": assist.to_dict()})
        check_options(audit_class(self.audit), self.options, without=("budget", "model"))
        if assist is None:
            return
        # Draws must follow from the sealed seed, so that verify can repeat them.
        if assist.seed is not None:
            raise InvalidInput("'seed' of 'assist' is the ledger's own; leave it out")
        if assist.max_price is not None:
            inputs.whole_amount("max_price", assist.max_price)

    def _check_stream(self) -> None:
        if self.stream not in STREAMS:
            raise UnknownName("stream", self.stream, STREAMS)
        if self.stream == "denied" and audit_class(self.audit).wants_approved:
            raise InvalidInput(
                f"'stream' must be 'everybody' for the audit {self.audit!r}, which counts approved "
                "people as well; or choose the adaptive audit"
            )

    def _check_numbers(self) -> None:
        if not 0.0 < self.lottery <= 1.0:
            raise InvalidInput(f"'lottery' must be in (0, 1]; got {self.lottery!r}")
        if self.overdue_after is not None and not self.overdue_after > 0:
            raise InvalidInput(
                f"'overdue_after' must be a number of days > 0; got {self.overdue_after!r}"
            )
        if type(self.decimals) is not int or not 0 <= self.decimals <= 9:
            raise InvalidInput(f"'decimals' must be a whole number, 0 to 9; got {self.decimals!r}")

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups' names."""
        return self.past.cells.groups

    @cached_property
    def left_out(self) -> tuple[str, ...]:
        """The groups that are counted and not compared."""
        return self.question.resolve(self.groups).left_out

    @cached_property
    def compared_past(self) -> Past:
        """The past decisions about people of the groups that are compared."""
        return self.past.restricted_to([g for g in self.groups if g not in self.left_out])

    @cached_property
    def assist(self) -> Assist | None:
        """How the audit looks before it asks; None if it does not."""
        assist = self.options.get("assist")
        if assist is None or isinstance(assist, Assist):
            return assist
        require_kind("assist", assist, Mapping, "an Assist, or what its to_dict() gives")
        return Assist.from_dict(assist)

    @cached_property
    def values(self) -> ValueReader:
        """How what is said of people is read."""
        return ValueReader(self.groups, Coding.from_dict(self.coding) if self.coding else None)

    @cached_property
    def group_names(self) -> Mapping[str, str]:
        """A group's name as callers' are compared -> its name in the past data."""
        return inputs.group_names(self.groups)

    def money(self, amount: float) -> str:
        """Write minor units as people read money."""
        return format_money(amount, self.currency, self.decimals)

    def to_data(self) -> dict[str, Any]:
        """Return the first event's data; the names are those that are stored."""
        return {
            "name": self.name,
            "audit": self.audit,
            "question": to_plain_data(self.question),
            "costs": _whole_costs(self.costs),
            "past": {
                "cells": self.past.cells.to_dict(),
                "exact": self.past.exact,
                "seed": self.past.seed,
            },
            "seed_hash": self.seed_hash,
            "software": self.software,
            "edition": self.edition,
            "budget": to_plain_data(self.budget),
            "max_in_flight": to_plain_data(self.max_in_flight),
            "max_in_flight_groups": to_plain_data(self.max_in_flight_groups),
            "lottery": to_plain_data(self.lottery),
            "overdue_after": to_plain_data(self.overdue_after),
            "stream": self.stream,
            "currency": self.currency,
            "decimals": self.decimals,
            "simulated": self.simulated,
            "approvals": list(self.approvals),
            "options": to_plain_data(self.options),
            "coding": to_plain_data(self.coding),
            "format": FORMAT,
            "groups": list(self.groups),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Settings:
        """Build from the first event's data."""
        past = data["past"]
        # Canonical JSON sorts the cells; the list of groups has their first order.
        cells = Cells.from_dict({group: past["cells"][group] for group in data["groups"]})
        return cls(
            name=data["name"],
            audit=data["audit"],
            question=Question.from_dict(data["question"]),
            costs=Costs.from_dict(data["costs"]),
            past=Past(cells, past["exact"], past["seed"]),
            seed_hash=data["seed_hash"],
            software=data["software"],
            edition=data["edition"],
            budget=data["budget"],
            max_in_flight=data["max_in_flight"],
            max_in_flight_groups=data["max_in_flight_groups"],
            lottery=data["lottery"],
            overdue_after=data["overdue_after"],
            stream=data["stream"],
            currency=data["currency"],
            decimals=data["decimals"],
            simulated=data["simulated"],
            approvals=tuple(data["approvals"]),
            options=data["options"],
            coding=data["coding"],
        )


def new_settings(
    name: str,
    history: Past,
    question: Question,
    costs: Costs,
    *,
    seed: str,
    audit: str = "adaptive",
    budget: int | None = None,
    max_in_flight: int | None = None,
    max_in_flight_groups: Mapping[str, int] | None = None,
    lottery: float = 1.0,
    overdue_after: float | None = None,
    stream: str = "everybody",
    currency: str = "",
    decimals: int = 0,
    simulated: bool = False,
    approvals: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    confirm: bool = False,
    is_possible: bool = False,
) -> Settings:
    """Return the settings of an audit that could begin now, or refuse them; nothing is stored.

    ``seed`` is the audit's secret, 64 hexadecimal digits; the settings hold its hash. ``confirm``
    says that the audit begins even if it would probably not end. ``is_possible`` says that whoever
    calls tries the audit elsewhere, by :func:`try_audit` and :func:`require_end`.
    """
    if not isinstance(seed, str) or not re.fullmatch("[0-9a-fA-F]{64}", seed):
        raise InvalidInput(f"'seed' must be 64 hexadecimal digits; got {seed!r}")
    require_past(history)
    require_question_and_costs(question, costs)
    coding = getattr(history, "coding", None)  # of a History; a Past has none
    settings = Settings(
        name=name,
        audit=audit,
        question=question,
        costs=costs,
        past=history,
        seed_hash=hashlib.sha256(bytes.fromhex(seed)).hexdigest(),
        software=__version__,
        edition=evidence.EDITION,
        budget=None if budget is None else inputs.whole_amount("budget", budget),
        max_in_flight=max_in_flight,
        max_in_flight_groups=max_in_flight_groups or {},
        lottery=lottery,
        overdue_after=overdue_after,
        stream=stream,
        currency=currency,
        decimals=decimals,
        simulated=simulated,
        approvals=tuple(dict.fromkeys(approvals)),
        options=options or {},
        coding={} if coding is None else coding.to_dict(),
    )
    _ = settings.group_names  # refuses groups whose names cannot be told apart
    settings.to_data()  # refuses costs that are not whole minor units
    if not is_possible:
        try_audit(settings)
        if not confirm:  # the forecast takes long, so it comes last
            require_end(settings)
    return settings


def require_end(settings: Settings) -> None:
    """Refuse an audit that would probably not end, by its forecast."""
    if settings.audit == "adaptive":
        from equipoise.planning.feasibility import require_feasible

        require_feasible(settings.past, settings.question, settings.costs)


def try_audit(settings: Settings) -> Audit:
    """Make the audit once and return it; settings that no audit can have are refused."""
    audit = build(settings, settings.budget)
    if settings.budget is not None and audit.finding is None and audit.is_broke:
        max_price = None if settings.assist is None else settings.assist.max_price
        price_note = ""
        if max_price is not None:
            price_note = f"; a person's price may be {settings.money(int(max_price))}"
        cheapest = min(settings.costs.of(group).worst for group in settings.groups)
        raise InvalidInput(
            "'budget' (in whole minor units such as cents) must pay for at least one "
            f"request at its worst, {settings.money(cheapest)}{price_note}; "
            f"{settings.money(settings.budget)} does not"
        )
    return audit


def build(settings: Settings, budget: int | None) -> Audit:
    """Make the audit that the settings describe, with the cap as it is now."""
    cap = float(inputs.LIMIT - 1 if budget is None else budget)  # beyond it money is not exact
    options = dict(settings.options)
    if settings.assist is not None:
        options["assist"] = settings.assist
    return audit_class(settings.audit)(
        settings.past, settings.question, settings.costs, budget=cap, **options
    )


def require_limits(
    limit: object, limits_by_group: Mapping[str, object], groups: Sequence[str]
) -> None:
    """Refuse limits of what is in flight that are no counts, or of groups that do not exist."""
    if limit is not None:
        inputs.count("max_in_flight", limit)
    for group, group_limit in limits_by_group.items():
        if group not in groups:
            raise UnknownName("group in 'max_in_flight_groups'", group, groups)
        inputs.count(f"max_in_flight of {group}", group_limit)


def _whole_costs(costs: Costs) -> dict[str, Any]:
    return {
        "feature": inputs.whole_amount("costs.feature", costs.feature),
        "label": inputs.whole_amount("costs.label", costs.label),
        "groups": {group: _whole_costs(cost) for group, cost in costs.groups.items()},
    }
