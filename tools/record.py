"""Record what outsiders see of the product, and compare two records.

Usage::

    python tools/record.py write FOLDER          # one JSON file per kind of record
    python tools/record.py compare OLD NEW       # print differences; exit code 1 if any
    python tools/record.py missing OLD NEW       # print names that left; exit code 1 if any

A renovation changes names inside the package and nothing outside. This script writes down the
outside: all options and help texts, the JSON output of the commands, the OpenAPI description, the
public Python surface and names, and the events of an exported ledger. It only uses interfaces that
users have, so it runs on an older revision too (set ``PYTHONPATH`` to that revision's ``src``).

Times, hashes and tokens differ from run to run. They are replaced by their kind.
"""

from __future__ import annotations

import difflib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import equipoise as eq

QUESTION = eq.Question("equal_opportunity", gamma=0.05, epsilon=0.05)
READING = ("-g", "race", "-d", "approved", "-o", "repaid")
NARROW_QUESTION = ("--metric", "equal_opportunity", "--gamma", "0.05", "--epsilon", "0.05")

HTTP_METHODS = {"get", "put", "post", "delete", "patch"}
# Modules for users beside those that the package names, as docs/_extensions/api_pages.py has them.
MODULES = (
    *("cells", "client", "finding", "free_check", "history", "ledger", "metrics", "planning"),
    *("protocol", "question", "rates", "report", "simulation"),
)

VARIABLE_TEXTS = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?"), "<time>"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "<hash>"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "<hash>"),
)
VARIABLE_FIELDS = {"seconds", "secret", "salt"}


def main(arguments: list[str]) -> int:
    """Write a record, or compare two."""
    match arguments:
        case ["write", folder]:
            write_records(Path(folder))
            return 0
        case ["compare", old, new]:
            return compare_records(Path(old), Path(new))
        case ["missing", old, new]:
            return print_missing_names(Path(old), Path(new))
        case _:
            print(__doc__)
            return 2


def write_records(folder: Path) -> None:
    """Write each kind of record to a file of its own."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        write_table(Path("loans.csv"))
        records = {
            "options": options(),
            "help": help_texts(),
            "json": json_outputs(),
            "openapi": openapi(),
            "surface": surface(),
            "names": public_names(),
            "events": ledger_events(),
        }
    for kind, record in records.items():
        text = json.dumps(hide_variable_parts(record), indent=1, ensure_ascii=False)
        (folder / f"{kind}.json").write_text(text + "\n", encoding="utf-8")


def compare_records(old_folder: Path, new_folder: Path) -> int:
    """Print the lines that differ; return 1 if any does."""
    differs = False
    for old_path in sorted(old_folder.glob("*.json")):
        old_lines = old_path.read_text(encoding="utf-8").splitlines()
        new_lines = (new_folder / old_path.name).read_text(encoding="utf-8").splitlines()
        for line in difflib.unified_diff(
            old_lines, new_lines, f"old/{old_path.name}", f"new/{old_path.name}", lineterm="", n=1
        ):
            differs = True
            print(line)
    return int(differs)


def print_missing_names(old_folder: Path, new_folder: Path) -> int:
    """Print the names on the outside that the new record lacks; return 1 if there are any."""
    new_names = names_in_records(new_folder)
    missing = [name for name in names_in_records(old_folder) if name not in new_names]
    for name in missing:
        print(name)
    return int(bool(missing))


def names_in_records(folder: Path) -> dict[str, None]:
    """Return options, keys of JSON and events, routes, schemas and Python names, in order."""
    records = {path.stem: json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")}
    names = [f"Python {name}" for name in records["names"]]
    for command, command_options in records["options"].items():
        names += [f"{command} {option}" for option in command_options]
    for command, output in records["json"].items():
        names += [f"JSON of {command}: {path}" for path in key_paths(output)]
    for route, methods in records["openapi"]["paths"].items():
        names += [f"HTTP {method.upper()} {route}" for method in methods if method in HTTP_METHODS]
    for schema, content in records["openapi"]["components"]["schemas"].items():
        names += [f"HTTP schema {schema}.{name}" for name in content.get("properties", ())]
    for event in records["events"]:
        names += [f"event {event['type']}: {path}" for path in key_paths(event)]
    return dict.fromkeys(names)


def key_paths(value: Any, prefix: str = "") -> Iterator[str]:
    """Yield the place of every key in a JSON value; all items of a list are one place."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{prefix}.{key}"
            yield from key_paths(item, f"{prefix}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from key_paths(item, f"{prefix}[]")


def hide_variable_parts(value: Any) -> Any:
    """Return a JSON value with times, hashes and random texts replaced by their kind."""
    if isinstance(value, dict):
        hidden = {}
        for key, item in value.items():
            is_variable = key in VARIABLE_FIELDS
            hidden[hide_variable_parts(key)] = (
                f"<{key}>" if is_variable else hide_variable_parts(item)
            )
        return hidden
    if isinstance(value, list):
        return [hide_variable_parts(item) for item in value]
    if isinstance(value, str):
        for pattern, replacement in VARIABLE_TEXTS:
            value = pattern.sub(replacement, value)
    return value


# -- what is recorded -----------------------------------------------------------------------------


def run_command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run ``equipoise`` in a terminal 100 columns wide."""
    code = "from equipoise.cli import app; app(prog_name='equipoise')"
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "EQUIPOISE_ACTOR": "recorder"}
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )


def commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the words of every command and subcommand, and the command."""
    import typer

    from equipoise.cli import app

    root: Any = typer.main.get_command(app)
    context = typer.Context(root)
    yield (), root
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        yield (name,), command
        if hasattr(command, "list_commands"):
            for subcommand in command.list_commands(context):
                yield (name, subcommand), command.get_command(context, subcommand)


def options() -> dict[str, list[str]]:
    """Return the options and arguments of every command, also those that ``--help`` leaves out."""
    names = {}
    for words, command in commands():
        parts = [name for part in command.params for name in (*part.opts, *part.secondary_opts)]
        names[" ".join(("equipoise", *words))] = sorted(parts)
    return names


def help_texts() -> dict[str, list[str]]:
    """Return the lines of every ``--help`` text, and of ``--help-all`` where there is one."""
    texts = {}
    for words, _ in commands():
        name = " ".join(("equipoise", *words))
        short_text = run_command(*words, "--help").stdout
        texts[f"{name} --help"] = short_text
        if "--help-all" in short_text:
            texts[f"{name} --help-all"] = run_command(*words, "--help-all").stdout
    return {name: [line.rstrip() for line in text.splitlines()] for name, text in texts.items()}


def json_outputs() -> dict[str, Any]:
    """Return what every command with ``--json`` prints, with its exit code."""
    shutil.rmtree("books", ignore_errors=True)
    Path("books").mkdir()
    ledger = ("-l", "books/ledger.db")
    write_people(Path("people.csv"), 40)
    commands: list[tuple[object, ...]] = [
        ("check", "loans.csv", *READING),
        ("check", "loans.csv", *READING, "--metric", "all"),
        ("check", "loans.csv", *READING, "--compare", "ratio", "--against", "White"),
        ("check", "loans.csv", *READING, "--save", "loans.toml"),
        ("check", "loans.csv", "-g", "race", "-d", "approved", "-o", "score"),
        ("check", "missing.csv", *READING),
        ("plan", "loans.toml", *NARROW_QUESTION),
        ("simulate", "rs", "--tau", 50, "--repeats", 4, *NARROW_QUESTION),
        ("simulate", "adaptive", "--repeats", 4, *NARROW_QUESTION),
        ("audit", "new", "loans", "loans.toml", *NARROW_QUESTION, "--budget", 5000, *ledger),
        ("audit", "new", "loans", "loans.toml", *NARROW_QUESTION, *ledger),
        ("audit", "ask", "loans", "anna", "Black", 0, *ledger),
        ("audit", "ask", "loans", "anna", "Black", 0, *ledger),
        ("audit", "ask", "loans", "-f", "people.csv", *ledger),
        ("audit", "executed", "loans", "anna", *ledger),
        ("audit", "tell", "loans", "anna", 1, *ledger),
        ("audit", "tell", "loans", "anna", 0, *ledger),
        ("audit", "correct", "loans", "anna", 0, "--why", "typo", *ledger),
        ("audit", "tell", "loans", "-f", "people.csv", *ledger),
        ("audit", "budget", "loans", 6000, "--why", "more people", *ledger),
        ("audit", "limits", "loans", "--max-in-flight", 30, "--why", "care", *ledger),
        ("audit", "pause", "loans", "--why", "holiday", *ledger),
        ("audit", "ask", "loans", "late", "White", 0, *ledger),
        ("audit", "resume", "loans", "--why", "back", *ledger),
        ("audit", "overdue", "loans", "--days", 0, *ledger),
        ("audit", "status", "loans", *ledger),
        ("audit", "list", *ledger),
        ("audit", "log", "loans", *ledger),
        ("audit", "conclude", "loans", "--yes", *ledger),
        ("audit", "report", "loans", "--to", "report.json", *ledger),
        ("audit", "checkpoint", "loans", *ledger),
        ("audit", "export", "loans", "--to", "out/loans.jsonl", *ledger),
        ("audit", "verify", "loans", *ledger),
        ("token", "list", *ledger),
    ]
    outputs = {}
    for number, words in enumerate(commands):
        done = run_command(*words, "--json")
        outputs[f"{number:02} equipoise {' '.join(map(str, words))}"] = {
            "exit code": done.returncode,
            "output": parse_json(done.stdout),
            "error": parse_json(done.stderr),
        }
    report = Path("report.json")
    if report.exists():
        outputs["report.json"] = json.loads(report.read_text(encoding="utf-8"))
    return outputs


def parse_json(text: str) -> Any:
    """Return the value of a JSON text, or its lines if it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text.splitlines()


def openapi() -> Any:
    """Return the description of the HTTP interface."""
    from equipoise.service import create_app, load_settings

    return create_app(load_settings(ledger="service.db")).openapi()


def surface() -> list[str]:
    """Return the public surface as its own test prints it."""
    path = Path(eq.__file__).parents[2] / "tests" / "unit" / "surface.txt"
    return path.read_text(encoding="utf-8").splitlines()


def public_names() -> list[str]:
    """Return the public names of the package, of modules for users, and of all classes there."""
    names: dict[str, None] = {}
    for name in eq.__all__:
        names |= names_inside(name, getattr(eq, name))
    for name in MODULES:
        if find_spec(f"equipoise.{name}"):  # an older revision may lack it
            names |= names_inside(name, import_module(f"equipoise.{name}"))
    return sorted(names)


def names_inside(name: str, value: Any) -> dict[str, None]:
    """Return the name of a module, class or function, and the names of what it has."""
    names: dict[str, None] = {name: None}
    if inspect.ismodule(value):
        own_names = {n for n, v in vars(value).items() if module_of(v) == value.__name__}
        for part in getattr(value, "__all__", own_names):
            if not part.startswith("_"):
                names |= names_inside(f"{name}.{part}", getattr(value, part))
    elif inspect.isclass(value):
        # Fields without a default are no attributes of the class.
        parts = {*getattr(value, "__dataclass_fields__", ())}
        for parent in value.__mro__:
            if parent.__module__.startswith("equipoise"):
                parts |= vars(parent).keys()
        names |= {f"{name}.{part}": None for part in parts if not part.startswith("_")}
    return names


def module_of(value: object) -> str:
    """Return the module in which a class or a function is defined; empty for other values."""
    return str(getattr(value, "__module__", ""))


def ledger_events() -> Any:
    """Return the events of an audit in which every kind of thing happens, as exported."""
    lender = eq.data.fico_lender()
    live = eq.LiveAudit.create(
        "events.db",
        "recorded",
        lender.history(),
        QUESTION,
        eq.Costs(feature=5, label=1000),
        budget=600_000,
        max_in_flight=60,
        overdue_after=30.0,
        currency="EUR",
        decimals=2,
        seed="07" * 32,
        actor="recorder",
    )
    asked = []
    for number, person in enumerate(lender.world.draw(900, 3)):
        name = f"p-{number}"
        reply = live.ask(name, person.group, person.decision)
        if reply.want is eq.Want.LABEL:
            asked.append((name, person.outcome))
        if len(asked) == 25:
            finish_requests(live, asked)
            asked = []
    live.conclude("the record ends here")
    live.close_ledger()
    exported = run_command("audit", "export", "recorded", "--to", "events.jsonl", "-l", "events.db")
    if exported.returncode:
        raise RuntimeError(exported.stderr)
    lines = Path("events.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def finish_requests(live: eq.LiveAudit, asked: list[tuple[str, int]]) -> None:
    """Withdraw one request, correct one outcome, leave one open, and tell the others."""
    (withdrawn, _), (corrected, outcome), _, *others = asked
    live.withdraw(withdrawn)
    live.tell(corrected, 1 - outcome)
    live.correct(corrected, outcome, why="a slip of the pen")
    for name, other_outcome in others:
        live.tell(name, other_outcome)


def write_table(path: Path) -> None:
    """Write 4,000 seeded past decisions of the embedded lender."""
    rows = ["race,score,approved,repaid"]
    for number, person in enumerate(eq.data.fico_lender().world.draw(4000, 1)):
        repaid = person.outcome if person.decision else ""
        rows.append(f"{person.group},{number % 97},{person.decision},{repaid}")
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def write_people(path: Path, count: int) -> None:
    """Write people who arrive at an audit, with their outcomes."""
    rows = ["person,group,decision,outcome"]
    for number, person in enumerate(eq.data.fico_lender().world.draw(count, 2)):
        rows.append(f"q-{number},{person.group},{person.decision},{person.outcome}")
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
