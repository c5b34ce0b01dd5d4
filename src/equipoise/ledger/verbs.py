"""What one does with an audit, wherever it is: every verb is one command.

:class:`~equipoise.ledger.live.LiveAudit` carries commands out in a ledger and
:class:`~equipoise.client.RemoteAudit` sends them to a server; both take their verbs from here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from equipoise.errors import EquipoiseError
from equipoise.finding import Finding
from equipoise.ledger import commands as do
from equipoise.ledger.commands import Command, Reply

__all__ = ["Verbs"]

AT_ONCE = 1000  # commands per transaction, or per message, in a long batch


class Verbs(ABC):
    """The verbs of an audit; a subclass says how commands are carried out.

    Every verb may be repeated after a failure: what was carried out before is answered as it was
    and changes nothing. What a verb returns is on disk. ``key``, any text of the caller's own,
    makes that hold for a duplicate that comes late, too.
    """

    @abstractmethod
    def results(self, commands: Sequence[Command]) -> list[Reply | EquipoiseError]:
        """Carry out checked commands, at most 1,000; return, once stored, a result for each."""

    @property
    @abstractmethod
    def finding(self) -> Finding | None:
        """The answer, None while the audit is in progress."""

    def do(self, command: Command) -> Reply:
        """Carry out one command, or raise the reason why not."""
        (result,) = self.results([do.checked(command)])
        if isinstance(result, EquipoiseError):
            raise result
        return result

    def run(self, commands: Iterable[Command | EquipoiseError]) -> list[Reply]:
        """Carry out commands of any kind; a refused one has its ``problem`` set."""
        return do.in_batches(commands, AT_ONCE, self.results)

    # -- people -----------------------------------------------------------------------------------

    def ask(
        self,
        person: str,
        group: str,
        decision: int,
        *,
        score: float | None = None,
        price: int | None = None,
        version: str = "",
        key: str = "",
    ) -> Reply:
        """Say what is wanted of somebody who arrived; the same for ever after.

        ``score``, of a model's ``version``, and ``price`` are for audits that use scores.
        """
        return self.do(do.Ask(person, group, decision, score, price, version, key=key))

    def ask_many(self, people: Iterable[Sequence[Any]]) -> list[Reply]:
        """Ask about many; a refused one has its ``problem`` set and holds up nobody.

        Each is a person, a group and a decision, then perhaps a score, a price and a version.
        """
        return self.run(do.made(do.Ask, row, "person, group, decision") for row in people)

    def tell(self, person: str, outcome: int, *, key: str = "") -> Reply:
        """Bring an outcome, in any order, at any time."""
        return self.do(do.Tell(person, outcome, key=key))

    def tell_many(self, outcomes: Iterable[tuple[str, int]]) -> list[Reply]:
        """Bring many outcomes; a refused one has its ``problem`` set and holds up nobody."""
        return self.run(do.made(do.Tell, row, "person, outcome") for row in outcomes)

    def executed(self, person: str, *, key: str = "") -> Reply:
        """Say that the override was carried out."""
        return self.do(do.Execute(person, key=key))

    def withdraw(self, person: str, *, key: str = "") -> Reply:
        """Say that the person refused: the hold is released, the outcome stays unknown."""
        return self.do(do.Withdraw(person, key=key))

    def write_off(self, person: str, *, key: str = "") -> Reply:
        """Give up an overdue outcome: its worst cost is posted, it stays unknown."""
        return self.do(do.WriteOff(person, key=key))

    def correct(self, person: str, outcome: int, why: str, *, key: str = "") -> Reply:
        """Replace a known outcome by the right one; the old event stays."""
        return self.do(do.Correct(person, outcome, why, key=key))

    def erase(self, person: str, *, key: str = "") -> Reply:
        """Forget a person: pseudonym and key leave the tables, chain and money stay provable.

        The answer is ERASED where nothing is left of them, and UNLINKED while copies stay in the
        database's files, with who must do what in ``why``. Nothing is left that could tell
        whether somebody was erased before or never known, so a name that nobody has is answered
        as ``repeated``: look there for a mistyped one.
        """
        return self.do(do.Erase(person, key=key))

    # -- the audit --------------------------------------------------------------------------------

    def conclude(self, why: str = "nobody else is to come", *, key: str = "") -> Finding | None:
        """Say that nobody else will come; return what the evidence supports."""
        self.do(do.Conclude(why, key=key))
        return self.finding

    def pause(self, why: str, *, key: str = "") -> Reply:
        """Ask nobody for now; outcomes are taken all the same."""
        return self.do(do.Pause(why, key=key))

    def resume(self, why: str, *, key: str = "") -> Reply:
        """Ask again."""
        return self.do(do.Resume(why, key=key))

    def set_budget(self, budget: int | None, why: str, *, key: str = "") -> Reply:
        """Change the cap: up freely, down to what is spent or held; None for no cap."""
        return self.do(do.SetBudget(budget, why, key=key))

    def set_limits(
        self,
        max_in_flight: int | None,
        max_in_flight_groups: Mapping[str, int] | None = None,
        *,
        why: str,
        key: str = "",
    ) -> Reply:
        """Change how many requests may be without an outcome at once."""
        return self.do(do.SetLimits(max_in_flight, max_in_flight_groups or {}, why, key=key))

    def upgrade(self, why: str, *, key: str = "") -> Reply:
        """Go on under this program's edition of the statistics; what is recorded stands."""
        return self.do(do.Upgrade(why, key=key))

    def approve(self, proposal: int, *, key: str = "") -> Reply:
        """Carry out what somebody else proposed, where the audit asks for a second person."""
        return self.do(do.Approve(proposal, key=key))

    def reject(self, proposal: int, why: str, *, key: str = "") -> Reply:
        """Drop a proposal."""
        return self.do(do.Reject(proposal, why, key=key))
