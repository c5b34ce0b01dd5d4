"""A random machine against a plain model: crashes, duplicates, reordering, conflicts."""

from __future__ import annotations

import argparse
import atexit
import os
import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
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

from equipoise.errors import Conflict, EquipoiseError
from equipoise.ledger import LiveAudit, driver
from equipoise.ledger import commands as do
from equipoise.ledger.database import Connection
from equipoise.ledger.state import RequestLog
from equipoise.ledger.store import Store
from equipoise.question import Costs, Question, Want
from equipoise.worlds import CellWorld
from study.postgres import in_memory

WORLD = CellWorld.from_shares({"A": (0.45, 0.15, 0.40, 0.5), "B": (0.15, 0.15, 0.70, 0.3)})
COSTS = Costs(feature=5, label=100)
HOLD = 105
PEOPLE = st.integers(0, 24).map(lambda i: f"p{i}")
BIT = st.integers(0, 1)


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


class LedgerMachine(RuleBasedStateMachine):
    """Two programs on one ledger; ``self.people`` is what must be true of it."""

    @initialize(
        budget=st.sampled_from([None, 330, 1000]),
        limit=st.sampled_from([None, 2, 5]),
        tau=st.integers(1, 3),
        audit=st.sampled_from(["rs", "baseline"]),
        lottery=st.sampled_from([1.0, 1.0, 0.6]),
    )
    def begin(
        self, budget: int | None, limit: int | None, tau: int, audit: str, lottery: float
    ) -> None:
        self.directory = tempfile.mkdtemp(dir=in_memory())
        self.ledger = f"{self.directory}/ledger.db"
        shutil.copy(_empty_ledger(), self.ledger)
        self.budget = budget
        self.people: dict[str, Known] = {}
        self.erased: list[Known] = []
        self.left = 0  # erased and not scrubbed
        self.paused = False
        self.keys: set[str] = set()
        self.checkpoints: list[tuple[int, str]] = []
        self.fault: str | None = None
        first = LiveAudit.create(
            self.ledger,
            "model",
            WORLD.past(None, 0),
            Question(gamma=0.1, epsilon=0.2),
            COSTS,
            audit=audit,
            budget=budget,
            max_in_flight=limit,
            lottery=lottery,
            seed="5a" * 32,
            options={"tau": tau},
        )
        self.programs = [first, LiveAudit.open(self.ledger, "model")]
        for program in self.programs:
            self._make_breakable(program)

    # -- what may happen --------------------------------------------------------------------------

    @rule(who=st.integers(0, 1), person=PEOPLE, group=st.sampled_from("AB"), decision=BIT)
    def ask(self, who: int, person: str, group: str, decision: int) -> None:
        known = self.people.get(person)
        if known is not None and (known.group, known.decision) != (group, decision):
            self._refused(who, do.Ask(person, group, decision))
            return
        reply = self._do(who, do.Ask(person, group, decision))
        if known is None:
            assert reply.want is Want.NOTHING or reply.hold == HOLD * (1 - decision)
            state = "SKIPPED" if reply.want is Want.NOTHING else "RESERVED"
            self.people[person] = Known(group, decision, reply.want, state)
        else:
            assert reply.want is known.want, "a stored decision changed"

    @rule(who=st.integers(0, 1), person=PEOPLE, outcome=BIT)
    def tell(self, who: int, person: str, outcome: int) -> None:
        known = self.people.get(person)
        if known is None:
            self._refused(who, do.Tell(person, outcome))
            return
        if known.outcome is not None and known.outcome != outcome:
            assert isinstance(self._refused(who, do.Tell(person, outcome)), Conflict)
            return
        reply = self._do(who, do.Tell(person, outcome))
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
            self._refused(who, do.Execute(person))
            return
        self._do(who, do.Execute(person))
        known.state = "EXECUTED" if known.state == "RESERVED" else known.state

    @rule(who=st.integers(0, 1), person=PEOPLE)
    def withdraw(self, who: int, person: str) -> None:
        known = self.people.get(person)
        if known is None or known.state not in ("RESERVED", "WITHDRAWN"):
            self._refused(who, do.Withdraw(person))
            return
        self._do(who, do.Withdraw(person))
        known.state = "WITHDRAWN"

    @rule(who=st.integers(0, 1), person=PEOPLE, give_up=st.booleans())
    def become_overdue(self, who: int, person: str, give_up: bool) -> None:
        known = self.people.get(person)
        if known is None or known.state not in ("RESERVED", "EXECUTED", "OVERDUE"):
            self._refused(who, do.MarkOverdue(person))
            return
        self._do(who, do.MarkOverdue(person))
        known.state = "OVERDUE"
        if give_up:
            self._do(who, do.WriteOff(person))
            known.state = "WRITTEN_OFF"
            known.cost = HOLD * (1 - known.decision)

    @rule(who=st.integers(0, 1), person=PEOPLE, outcome=BIT)
    def correct(self, who: int, person: str, outcome: int) -> None:
        known = self.people.get(person)
        if known is None or known.outcome is None:
            self._refused(who, do.Correct(person, outcome, "test"))
            return
        self._do(who, do.Correct(person, outcome, "test"))
        if outcome != known.outcome:
            known.outcome = outcome
            if known.state in ("REVEALED", "CORRECTED"):
                known.state, known.cost = "CORRECTED", self._price(known)

    @rule(who=st.integers(0, 1), more=st.sampled_from([None, 0, 300]))
    def change_the_budget(self, who: int, more: int | None) -> None:
        head = self.programs[who]._store.head(self.programs[who].row.id)
        if head.spent + head.reserved > 0:
            self._refused(who, do.SetBudget(head.spent + head.reserved - 1, "less"))
        cap = None if more is None else head.spent + head.reserved + more
        self._do(who, do.SetBudget(cap, "test"))

    @rule(who=st.integers(0, 1), on=st.booleans(), number=st.integers(0, 4))
    def pause_or_resume(self, who: int, on: bool, number: int) -> None:
        """Send it with a key, perhaps long after the same one was carried out."""
        key = f"{'pause' if on else 'resume'} {number}"
        self._do(who, do.Pause("test", key=key) if on else do.Resume("test", key=key))
        if key not in self.keys and self.paused != on:
            self.paused = on
            self.keys.add(key)
        assert (self.programs[who].status().paused is not None) == self.paused

    @rule(who=st.integers(0, 1), person=PEOPLE)
    def erase(self, who: int, person: str) -> None:
        known = self.people.get(person)
        if known is not None and known.state in ("RESERVED", "EXECUTED", "OVERDUE"):
            self._refused(who, do.Erase(person))
            return
        self.left += known is not None
        assert self._do(who, do.Erase(person)).state == ("UNLINKED" if self.left else "ERASED")
        assert self.programs[who].person(person) is None
        if known is not None:
            self.erased.append(self.people.pop(person))

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
        self.programs[who] = LiveAudit.open(self.ledger, "model")
        self._make_breakable(self.programs[who])

    @rule()
    def hand_out_a_checkpoint(self) -> None:
        point = self.programs[0].checkpoint()
        self.checkpoints.append((point.seq, point.hash))

    # -- what must hold ---------------------------------------------------------------------------

    @invariant()
    def money_is_within_the_cap_and_as_the_model_says(self) -> None:
        head = self.programs[0]._store.head(self.programs[0].row.id)
        assert head.cap is None or head.spent + head.reserved <= head.cap
        open_requests = [k for k in self.people.values() if k.state in ("RESERVED", "EXECUTED",
                                                                        "OVERDUE")]  # fmt: skip
        held = sum(HOLD * (1 - k.decision) for k in open_requests)
        gone = sum(k.cost for k in (*self.people.values(), *self.erased))
        assert (head.reserved, head.spent + head.overrun) == (held, gone)

    def teardown(self) -> None:
        if not hasattr(self, "programs"):
            return
        self.fault = None
        live = self.programs[1]
        live.verify(self.checkpoints)  # chain, books, tables, projections equal replay
        stored = {row.person: row for row in live.people() if row.person is not None}
        assert set(stored) == set(self.people), "somebody was lost or made up"
        for person, known in self.people.items():
            row = stored[person]
            assert (row.state, row.want) == (known.state, known.want), person
            assert row.outcome == known.outcome, person
        self._verdict_ignores_the_order_of_messages(live)
        for program in self.programs:
            program.close_ledger()
        shutil.rmtree(self.directory)

    def _verdict_ignores_the_order_of_messages(self, live: LiveAudit) -> None:
        state = live._driver.replay()
        asked = [step for step in state.log.log if step[0] == 0]
        answers = [step for step in state.log.log if step[0] in (1, 2)]
        revised = [step for step in state.log.log if step[0] == 3]
        random.Random(len(answers)).shuffle(answers)
        other = RequestLog(state.settings, [*asked, *answers, *revised])
        other.cap = state.books.head.cap
        concluded = state.books.concluded
        findings = [
            log.audit.finding or (log.audit.so_far(concluded) if concluded else None)
            for log in (state.log, other)
        ]
        if any(f is not None and "budget" in f.reason for f in findings):
            return  # running out of money is a matter of time, not of evidence
        known = [f and (f.verdict, f.lower, f.upper, f.estimate) for f in findings]
        assert known[0] == known[1]

    # -- helpers ----------------------------------------------------------------------------------

    def _do(self, who: int, command: do.Command) -> Any:
        return self._through_crashes(lambda: self.programs[who].do(command))

    def _through_crashes(self, call: Callable[[], Any]) -> Any:
        """Call; after a crash, call again as a program would."""
        for _ in range(3):
            try:
                return call()
            except Crash:
                continue
        raise AssertionError("the ledger does not recover")

    def _refused(self, who: int, command: do.Command) -> EquipoiseError:
        try:
            self._do(who, command)
        except EquipoiseError as error:
            return error
        raise AssertionError(f"{command} should have been refused")

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


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)


def run(options: argparse.Namespace) -> str:
    run_machine(options.runs, options.steps, options.seed)
    return f"{options.runs:,} runs of {options.steps} steps: no invariant violated"


def run_machine(runs: int, steps: int, number: int) -> None:
    """Run the machine; raise at the first invariant that breaks."""
    before, driver.SNAPSHOT_EVERY = driver.SNAPSHOT_EVERY, 7
    try:
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
    finally:
        driver.SNAPSHOT_EVERY = before
