"""Write the command reference from the commands themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from sphinx.application import Sphinx

from equipoise.cli import app as command_line

FOLDER = Path("generated") / "commands"


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before sources are read."""
    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / FOLDER))
    return {"parallel_read_safe": True}


def write(folder: Path) -> None:
    """Write a page per command of the first level, and their index."""
    folder.mkdir(parents=True, exist_ok=True)
    root = typer.main.get_command(command_line)
    context = root.context_class(root, info_name="equipoise")
    pages, rows = {}, []
    for name, command in _children(root, context):
        pages[f"{name}.md"] = "\n".join(_chapter(command, name, context, level=1))
        rows.append(f"| [`equipoise {name}`]({name}.md) | {_first_line(command)} |")
    pages["index.md"] = "\n".join(
        [
            "# Command reference",
            "",
            "Written from the commands themselves; `equipoise COMMAND --help` says the same.",
            "An answer exits with 0, whatever the verdict; bad input with 2 and one clear line.",
            "",
            "| command | what it does |",
            "|---|---|",
            *rows,
            "",
            "```{toctree}",
            ":hidden:",
            *(page.removesuffix(".md") for page in pages),
            "```",
            "",
        ]
    )
    for old in set(folder.glob("*.md")) - {folder / name for name in pages}:
        old.unlink()
    for page, text in pages.items():
        path = folder / page
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _chapter(command: Any, name: str, parent: Any, *, level: int) -> Iterator[str]:
    context = command.context_class(command, info_name=name, parent=parent)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield from ("#" * level + f" {context.command_path}", "", *_help(command), "")
    yield from ("```text", usage, "```", "")
    for panel, parameters in _panels(command).items():
        yield from (f"**{panel}**", "")
        for parameter in parameters:
            record = parameter.get_help_record(context)
            if record is not None:
                yield from (_names(record), f": {_escaped(record[1]) or '—'}", "")
    for child_name, child in _children(command, context):
        yield from _chapter(child, child_name, context, level=2)


def _help(command: Any) -> Iterator[str]:
    for line in inspect.cleandoc(command.help or "").replace("\b", "").splitlines():
        if line.startswith("Example: "):
            yield from ("```sh", line.removeprefix("Example: "), "```")
        else:
            yield _escaped(line)


def _children(command: Any, context: Any) -> list[tuple[str, Any]]:
    if not hasattr(command, "list_commands"):
        return []
    names = command.list_commands(context)
    found = [(name, command.get_command(context, name)) for name in names]
    return [(name, child) for name, child in found if not child.hidden]


def _panels(command: Any) -> dict[str, list[Any]]:
    panels: dict[str, list[Any]] = {}
    for parameter in command.params:
        if getattr(parameter, "hidden", False):
            continue
        kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
        panel = getattr(parameter, "rich_help_panel", None) or kind
        panels.setdefault(panel, []).append(parameter)
    return panels


def _names(record: tuple[str, str]) -> str:
    return ", ".join(f"`{name}`" for name in record[0].split(", "))


def _first_line(command: Any) -> str:
    return _escaped(inspect.cleandoc(command.help or "").partition("\n")[0])


def _escaped(text: str) -> str:
    """Return help as Markdown that shows every character."""
    return "".join("\\" + letter if letter in "*_<|[]{" else letter for letter in text)
