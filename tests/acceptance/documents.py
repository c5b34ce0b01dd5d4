"""Code blocks of the documents, to run as a reader would."""

from __future__ import annotations

import io
import os
import re
import runpy
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from tests.acceptance.shell import equipoise

__all__ = [
    "ROOT",
    "Block",
    "Outputs",
    "blocks",
    "run_in_process",
    "run_shell_blocks",
    "with_outputs",
]

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
_FENCE = re.compile(r"^```(\w+|\{code-cell\} python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TO_RUN = re.compile(r"^```(bash|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_END = "--- end of block ---"


@dataclass(frozen=True)
class Block:
    """A fenced block: ``bash`` and ``python`` are run, other languages are shown only."""

    language: str
    text: str


@dataclass(frozen=True)
class Outputs:
    """What each block printed, and what went wrong (empty if nothing)."""

    outputs: list[str]
    failure: str


def blocks(path: str, *languages: str) -> list[Block]:
    """Return a document's blocks in some languages, in order.

    A notebook's cells are ``python`` too, without their options.
    """
    text = (ROOT / path).read_text(encoding="utf-8")
    found = [
        Block(language.removeprefix("{code-cell} "), re.sub(r"^:.*\n", "", body, flags=re.M))
        for language, body in _FENCE.findall(text)
    ]
    return [block for block in found if block.language in languages]


def run_shell_blocks(text: str, folder: Path, programs: Path = BIN) -> Outputs:
    """Run a text's ``bash`` and ``python`` blocks in a folder, from top to bottom, in one shell.

    ``programs`` is where ``python`` and ``equipoise`` are.
    """
    steps = []
    for language, body in _TO_RUN.findall(text):
        steps.append(
            body if language == "bash" else f"python - <<'END_OF_PYTHON'\n{body}END_OF_PYTHON\n"
        )
        steps.append(f"echo '{_END}'\n")
    done = in_shell("".join(steps), folder, programs)
    outputs = done.stdout.split(f"{_END}\n")
    failure = ""
    if done.returncode:
        failure = f"block {len(outputs)} exits with {done.returncode}: {done.stderr.strip()}"
    return Outputs(outputs[:-1], failure)


def run_in_process(page: str) -> str:
    """Run a document's blocks from top to bottom in this process and folder; return the output.

    Programs are not started, which takes longer than what they do: the wheel's test and the site
    do that. A line that ends with ``2>&1 || true`` must be refused.
    """
    said, names = io.StringIO(), {"__name__": "__main__"}
    with redirect_stdout(said):
        for block in blocks(page, "bash", "python"):
            if block.language == "python":
                exec(compile(block.text, page, "exec"), names)
                continue
            for line in block.text.replace("\\\n", " ").splitlines():
                print(_run_line(line))
    return said.getvalue()


def _run_line(line: str) -> str:
    program, *words = shlex.split(line, comments=True) or ["true"]
    if program == "equipoise":
        may_fail = words[-3:] == ["2>&1", "||", "true"]
        done = equipoise(*(words[:-3] if may_fail else words))
        assert done.returncode == (2 if may_fail else 0), done.stderr
        return done.stdout
    if program == "python" and words[0] == "-c":
        exec(words[1], {})
        return ""
    if program == "python":
        with patch.object(sys, "argv", words):
            runpy.run_path(words[0], run_name="__main__")
        return ""
    return subprocess.run(line, shell=True, check=True, capture_output=True, text=True).stdout


def with_outputs(text: str, outputs: list[str]) -> str:
    """Return a text in which every block that printed something is followed by that."""
    rest = iter(outputs)

    def shown(match: re.Match[str]) -> str:
        output = next(rest).strip("\n")
        return f"{match[0]}\n\n```text\n{output}\n```" if output else match[0]

    return _TO_RUN.sub(shown, text)


def in_shell(script: str, folder: Path, programs: Path = BIN) -> subprocess.CompletedProcess[str]:
    """Run a script in a folder, stopping at the first command that fails."""
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "80", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
