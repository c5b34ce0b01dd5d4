"""One simulation's setting, and the fast way to draw its runs where the audit brings one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from equipoise.audits.base import Audit
from equipoise.audits.catalogue import AUDITS, audit_class, check_options, resolve
from equipoise.errors import InvalidInput, require_whole
from equipoise.history.past import Past
from equipoise.question import Costs, Question, require_asked
from equipoise.simulation.result import Draws
from equipoise.worlds import TableWorld, World
from equipoise.worlds.base import require_world

__all__ = ["Delay", "Setting", "draw_at_once", "require_prices_paid"]

Delay = Callable[[int, np.random.Generator], int | None]
"""After how many further arrivals an outcome is told; None: the person vanishes."""


@dataclass(frozen=True)
class Setting:
    """Everything that defines a simulation; see :func:`equipoise.simulation.simulate`.

    ``pasts`` are the repeats' own past data where they are there already, else they are drawn.
    """

    audit: type[Audit]
    world: World
    question: Question
    costs: Costs
    repeats: int = 200
    seed: int = 0
    history_size: int | None = None
    delay: Delay | None = None
    people: int | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    pasts: Sequence[Past] | None = None

    def __post_init__(self) -> None:
        require_world(self.world)
        require_asked(self.question, self.costs)
        for name in ("repeats", "history_size", "people"):
            require_whole(name, getattr(self, name))
        require_whole("seed", self.seed, least=0)
        if self.delay is not None and not callable(self.delay):
            raise InvalidInput(
                f"'delay' must be a function of an outcome and a generator; got {self.delay!r}"
            )
        check_options(self.audit, self.options)
        require_prices_paid(self.world, self.costs, self.options.get("assist"))


def require_prices_paid(world: World, costs: Costs, assist: object) -> None:
    """Raise if people have prices of their own and the audit would pay the label cost instead."""
    if assist is None and isinstance(world, TableWorld) and world.price is not None:
        labels = [costs.of(group).label for group in world.groups]
        dearest = max(*labels, float(np.nanmax(world.price)))
        raise InvalidInput(
            "people of this world have prices of their own, and an audit without assist= would "
            "pay the label cost instead: give the adaptive audit "
            f"assist=Assist(max_price={dearest!r}), with gate=1e-9 as well if it is to ask "
            "everybody at these prices, or make the world without price="
        )


def draw_at_once(setting: Setting) -> Draws | None:
    """Return all runs of a setting if its audit has a fast way to draw them that covers it."""
    entry = AUDITS.get(setting.audit.name)
    if entry is None or entry.draws is None or setting.audit is not audit_class(setting.audit.name):
        return None
    draws: Draws | None = resolve(entry.draws)(setting)
    return draws
