"""A random machine against a plain model: crashes, duplicates, reordering, conflicts.

Every kind of event happens here, and the model says without the ledger's code what it does.
"""

from __future__ import annotations

import argparse
import atexit
import os
import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from equipoise import evidence
from equipoise.cells import Cells, GroupCells
from equipoise.errors import Conflict, EquipoiseError, InvalidInput, ProtocolError
from equipoise.history.past import Past
from equipoise.ledger import LiveAudit, commands
from equipoise.ledger.database import Connection
from equipoise.ledger.store import Store
from equipoise.protocol import Want
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld
from tests.support.postgres import in_memory

PRESENT_EDITION = evidence.EDITION
WORLD = CellWorld.from_shares({"A": (0.45, 0.15, 0.40, 0.5), "B": (0.15, 0.15, 0.70, 0.3)})
COSTS = Costs(feature=5, label=100)
HOLD = 105
PEOPLE = st.integers(0, 24).map(lambda i: f"p{i}")
BIT = st.integers(0, 1)
ACTORS = ("anna", "ben")
APPROVALS = (
    (),
    ("budget", "corrected", "erased"),
    ("random_accepts",),
    (
        *("budget", "concluded", "corrected", "erased", "limits", "random_accepts", "resumed"),
        "upgraded",
    ),
)
OPEN = ("RESERVED", "EXECUTED", "OVERDUE")
GROWN = ((2, 1, 0), (0, 0, 2), (1, 0, -1), (0, 1, -1), (0, 0, 0))  # good, bad, unknown
SHRUNK = ((0, 0, -1), (1, 0, -2), (-1, 1, 0), (1, -1, 0), (-2, 1, 1), (0, -2, 2), (-1, 0, 0))


class Crash(Exception):
    """The power is cut."""


@dataclass
class Known:
    """What the model knows about a person."""

    group: str
    decision: int
    want: Want
    state: str
    outcome: int | None = None
    cost: int = 0


@dataclass
class Proposed:
    """What the model knows about a proposal: who made it, and what its approval would do."""

    actor: int
    about: tuple[Any, ...]
    happens: Callable[[], None]
    possible: Callable[[], bool]


class LedgerMachine(RuleBasedStateMachine):
    """Two programs on one ledger; ``self.people`` is what must be true of it."""

    @initialize(
        budget=st.sampled_from([None, 330, 1000]),
        limit=st.sampled_from([None, 2, 5]),
        groups=st.sampled_from([{}, {"A": 1}, {"A": 2, "B": 1}]),
        tau=st.integers(1, 3),
        audit=st.sampled_from(["adaptive", "rs", "baseline", "adaptive"]),
        accepted=st.sampled_from([(), (3, 1, 2)]),
        lottery=st.sampled_from([1.0, 1.0, 0.6]),
        approvals=st.sampled_from(APPROVALS),
    )
    def begin(
        self,
        budget: int | None,
        limit: int | None,
        groups: dict[str, int],
        tau: int,
        audit: str,
        accepted: tuple[int, ...],
        lottery: float,
        approvals: tuple[str, ...],
    ) -> None:
        self.directory = tempfile.mkdtemp(dir=in_memory())
        self.ledger = f"{self.directory}/ledger.db"
        shutil.copy(_empty_ledger(), self.ledger)
        self.cap = budget
        self.limits: tuple[int | None, dict[str, int]] = (limit, groups)
        self.one_stream = audit == "baseline"
        self.adaptive = audit == "adaptive"
        self.accepts = dict.fromkeys("AB", accepted or (0, 0, 0))  # good, bad, unknown
        self.approvals = approvals
        self.proposals: dict[int, Proposed] = {}  # that are open
        self.settled: dict[int, str] = {}  # APPROVED or REJECTED
        self.concluded = False
        self.people: dict[str, Known] = {}
        self.erased: list[Known] = []
        self.left = 0  # erased and not scrubbed
        self.paused = False
        self.keys: set[str] = set()
        self.checkpoints: list[tuple[int, str]] = []
        self.fault: str | None = None
        self._become(PRESENT_EDITION)
        first = LiveAudit.create(
            self.ledger,
            "model",
            _past(accepted),
            Question(gamma=0.1, epsilon=0.2),
            COSTS,
            audit=audit,
            budget=budget,
            max_in_flight=limit,
            max_in_flight_groups=groups,
            lottery=lottery,
            approvals=approvals,
            seed="5a" * 32,
            options={} if self.adaptive else {"tau": tau},
            actor=ACTORS[0],
        )
        self.programs = [first, LiveAudit.open(self.ledger, "model", actor=ACTORS[1])]
        for program in self.programs:
            self._make_breakable(program)

    # -- what may happen --------------------------------------------------------------------------

    @rule(who=st.integers(0, 1), person=PEOPLE, group=st.sampled_from("AB"), decision=BIT)
    def ask(self, who: int, person: str, group: str, decision: int) -> None:
        known = self.people.get(person)
        if known is not None and (known.group, known.decision) != (group, decision):
            self._refused(who, commands.Ask(person, group, decision))
            return
        full = self._full(group)
        reply = self._do(who, commands.Ask(person, group, decision))
        if known is None:
            silent = self.paused or self.concluded or full
            assert reply.want is Want.NOTHING or not silent, "somebody was asked all the same"
            assert reply.why != "in_flight" or full
            assert (reply.why == "concluded") == self.concluded
            assert reply.want is Want.NOTHING or reply.hold == HOLD * (1 - decision)
            state = "SKIPPED" if reply.want is Want.NOTHING else "RESERVED"
            self.people[person] = Known(group, decision, reply.want, state)
        else:
            assert reply.want is known.want, "a stored decision changed"

    @rule(who=st.integers(0, 1), person=PEOPLE, outcome=BIT)
    def tell(self, who: int, person: str, outcome: int) -> None:
        known = self.people.get(person)
        if known is None:
            self._refused(who, commands.Tell(person, outcome))
            return
        if known.outcome is not None and known.outcome != outcome:
            assert isinstance(self._refused(who, commands.Tell(person, outcome)), Conflict)
            return
        reply = self._do(who, commands.Tell(person, outcome))
        if known.outcome is None:
            known.outcome = outcome
            if known.state not in ("SKIPPED", "WITHDRAWN"):
                known.state = "REVEALED"
                known.cost = self._price(known)
        assert (reply.outcome, reply.state) == (outcome, known.state)

    @rule(who=st.integers(0, 1), data=st.data())
    def tell_many_in_any_order(self, who: int, data: st.DataObject) -> None:
        open_people = [p for p, k in self.people.items() if k.state in ("RESERVED", "EXECUTED")]
        if not open_people:
            return
        outcomes = {p: data.draw(BIT) for p in open_people}
        messages = data.draw(st.permutations([*outcomes, *open_people[:2]]))
        told = [(p, outcomes[p]) for p in messages]
        replies = self._through_crashes(lambda: self.programs[who].tell_many(told))
        assert not any(reply.problem for reply in replies)
        for person, outcome in outcomes.items():
            known = self.people[person]
            known.outcome, known.state = outcome, "REVEALED"
            known.cost = self._price(known)

    @rule(who=st.integers(0, 1), person=PEOPLE)
    def execute(self, who: int, person: str) -> None:
        known = self.people.get(person)
        if known is None or known.want is Want.NOTHING or known.state == "WITHDRAWN":
            self._refused(who, commands.Execute(person))
            return
        self._do(who, commands.Execute(person))
        known.state = "EXECUTED" if known.state == "RESERVED" else known.state

    @rule(who=st.integers(0, 1), person=PEOPLE)
    def withdraw(self, who: int, person: str) -> None:
        known = self.people.get(person)
        if known is None or known.state not in ("RESERVED", "WITHDRAWN"):
            self._refused(who, commands.Withdraw(person))
            return
        self._do(who, commands.Withdraw(person))
        known.state = "WITHDRAWN"

    @rule(who=st.integers(0, 1), person=PEOPLE, give_up=st.booleans())
    def become_overdue(self, who: int, person: str, give_up: bool) -> None:
        known = self.people.get(person)
        if known is None or known.state not in OPEN:
            self._refused(who, commands.MarkOverdue(person))
            return
        self._do(who, commands.MarkOverdue(person))
        known.state = "OVERDUE"
        if give_up:
            self._do(who, commands.WriteOff(person))
            known.state = "WRITTEN_OFF"
            known.cost = HOLD * (1 - known.decision)

    @rule(who=st.integers(0, 1), person=PEOPLE, outcome=BIT)
    def correct(self, who: int, person: str, outcome: int) -> None:
        known = self.people.get(person)
        if known is None or known.outcome is None:
            self._refused(who, commands.Correct(person, outcome, "test"))
            return
        command = commands.Correct(person, outcome, "test")
        if outcome == known.outcome:
            assert self._do(who, command).repeated
            return

        def happens() -> None:
            known.outcome = outcome
            if known.state in ("REVEALED", "CORRECTED"):
                known.state, known.cost = "CORRECTED", self._price(known)

        here = lambda: self.people.get(person) is known  # noqa: E731
        self._change(who, command, ("corrected", id(known), outcome), happens, here)

    @rule(who=st.integers(0, 1), more=st.sampled_from([None, 0, 300]))
    def change_the_budget(self, who: int, more: int | None) -> None:
        head = self.programs[who]._store.head(self.programs[who].row.id)
        if head.spent + head.reserved > 0:
            self._refused(who, commands.SetBudget(head.spent + head.reserved - 1, "less"))
        cap = None if more is None else head.spent + head.reserved + more
        command = commands.SetBudget(cap, "test")
        if cap == self.cap:
            assert self._do(who, command).repeated
            return

        def possible() -> bool:
            now = self.programs[who]._store.head(self.programs[who].row.id)
            return cap is None or cap >= now.spent + now.reserved

        self._change(who, command, ("budget", cap), lambda: setattr(self, "cap", cap), possible)

    @rule(
        who=st.integers(0, 1),
        limit=st.sampled_from([None, 1, 3, 8]),
        groups=st.sampled_from([{}, {"A": 1}, {"A": 4, "B": 2}]),
    )
    def change_the_limits(self, who: int, limit: int | None, groups: dict[str, int]) -> None:
        self._refused(who, commands.SetLimits(0, groups, "test"))
        self._refused(who, commands.SetLimits(limit, {"nobody": 1}, "test"))
        command, limits = commands.SetLimits(limit, groups, "test"), (limit, groups)
        if limits == self.limits:
            assert self._do(who, command).repeated
            return
        about = ("limits", limit, *groups.items())
        self._change(who, command, about, lambda: setattr(self, "limits", limits))

    @rule(
        who=st.integers(0, 1),
        group=st.sampled_from("AB"),
        more=st.sampled_from(GROWN + GROWN + SHRUNK),
        corrected=st.sampled_from([{}, {"A": 1}, {"A": 1, "B": 2}]),
    )
    def bring_a_later_file_of_random_accepts(
        self, who: int, group: str, more: tuple[int, ...], corrected: dict[str, int]
    ) -> None:
        """Bring one at any time, even after the end; nobody of the last one may be missing."""

        def grown(by: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
            now = (was + plus for was, plus in zip(self.accepts[group], by, strict=True))
            return {**self.accepts, group: tuple(now)}

        file = grown(more)
        for less in SHRUNK:
            self._refused_by_the_books_too(who, grown(less), {})
        self._refused_by_the_books_too(who, {**file, "nobody": (1, 1, 1)}, corrected)
        self._refused_by_the_books_too(who, {**file, "A": (2**53, 0, 0)}, corrected)
        self._refused_by_the_books_too(who, file, {"nobody": 1})

        def possible() -> bool:
            return all(
                min(now) >= 0
                and sum(now) >= sum(self.accepts[g])
                and self.accepts[g][0] - now[0] <= corrected.get(g, 0)
                and self.accepts[g][1] - now[1] <= corrected.get(g, 0)
                for g, now in file.items()
            )

        if not possible():
            self._refused_by_the_books_too(who, file, corrected)
            return
        told = {g: now for g, now in file.items() if any(now)}  # who is left out has none
        command = commands.SetRandomAccepts(told, corrected, "test")
        if not self.adaptive:
            self._refused(who, command)
        elif file == self.accepts:
            assert self._do(who, command).repeated
        else:
            about = ("random_accepts", *file.values(), *corrected.items())
            happens = lambda: setattr(self, "accepts", file)  # noqa: E731
            self._change(who, command, about, happens, lambda: file != self.accepts and possible())
            if file != self.accepts and group == "A":  # let both look at a proposal now
                number = next(n for n, known in self.proposals.items() if known.about == about)
                self._decide(who, True, number)
                self._decide(1 - who, True, number)

    @rule(who=st.integers(0, 1), sure=st.integers(0, 5))
    def conclude(self, who: int, sure: int) -> None:
        if self.concluded:
            assert self._do(who, commands.Conclude("test")).repeated
        elif sure == 0:
            about = ("concluded",)
            self._change(
                who, commands.Conclude("test"), about, lambda: setattr(self, "concluded", True)
            )

    @rule(who=st.integers(0, 1), change_of_mind=st.booleans())
    def upgrade_to_a_new_edition(self, who: int, change_of_mind: bool) -> None:
        """Let a release with other statistics find the ledger: it reads, and writes once upgraded.

        Its statistics are the same ones under another number, so evidence must be the same.
        """
        assert self._do(who, commands.Upgrade("test")).repeated
        self._become(self.edition + 1)
        for command in (
            commands.Ask("new", "A", 0),
            commands.Pause("test"),
            commands.Conclude("test"),
        ):
            self._refused(who, command)
        assert self.programs[who].status().edition == self.edition - 1
        reply = self._do(who, commands.Upgrade("test"))
        if "upgraded" in self.approvals:
            if change_of_mind:
                self._do(who, commands.Reject(reply.number, "not yet"))
                self.settled[reply.number] = "REJECTED"
                reply = self._do(who, commands.Upgrade("test"))
            self._refused(who, commands.Approve(reply.number))
            self.settled[reply.number] = "UPGRADED"
            reply = self._do(1 - who, commands.Approve(reply.number))
        assert reply.state == "UPGRADED"
        assert self.programs[who].status().edition == self.edition

    @rule(who=st.integers(0, 1), approve=st.booleans(), data=st.data())
    def decide_a_proposal(self, who: int, approve: bool, data: st.DataObject) -> None:
        """Approve or reject one that is open, or that was decided before; or one that is none."""
        numbers = [*self.proposals, *self.settled]
        self._refused(who, commands.Approve(max(numbers, default=0) + 10_000))
        if not numbers:
            return
        self._decide(who, approve, data.draw(st.sampled_from(numbers)))

    def _decide(self, who: int, approve: bool, number: int) -> None:
        command = commands.Approve(number) if approve else commands.Reject(number, "test")
        if number in self.settled:
            if approve == (self.settled[number] == "REJECTED"):
                self._refused(who, command)
            else:
                assert self._do(who, command).repeated
            return
        known = self.proposals[number]
        if approve and (known.actor == who or not known.possible()):
            self._refused(who, command)
            return
        reply = self._do(who, command)
        self.settled[number] = known.about[0].upper() if approve else "REJECTED"
        del self.proposals[number]
        if approve:
            known.happens()
        else:
            assert reply.state == "REJECTED"

    @rule(who=st.integers(0, 1), on=st.booleans(), number=st.integers(0, 4))
    def pause_or_resume(self, who: int, on: bool, number: int) -> None:
        """Send it with a key, perhaps long after the same one was carried out."""
        key = f"{'pause' if on else 'resume'} {number}"
        command = commands.Pause("test", key=key) if on else commands.Resume("test", key=key)
        if key in self.keys or self.paused == on:
            assert self._do(who, command).repeated
        else:
            if not any(known.about == ("resumed",) for known in self.proposals.values()) or on:
                self.keys.add(key)
            about = ("paused" if on else "resumed",)
            self._change(who, command, about, lambda: setattr(self, "paused", on))
        assert (self.programs[who].status().paused is not None) == self.paused

    @rule(who=st.integers(0, 1), person=PEOPLE)
    def erase(self, who: int, person: str) -> None:
        known = self.people.get(person)
        if known is not None and known.state in OPEN:
            self._refused(who, commands.Erase(person))
            return
        if known is None:
            assert self._do(who, commands.Erase(person)).state == (
                "UNLINKED" if self.left else "ERASED"
            )
            return

        def happens() -> None:
            self.left += 1
            self.erased.append(self.people.pop(person))
            assert self.programs[who].person(person) is None

        here = lambda: self.people.get(person) is known  # noqa: E731
        self._change(who, commands.Erase(person), ("erased", id(known)), happens, here)

    @rule(who=st.integers(0, 1))
    def scrub(self, who: int) -> None:
        assert self._through_crashes(self.programs[who].scrub).state == "ERASED"
        self.left = 0

    @rule(who=st.integers(0, 1), fault=st.sampled_from(["before", "after"]))
    def crash_in_the_next_commit(self, who: int, fault: str) -> None:
        self.fault = fault

    @rule(who=st.integers(0, 1))
    def restart(self, who: int) -> None:
        self.programs[who].close_ledger()
        self.programs[who] = LiveAudit.open(self.ledger, "model", actor=ACTORS[who])
        self._make_breakable(self.programs[who])

    @rule()
    def hand_out_a_checkpoint(self) -> None:
        point = self.programs[0].checkpoint()
        self.checkpoints.append((point.seq, point.hash))

    # -- what must hold ---------------------------------------------------------------------------

    @invariant()
    def money_is_within_the_cap_and_as_the_model_says(self) -> None:
        head = self.programs[0]._store.head(self.programs[0].row.id)
        assert head.cap == self.cap
        assert head.cap is None or head.spent + head.reserved <= head.cap
        held = sum(HOLD * (1 - k.decision) for k in self.people.values() if k.state in OPEN)
        gone = sum(k.cost for k in (*self.people.values(), *self.erased))
        assert (head.reserved, head.spent + head.overrun) == (held, gone)

    def teardown(self) -> None:
        if not hasattr(self, "programs"):
            return
        self.fault = None
        audit = self.programs[1]
        audit.verify(self.checkpoints)  # chain, books, tables, projections equal replay
        stored = {row.person: row for row in audit.people() if row.person is not None}
        assert set(stored) == set(self.people), "somebody was lost or made up"
        for person, known in self.people.items():
            row = stored[person]
            assert (row.state, row.want) == (known.state, known.want), person
            assert row.outcome == known.outcome, person
        accepts = audit._driver.replay().rules.random_accepts
        assert {g: tuple(counts) for g, counts in accepts.items()} == self.accepts
        shown = audit.status()
        assert (shown.max_in_flight, shown.max_in_flight_groups) == self.limits
        assert (shown.concluded is not None, shown.edition) == (self.concluded, self.edition)
        assert {p.number: p.actor for p in shown.proposals} == {
            number: ACTORS[known.actor] for number, known in self.proposals.items()
        }
        self._verdict_ignores_the_order_of_messages(audit)
        for program in self.programs:
            program.close_ledger()
        shutil.rmtree(self.directory)
        self._become(PRESENT_EDITION)

    def _verdict_ignores_the_order_of_messages(self, audit: LiveAudit) -> None:
        state, other = audit._driver.replay(), audit._driver.replay()
        steps = state.steps
        asked = [step for step in steps if step.kind == "asked"]
        answers = [step for step in steps if step.kind in ("told", "withdrawn")]
        revised = [step for step in steps if step.kind == "corrected"]
        random.Random(len(answers)).shuffle(answers)
        other.steps = [*asked, *answers, *revised]
        # at the end: what a file decides at the beginning stands, whoever is asked after it
        other.random_accepts = [(len(steps), *file) for _, *file in state.random_accepts]
        concluded = state.rules.concluded
        findings = [
            one.audit.finding or (one.audit.so_far(concluded) if concluded else None)
            for one in (state, other)
        ]
        if any(f is not None and "budget" in f.reason for f in findings):
            return  # running out of money is a matter of time, not of evidence
        assert len({f and f.verdict for f in findings}) == 1
        if not self.adaptive:  # its intervals are of the moment at which it could decide
            assert len({f and (f.lower, f.upper, f.estimate) for f in findings}) == 1

    # -- helpers ----------------------------------------------------------------------------------

    def _do(self, who: int, command: commands.Command) -> Any:
        return self._through_crashes(lambda: self.programs[who].do(command))

    def _change(
        self,
        who: int,
        command: commands.Command,
        about: tuple[Any, ...],
        happens: Callable[[], None],
        possible: Callable[[], bool] = lambda: True,
    ) -> None:
        """Carry out what changes something, or propose it where somebody else must approve."""
        reply = self._do(who, command)
        if about[0] not in self.approvals:
            assert reply.state != "PROPOSED"
            happens()
            return
        assert reply.state == "PROPOSED"
        assert reply.number not in self.settled
        same = [number for number, known in self.proposals.items() if known.about == about]
        assert same in ([], [reply.number]), "one thing is proposed twice"
        self.proposals.setdefault(reply.number, Proposed(who, about, happens, possible))

    def _become(self, edition: int) -> None:
        """Make this program a release with another edition of the statistics."""
        self.edition = edition
        evidence.EDITION = edition

    def _full(self, group: str) -> bool:
        """Whether delay forbids another request, by the limits of all and of single groups."""
        limit, groups = self.limits
        waiting = [k for k in self.people.values() if k.decision == 0 and k.state in OPEN]
        if limit is not None and len(waiting) >= limit:
            return True
        return any(
            sum(k.group == g for k in waiting) >= most
            for g, most in groups.items()
            if self.one_stream or g == group
        )

    def _through_crashes(self, call: Callable[[], Any]) -> Any:
        """Call; after a crash, call again as a program would."""
        for _ in range(3):
            try:
                return call()
            except Crash:
                continue
        raise AssertionError("the ledger does not recover")

    def _refused(self, who: int, command: commands.Command) -> EquipoiseError:
        try:
            self._do(who, command)
        except (InvalidInput, ProtocolError) as error:  # a LedgerError is a failure, no refusal
            return error
        raise AssertionError(f"{command} should have been refused")

    def _refused_by_the_books_too(
        self, who: int, file: dict[str, tuple[int, ...]], corrected: dict[str, int]
    ) -> None:
        """Require that neither a command nor a forged event brings this file."""
        self._refused(who, commands.SetRandomAccepts(file, corrected, "test"))
        rules = self.programs[who]._driver.replay().rules
        try:
            counts = {group: list(own) for group, own in file.items()}
            data = {"random_accepts": counts, "corrected": corrected, "why": "test"}
            rules._apply_random_accepts(data, {})
        except ValueError:
            return
        raise AssertionError(f"the books took {file} after {self.accepts}")

    def _price(self, known: Known) -> int:
        if known.decision == 1:
            return 0
        return 5 if known.outcome == 1 else HOLD

    def _make_breakable(self, program: LiveAudit) -> None:
        machine = self

        class Breakable(Store):
            def commit(self, connection: Connection) -> None:
                fault, machine.fault = machine.fault, None
                if fault == "before":
                    connection.run("ROLLBACK")
                    raise Crash
                super().commit(connection)
                if fault == "after":
                    raise Crash

        program._store.__class__ = Breakable


@cache
def _empty_ledger() -> str:
    """Make a ledger without audits once; a copy is quicker than running every migration."""
    path = f"{tempfile.mkdtemp(dir=in_memory())}/empty.db"
    atexit.register(shutil.rmtree, os.path.dirname(path))
    Store(path, create=True).close()
    return path


def _past(accepted: tuple[int, ...]) -> Past:
    """Return an unlimited past in which a test programme accepted so many of each group."""
    past = WORLD.past(None, 0)
    cells = {
        group: GroupCells(*(100 * count for count in own.shares), random_accepts=accepted)
        for group, own in past.cells.items()
    }
    return replace(past, cells=Cells(cells))


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)


def run(options: argparse.Namespace) -> str:
    run_machine(options.runs, options.steps, options.seed)
    return f"{options.runs:,} runs of {options.steps} steps: no invariant violated"


def run_machine(runs: int, steps: int, number: int) -> None:
    """Run the machine; raise at the first invariant that breaks."""
    limits = settings(
        max_examples=runs,
        stateful_step_count=steps,
        deadline=None,
        phases=(Phase.generate,),
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(seed(number)(LedgerMachine), settings=limits)
