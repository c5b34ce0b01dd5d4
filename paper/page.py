"""The results as files: CSV tables, SVG pictures, an HTML page, Markdown."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from equipoise import __version__
from paper.experiments import Edition
from paper.notes import notes

__all__ = ["write_docs", "write_results"]


def write_results(edition: Edition, out: Path) -> list[Path]:
    """Write tables, pictures and pages under ``out``; return the files."""
    files: dict[str, str] = {
        f"{name}.csv": table.to_csv()
        for chapter in edition.chapters
        for table in chapter.tables
        for name in [f"{chapter.name}-{table.name}"]
    }
    files |= {f"{name}.svg": svg for name, svg in edition.pictures.items()}
    files["paper.html"] = _render("paper.html.j2", edition, autoescape=True)
    files["paper.md"] = _render("paper.md.j2", edition, folder="")
    if "notes" in edition.results:
        files["paper-notes.md"] = _render("notes.md.j2", edition)
    return _write(files, out)


def write_docs(edition: Edition, folder: Path) -> list[Path]:
    """Write ``paper.md``, ``paper-notes.md`` and the pictures they show under ``folder``."""
    files = {f"paper/{name}.svg": svg for name, svg in edition.pictures.items()}
    files["paper.md"] = _render("paper.md.j2", edition, folder="paper/")
    if "notes" in edition.results:
        files["paper-notes.md"] = _render("notes.md.j2", edition)
    return _write(files, folder)


def _render(template: str, edition: Edition, *, autoescape: bool = False, folder: str = "") -> str:
    environment = Environment(
        loader=PackageLoader("paper", "templates"),
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    settings = edition.settings
    flags = "".join(
        [" --quick" if settings.quick else "", f" --seed {settings.seed}" if settings.seed else ""]
    )
    return environment.get_template(template).render(
        edition=edition,
        # Made by matplotlib from numbers and our own words.
        pictures={name: Markup(svg) for name, svg in edition.pictures.items()},
        notes=notes(edition.results["notes"]) if "notes" in edition.results else [],
        command=lambda name: f"python -m paper --only {name}{flags}",
        whole=f"python -m paper{flags}",
        folder=folder,
        version=__version__,
    )


def _write(files: dict[str, str], folder: Path) -> list[Path]:
    written = []
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written
