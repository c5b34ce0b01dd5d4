"""Code blocks of the documents, to run as a reader would."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "Block", "blocks"]

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: ``bash`` and ``python`` are run, other languages are shown only."""

    language: str
    text: str


def blocks(path: str, *languages: str) -> list[Block]:
    """Return a document's blocks in some languages, in order."""
    text = (ROOT / path).read_text(encoding="utf-8")
    found = [Block(language, body) for language, body in _FENCE.findall(text)]
    return [block for block in found if block.language in languages]
