"""Count what makes documents hard to read: ``python tools/plain_english.py [--worst N]``.

Counted are README, CHANGELOG, CONTRIBUTING, every page under ``docs`` and the help texts of the
command line. Code blocks, comments and the targets of links are left out.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ACTORS = re.compile(r"\b(?:nobody|somebody|whoever|everybody)(?:'s)?\b", re.IGNORECASE)
LONG_SENTENCE = 30  # words
_CODE = re.compile(r"^(`{3,}|:{3,}).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_FRONT_MATTER = re.compile(r"\A---\n.*?^---$", re.MULTILINE | re.DOTALL)
_LIST_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.)\s+")
_SENTENCE_END = re.compile(r"(?<=[.!?:])[*_)\"]*\s+(?=[\"(*_`\[]*[A-Z0-9`])")


@dataclass(frozen=True)
class Figures:
    """What was counted in one text."""

    words: int
    semicolons: int
    vague_actors: int
    long_sentences: list[str]


def count(paragraphs: list[str]) -> Figures:
    """Count words, semicolons, vague actors and long sentences."""
    text = "\n".join(paragraphs)
    sentences = [
        sentence for paragraph in paragraphs for sentence in _SENTENCE_END.split(paragraph)
    ]
    return Figures(
        words=len(text.split()),
        semicolons=text.count(";"),
        vague_actors=len(ACTORS.findall(text)),
        long_sentences=[s for s in sentences if len(_words(s)) > LONG_SENTENCE],
    )


def paragraphs_of_page(text: str) -> list[str]:
    """Return a Markdown page's paragraphs, list items and table cells without code and links."""
    text = _FRONT_MATTER.sub("", text)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    # A glossary is prose inside a fence, so only its fence is removed.
    text = re.sub(r"^```\{glossary\}\n(.*?)^```$", r"\1", text, flags=re.MULTILINE | re.DOTALL)
    text = _CODE.sub("\n", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`\n]*(?:\n[^`\n]*)?`", "code", text)
    paragraphs: list[str] = []
    current: list[str] = []
    for line in [*text.splitlines(), ""]:
        is_table_row = line.lstrip().startswith("|")
        starts_anew = line.startswith("#") or _LIST_ITEM.match(line) or is_table_row
        if (not line.strip() or starts_anew) and current:
            paragraphs.append(" ".join(current))
            current = []
        if is_table_row:
            paragraphs += [cell.strip() for cell in line.split("|") if cell.strip(" -:")]
        elif line.strip():
            current.append(_LIST_ITEM.sub("", line).strip())
    return paragraphs


def help_texts() -> list[str]:
    """Return the help of every command and option, as the command line shows it."""
    import typer

    from equipoise.cli import app

    root = typer.main.get_command(app)
    return list(_help_texts(root, root.context_class(root, info_name="equipoise")))


def _help_texts(command: Any, context: Any) -> Iterator[str]:
    yield from (" ".join(p.split()) for p in (command.help or "").split("\n\n"))
    for parameter in command.params:
        yield getattr(parameter, "help", None) or ""
    if hasattr(command, "list_commands"):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            yield from _help_texts(child, child.context_class(child, parent=context))


def _words(sentence: str) -> list[str]:
    return [word for word in sentence.split() if re.search(r"\w", word)]


def main(arguments: list[str]) -> None:
    """Print a line per text and one for all, and on request the longest sentences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worst", type=int, default=0, metavar="N", help="longest sentences shown")
    parser.add_argument("--only", default="", metavar="TEXT", help="pages whose path contains TEXT")
    options = parser.parse_args(arguments)
    pages = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    pages += [p for p in sorted((ROOT / "docs").rglob("*.md")) if "generated" not in p.parts]
    texts = {
        str(page.relative_to(ROOT)): paragraphs_of_page(page.read_text(encoding="utf-8"))
        for page in pages
    }
    texts["help of the command line"] = help_texts()
    texts = {name: text for name, text in texts.items() if options.only in name}
    texts["all"] = [paragraph for text in texts.values() for paragraph in text]
    header = ("words", "semicolons", "per 1,000", "vague actors", "over 30 words")
    print(f"{'':38}" + "".join(f"{name:>15}" for name in header))
    for name, text in texts.items():
        figures = count(text)
        per_thousand = 1_000 * figures.semicolons / max(figures.words, 1)
        print(
            f"{name:38}{figures.words:>15,}{figures.semicolons:>15}{per_thousand:>15.1f}"
            f"{figures.vague_actors:>15}{len(figures.long_sentences):>15}"
        )
    longest = sorted(count(texts["all"]).long_sentences, key=lambda s: -len(_words(s)))
    for sentence in longest[: options.worst]:
        print(f"\n{len(_words(sentence))} words: {sentence}")


if __name__ == "__main__":
    main(sys.argv[1:])
