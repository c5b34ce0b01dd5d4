"""Open pages in a real browser: one for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

__all__ = ["Opened", "grave_faults", "opened"]


@dataclass
class Opened:
    """A page, and what it complained about or asked the network for."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @property
    def to_the_network(self) -> list[str]:
        """Requests that a page without network must not make."""
        return [url for url in self.requests if not url.startswith(("file:", "data:"))]

    @property
    def grave_faults(self) -> list[str]:
        """What axe-core calls a serious or critical fault of accessibility."""
        return [rule for rule, _ in grave_faults(self.page)]


def grave_faults(page: Page) -> list[tuple[str, str]]:
    """Return rule and element of what axe-core calls a serious or critical fault of a page."""
    # What passes is then counted and not described, which would take longer than the search.
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    grave = [fault for fault in found if fault["impact"] in ("serious", "critical")]
    return [(fault["id"], fault["nodes"][0]["html"]) for fault in grave]


@contextmanager
def opened(
    browser: Browser, path: Path, *, width: int = 1000, scheme: Literal["light", "dark"] = "light"
) -> Iterator[Opened]:
    """Open a file without network, by day or by night."""
    context = browser.new_context(
        offline=True, viewport={"width": width, "height": 900}, color_scheme=scheme
    )
    view = Opened(context.new_page())
    view.page.on("console", lambda message: view.complaints.append(message.text))
    view.page.on("pageerror", lambda error: view.complaints.append(str(error)))
    view.page.on("request", lambda request: view.requests.append(request.url))
    view.page.goto(path.as_uri())
    try:
        yield view
    finally:
        context.close()
