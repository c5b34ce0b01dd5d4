"""Plans and new audits: made within limits in another process, in turn, and not again here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from equipoise.history import History
from equipoise.ledger import LiveAudit, settings
from equipoise.ledger.live import EventsLost
from equipoise.ledger.state import AuditState
from equipoise.planning import feasibility
from equipoise.question import Costs, Question
from equipoise.service import Role, load_settings
from equipoise.service.access import Caller
from equipoise.service.audits import OpenAudits
from equipoise.service.problems import HttpProblem
from equipoise.service.work_turns import WorkTurns
from tests.service.attacking import kind
from tests.support.postgres import in_memory
from tests.support.serving import PAST, Served

QUESTION = {"metric": "equal_opportunity", "gamma": 0.2, "epsilon": 0.1}
NARROW = {"metric": "equal_opportunity", "gamma": 0.05, "epsilon": 0.1}


def never(*_: object, **__: object) -> Any:
    raise AssertionError("this belongs into the limited process")


def test_a_new_audit_is_made_in_another_process_only(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "build", never)
    monkeypatch.setattr(AuditState, "_rebuild", never)
    monkeypatch.setattr(feasibility, "find_obstacle", never)
    auditor = served.as_("auditor")
    body = {"past": PAST, "question": QUESTION, "confirm": True}
    answer = auditor.put("/v1/audits/elsewhere", json=body)
    assert answer.status_code == 200, answer.text
    many = {"approved_positive": 6000, "approved_negative": 700, "denied": 3300}
    few = {"approved_positive": 20, "approved_negative": 3, "denied": 12}
    past = {"A": many, "B": many, "few": few}
    refused = auditor.put("/v1/audits/refused", json={"past": past, "question": NARROW})
    assert kind(refused) == "not-feasible"
    assert refused.json()["leave_out"] == ["few"]
    broke = {"past": PAST, "question": QUESTION, "costs": {"label": 100}, "budget": 1}
    refused = auditor.put("/v1/audits/broke", json={**broke, "confirm": True})
    assert kind(refused) == "invalid-input"
    assert "must pay for at least one request" in refused.json()["detail"]


def test_a_verdict_of_the_past_alone_is_stored_at_once(served: Served) -> None:
    auditor = served.as_("auditor")
    body = {"past": PAST, "question": {**QUESTION, "metric": "demographic_parity"}}
    assert auditor.put("/v1/audits/decided", json=body).status_code == 200
    assert auditor.get("/v1/audits/decided/status").json()["finding"]["verdict"] == "UNFAIR"
    assert "equipoise_audit_verdict" in served.as_("regulator").get("/metrics").text


@pytest.fixture
def open_audits() -> Iterator[OpenAudits]:
    """Two audits that were used, where one needs more memory than all may have."""
    with TemporaryDirectory(dir=in_memory()) as folder:
        ledger = f"{folder}/ledger.db"
        past = History.from_cells(PAST)
        for name in ("first", "second"):
            LiveAudit.create(
                ledger, name, past, Question(**QUESTION), Costs(5, 100), confirm=True
            ).close_ledger()
        audits = OpenAudits(load_settings(ledger=ledger, audit_memory=1, open_memory=1))
        for name in ("first", "second"):
            audits.open(name).writer.ask("p", "B", 0)
        yield audits
        audits.close()


def test_an_audit_that_takes_too_much_is_refused(open_audits: OpenAudits) -> None:
    made = settings.new_settings(
        *("third", History.from_cells(PAST), Question(**QUESTION), Costs(5, 100)),
        seed="0" * 64,
        is_possible=True,
    )
    caller = Caller("anna", Role.AUDITOR)
    with pytest.raises(HttpProblem, match="raise EQUIPOISE_AUDIT_MEMORY") as refused:
        open_audits.begin(made, "0" * 64, caller, confirm=True)
    assert refused.value.kind == "too-large"
    assert [row.name for row in open_audits.ledger.audits()] == ["first", "second"]


def test_audits_used_least_recently_are_let_go(open_audits: OpenAudits) -> None:
    open_audits.limit_memory()
    first = open_audits.if_open(open_audits.ledger.audit("first").uid)
    second = open_audits.if_open(open_audits.ledger.audit("second").uid)
    assert first is not None
    assert second is not None
    assert second.memory > 1 << 20  # the boxes of its evidence
    assert first.writer.look_in_memory(lambda state: state is None)
    assert second.writer.look_in_memory(lambda state: state is not None)
    # Looking whether it is there reads nothing, and whoever uses it notices nothing.
    first.writer.catch_up(wait=False)
    assert first.writer.look_in_memory(lambda state: state is None)
    assert first.writer.ask("p", "B", 0).repeated
    assert open_audits.open("first").look() is not None
    open_audits.limit_memory()
    assert second.writer.look_in_memory(lambda state: state is None)


def test_an_audit_that_was_let_go_remembers_what_it_saw(open_audits: OpenAudits) -> None:
    first = open_audits.open("first")
    assert first.let_go()
    with open_audits.ledger.transaction() as connection:
        connection.run("UPDATE audits SET hash = 'another' WHERE name = 'first'")
    with pytest.raises(EventsLost):
        first.writer.catch_up(wait=False)


def test_auditors_need_not_wait_for_the_plans_of_others() -> None:
    turns = WorkTurns(wait_seconds=0.01)
    with turns.turn(Role.REGULATOR):
        with turns.turn(Role.AUDITOR):
            pass
        for role in (Role.REGULATOR, Role.APPROVER):
            with pytest.raises(HttpProblem) as refused, turns.turn(role):
                pass
            assert refused.value.kind == "busy"
    with turns.turn(Role.REGULATOR):
        pass


def test_few_may_wait_for_their_turn() -> None:
    turns = WorkTurns(wait_seconds=30.0)
    ended = threading.Event()

    def wait_for_turn() -> None:
        with suppress(HttpProblem), turns.turn(Role.REGULATOR):
            ended.wait()

    waiting = [threading.Thread(target=wait_for_turn) for _ in range(8)]
    for thread in waiting:
        thread.start()
    while turns._others.places._value:
        time.sleep(0.001)
    with pytest.raises(HttpProblem, match="too many"), turns.turn(Role.REGULATOR):
        pass
    ended.set()
    for thread in waiting:
        thread.join()


def test_jobs_end_with_a_server_that_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, time\n"
        "from pathlib import Path\n"
        "from equipoise._job_program import serve_jobs\n"
        "def work(job):\n"
        "    Path(job['file']).write_text(f'{os.getppid()} {os.getpid()}')\n"
        "    time.sleep(60)\n"
        "serve_jobs(work)\n"
    )
    pids = tmp_path / "pids"
    server = subprocess.Popen(
        [
            *(sys.executable, "-c"),
            "import sys\n"
            "from pathlib import Path\n"
            "from equipoise.service.job_process import JobProcess\n"
            "job = {'file': sys.argv[2], 'memory': 1 << 30, 'seconds': 60}\n"
            "JobProcess(Path(sys.argv[1])).answer(job)",
            *(str(program), str(pids)),
        ]
    )
    while not pids.exists() or not pids.read_text():
        time.sleep(0.01)
    server.send_signal(signal.SIGKILL)
    server.wait()
    for pid in map(int, pids.read_text().split()):
        while is_running(pid):
            time.sleep(0.01)


def is_running(pid: int) -> bool:
    """Say whether a process runs; one that has ended may still be in the list."""
    try:
        os.kill(pid, 0)
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_a_mistake_of_the_program_is_no_limit(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    from equipoise.service import audits

    monkeypatch.setattr(audits, "plan_within_limits", lambda *_: never())
    served.create("mistake")
    answer = served.as_("regulator").get("/v1/audits/mistake/plan")
    assert kind(answer) == "internal"


def test_batches_that_wait_leave_threads_to_others(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    from equipoise.ledger.live import Driver

    for name in ("batches", "singles"):
        served.create(name)
    may_go_on = threading.Event()
    serve = Driver._serve

    def serve_later(self: Driver, jobs: Any) -> None:
        if len(jobs[0].commands) > 10:
            may_go_on.wait()
        serve(self, jobs)

    monkeypatch.setattr(Driver, "_serve", serve_later)
    people = [str(number) for number in range(11)]
    answers: list[int] = []

    def send() -> None:
        answer = served.send("batches", "ask", *people, group="B", decision=0)
        answers.append(answer.status_code)

    served.as_("writer")
    senders = [threading.Thread(target=send) for _ in range(70)]  # more than there are threads
    for sender in senders:
        sender.start()
    try:
        assert served.send("singles", "ask", "p", group="B", decision=0).status_code == 200
        assert served.client().get("/readyz").status_code == 200
    finally:
        may_go_on.set()
        for sender in senders:
            sender.join()
    assert answers == [200] * 70
