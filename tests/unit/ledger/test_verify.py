"""The regulator's file: bare Python, and every rule of the books."""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from equipoise.ledger import LiveAudit
from equipoise.ledger import verify as program
from equipoise.ledger.verify import GENESIS, Broken, canonical, digest, draw, main, verify
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld

SEED = "0f" * 32
WORLD = CellWorld.from_shares({"A": (0.45, 0.15, 0.40, 0.5), "B": (0.15, 0.15, 0.70, 0.3)})


@pytest.fixture(scope="module")
def live() -> LiveAudit:
    """An audit in which everything happened once."""
    live = LiveAudit.create(
        "sqlite://",
        "all",
        WORLD.past(None, 0),
        Question(gamma=0.1, epsilon=0.2),
        Costs(feature=5, label=100),
        audit="rs",
        budget=700,
        lottery=0.9,
        max_in_flight=5,
        seed=SEED,
        options={"tau": 50},
    )
    live.pause("a holiday")
    live.ask("early", "A", 0)
    live.resume("it is over")
    live.set_limits(6, {"B": 4}, why="fewer at once")
    live.set_budget(800, "more money")
    for i in range(30):
        live.ask(f"p{i}", "AB"[i % 2], int(i % 3 == 0))
    asked = [row.person for row in live.people(states=("RESERVED",)) if row.decision == 0]
    live.executed(asked[0])
    live.tell(asked[0], 1)
    live.correct(asked[0], 0, "typo")
    live.withdraw(asked[1])
    live.tell(asked[1], 1)
    live.overdue(days=0)
    live.write_off(asked[2])
    live.tell(asked[2], 1)
    live.acting_as("second").set_budget(900, "more")
    live.conclude()
    live.erase(asked[1])
    live.scrub()
    return live


def lines_of(live: LiveAudit) -> list[bytes]:
    return [f"{line}\n".encode() for line in live.lines()]


def keys_of(live: LiveAudit) -> list[dict[str, Any]]:
    rows = (row for row in live.people() if row.person is not None)
    return [{"person": r.number, "pseudonym": r.person, "salt": r.salt} for r in rows]


def forge(lines: list[bytes], change: Callable[[list[dict[str, Any]]], None]) -> list[bytes]:
    """Change events and hash the chain anew, as a clever forger would."""
    events = [json.loads(line) for line in lines]
    change(events)
    previous, out = GENESIS, []
    for number, event in enumerate(events, start=1):
        event |= {"prev": previous, "seq": number}
        previous = digest(canonical(event))
        out.append(canonical(event).encode() + b"\n")
    return out


def first(events: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next(e["data"] for e in events if e["type"] == kind)


def insert(events: list[dict[str, Any]], at: int, event: dict[str, Any]) -> None:
    events.insert(at, {**event, "time": events[at - 1]["time"]})


def requested(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The first denied person who was asked."""
    asked = (e["data"] for e in events if e["type"] == "asked")
    return next(data for data in asked if data["hold"])


def test_the_file_needs_nothing_but_the_standard_library() -> None:
    nodes = list(ast.walk(ast.parse(Path(program.__file__).read_text())))
    imported = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    imported |= {a.name for node in nodes if isinstance(node, ast.Import) for a in node.names}
    imported = {name.partition(".")[0] for name in imported}
    assert imported
    assert imported <= set(sys.stdlib_module_names)


def test_bare_python_accepts_an_export(live: LiveAudit, tmp_path: Path) -> None:
    head = live.export(tmp_path / "audit.jsonl")
    (tmp_path / "verify.py").write_text(Path(program.__file__).read_text())
    live.export(tmp_path / "audit.jsonl", people=tmp_path / "people.jsonl")
    command = [sys.executable, "-I", "-S", "verify.py", "audit.jsonl", "--head", head.hash]
    command += ["--people", "people.jsonl", "--seed", SEED]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("OK: audit 'all'")


def test_it_says_what_the_ledger_says(live: LiveAudit) -> None:
    proof = verify(lines_of(live), seed=SEED)
    status = live.status()
    assert (proof.spent, proof.reserved) == (status.spent, status.reserved)
    assert {s: n for s, n in proof.states.items() if n} == status.states
    assert proof.verdict == "INCONCLUSIVE"


def test_a_checkpoint_proves_a_prefix(live: LiveAudit) -> None:
    lines = lines_of(live)
    early = json.loads(lines[10])["prev"]
    verify(lines, checkpoints=[(10, early)])
    with pytest.raises(Broken, match="line 10: the checkpoint says hash"):
        verify(lines, checkpoints=[(10, "0" * 64)])
    with pytest.raises(Broken, match="a checkpoint covers 999 events"):
        verify(lines, checkpoints=[(999, early)])


def test_a_truncated_export_needs_the_head_to_be_found(live: LiveAudit) -> None:
    lines = lines_of(live)
    head = live.checkpoint().hash
    verify(lines[:-1])
    with pytest.raises(Broken, match="not at the given head"):
        verify(lines[:-1], head=head)
    with pytest.raises(Broken, match="the file was cut"):
        verify([*lines[:-1], lines[-1][:-1]])
    with pytest.raises(Broken, match="empty"):
        verify([])


FORGERIES: dict[str, tuple[Callable[[list[dict[str, Any]]], None], str]] = {
    "a cost made smaller": (lambda e: first(e, "written_off").update(cost=1), "cost is 1"),
    "a hold forgotten": (lambda e: requested(e).update(hold=0), "hold is 0"),
    "a person numbered anew": (lambda e: e.insert(9, e[8]), "person is"),
    "a cap exceeded": (lambda e: lower_caps(e, 300), "exceed"),
    "more in flight": (lambda e: first(e, "limits").update(max_in_flight=1), "in flight"),
    "a cap that was another": (lambda e: first(e, "budget").update(before=1), "before is 1"),
    "a helper's name": (lambda e: e[3].update(type="person"), "unknown type of event"),
    "another helper's": (lambda e: e[3].update(type="require_cap"), "unknown type of event"),
    "nobody who did it": (lambda e: e[3].update(actor=""), "nobody is named"),
    "an extra field": (lambda e: e[3].update(note="x"), "an event has the fields"),
    "an extra fact": (lambda e: requested(e).update(note="x"), "lack or add note"),
    "an extra observation": (
        lambda e: requested(e).update(observation={"q": 1}),
        "only an audit that uses scores",
    ),
    "paused when it was not": (lambda e: [e.pop(1), e.pop(1)], "paused before"),
    "a lottery lost and asked": (lambda e: requested(e).update(drawn=False), "drawn is False"),
    "an approval nobody asked for": (
        lambda e: first(e, "concluded").update(proposal=3),
        "needs no",
    ),
    "an unknown event": (lambda e: e[3].update(type="forgotten"), "unknown type of event"),
    "a second beginning": (
        lambda e: e.insert(3, {**e[0], "time": e[2]["time"]}),
        "unknown type of event 'created'",
    ),
    "another audit's event": (
        lambda e: e[3].update(audit="x"),
        "audit is .x.; by the events before",
    ),
    "an unknown group": (lambda e: requested(e).update(group="Z"), "unknown group 'Z'"),
    "an outcome of 2": (lambda e: first(e, "revealed").update(outcome=2), "not 0 or 1"),
    "a newer format": (lambda e: e[0]["data"].update(format=99), "not this program's"),
    "a skipped state": (lambda e: first(e, "written_off").update(was="EXECUTED"), "was is"),
    "an approval that says more": (
        lambda e: first(e, "scrubbed").update(erased=2),
        "2 people are said to be out of the files",
    ),
    "a later file without somebody": (
        lambda e: add_file(e, {"A": [4, 1, 0], "B": [0, 0, 0]}, {"A": [2, 4, 0], "B": [9, 0, 0]}),
        r"of \[4, 1, 0\] random accepts of 'A' some miss in \[2, 4, 0\]",
    ),
    "a later file beyond counting": (
        lambda e: add_file(e, {"A": [10**400, 0, 0], "B": [0, 0, 0]}),
        "random accepts .* of 'A', 0 corrected",
    ),
    "corrections of nobody": (
        lambda e: add_file(e, {"A": [1, 1, 1], "B": [0, 0, 0]}, corrected={"Z": 1}),
        r"groups beside them is \['Z'\]",
    ),
    "a key used twice": (lambda e: [x.update(key="k") for x in e[2:4]], "known key"),
    "a missing field": (lambda e: requested(e).pop("hold"), "lack or add hold"),
}


def add_file(
    events: list[dict[str, Any]],
    *files: dict[str, list[int]],
    corrected: dict[str, int] | None = None,
) -> None:
    for counts in files:
        data = {"random_accepts": counts, "corrected": corrected or {}, "why": "a file"}
        events.append({**events[-1], "type": "random_accepts", "data": data})


def lower_caps(events: list[dict[str, Any]], cap: int) -> None:
    events[0]["data"]["budget"] = cap
    for event in events:
        if event["type"] == "budget":
            event["data"] |= {"budget": cap, "before": cap}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forger_who_knows_the_format_still_breaks_a_rule(live: LiveAudit, name: str) -> None:
    change, message = FORGERIES[name]
    with pytest.raises(Broken, match=message):
        verify(forge(lines_of(live), change), seed=SEED)


def test_the_seed_must_be_the_one_promised(live: LiveAudit) -> None:
    with pytest.raises(Broken, match="not the one whose hash"):
        verify(lines_of(live), seed="00" * 32)


def test_the_key_table_shows_who_was_asked_and_that_the_lottery_was_held(live: LiveAudit) -> None:
    lines, keys = lines_of(live), keys_of(live)
    assert len(keys) == live.status().people - 1  # one was erased
    verify(lines, people=keys, seed=SEED)
    forged = [
        (keys[1:], "missing who were not erased"),
        ([*keys, keys[0]], "who has none or another"),
        ([{**keys[0], "pseudonym": "other"}, *keys[1:]], "does not open"),
        ([{**keys[0], "salt": "zz"}, *keys[1:]], "cannot be read"),
    ]
    for people, message in forged:
        with pytest.raises(Broken, match=message):
            verify(lines, people=people, seed=SEED)
    drawn = next(k for k, e in enumerate(map(json.loads, lines)) if "drawn" in e["data"])

    def lie(events: list[dict[str, Any]]) -> None:
        data = events[drawn]["data"]
        data.update(
            drawn=not data["drawn"], why="decided" if data["why"] == "lottery" else "lottery"
        )
        data.update(want="NOTHING", hold=0)

    with pytest.raises(Broken):
        verify(forge(lines, lie), people=keys, seed=SEED)


def test_the_lottery_is_uniform_enough_and_known_in_advance() -> None:
    draws = [draw(bytes.fromhex(SEED), f"p{i}") for i in range(4000)]
    assert draws == [draw(bytes.fromhex(SEED), f"p{i}") for i in range(4000)]
    share = sum(d < 0.3 * 2**53 for d in draws) / 4000
    assert abs(share - 0.3) < 5 * (0.3 * 0.7 / 4000) ** 0.5


def test_the_command_line_answers_with_codes(
    live: LiveAudit, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "audit.jsonl"
    live.export(path)
    assert main([str(path)]) == 0
    assert "no --head given" in capsys.readouterr().out
    assert main([str(path), "--head", "0" * 64]) == 2
    assert "BROKEN" in capsys.readouterr().err
    assert main([str(tmp_path / "missing")]) == 2


def test_lines_read_from_a_stream_are_enough(live: LiveAudit) -> None:
    assert verify(io.BytesIO(b"".join(lines_of(live)))).seq == live.checkpoint().seq
