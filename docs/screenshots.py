"""Take the screenshots of the documentation: ``python docs/screenshots.py`` (needs Chromium).

The pages are those of ``equipoise serve --demo``, whose simulated people are drawn with fixed
seeds. Only dates, times and hashes differ from one run to the next. Each page is taken at 1280
pixels and, with ``-narrow`` in its name, at 390. The report is its first page.
"""

from __future__ import annotations

import io
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import uvicorn
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from equipoise.errors import EquipoiseError
from equipoise.ledger import LiveAudit
from equipoise.service import Role, TokenStore, create_app, demonstration, load_settings

HERE = Path(__file__).parent / "pictures"
CHROMIUM = "/usr/bin/chromium"
WIDTHS = {"": 1280, "-narrow": 390}
MAX_BYTES = 150_000


def main(folder: Path = HERE) -> None:
    """Take all screenshots."""
    demonstration.ARRIVAL_PAUSE_SECONDS = 3600.0  # so that every run shows the same people
    with (
        TemporaryDirectory() as directory,
        _demo_server(directory) as (address, token),
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for suffix, width in WIDTHS.items():
            context = browser.new_context(
                viewport={"width": width, "height": 900}, color_scheme="light"
            )
            page = context.new_page()
            page.goto(f"{address}/login#token={token}")
            page.get_by_role("heading", name="Audits").wait_for()
            for name, image in _pictures(page, address):
                _save(image, folder / f"{name}{suffix}.webp")
            context.close()
        browser.close()


def _pictures(page: Page, address: str) -> Iterator[tuple[str, bytes]]:
    """Yield the name of each screenshot and its bytes."""
    running = f"{address}/audits/{quote(demonstration.DEMONSTRATION_AUDIT)}"
    ended = f"{address}/audits/{quote(demonstration.ENDED_AUDIT)}"
    for name, audit_page in (("dashboard-running", running), ("dashboard-ended", ended)):
        page.goto(audit_page)
        while page.locator("#live [aria-busy]").count():  # the evidence is being calculated
            page.reload()
        yield name, page.screenshot(full_page=True)
    page.goto(f"{ended}/report/view")
    yield "report", page.locator(".sheet").first.screenshot()
    page.goto(f"{address}/check")
    page.get_by_role("button", name="example").click()
    page.locator("select[name=metric]").select_option("equal_opportunity")
    page.get_by_role("button", name="Check the data").click()
    page.locator("#result", has_text="false positive rate").wait_for(state="detached")
    yield "check", page.screenshot(full_page=True)


def _save(image: bytes, path: Path) -> None:
    """Write a picture without any loss, since each colour has a meaning; refuse a large one."""
    picture = Image.open(io.BytesIO(image)).convert("RGB")
    picture.save(path, lossless=True, method=6)
    size = path.stat().st_size
    print(f"{path.name}: {picture.width} x {picture.height}, {size:,} bytes")
    if size > MAX_BYTES:
        sys.exit(f"{path.name} has {size:,} bytes, more than {MAX_BYTES:,}")


@contextmanager
def _demo_server(directory: str) -> Iterator[tuple[str, str]]:
    """Serve the demonstration until the end of the block; yield its address and a token."""
    ledger = f"{directory}/ledger.db"
    settings = load_settings(ledger=ledger, demo=True)
    store = TokenStore(settings.token_store)
    token = store.new("anna", Role.AUDITOR)
    store.close()
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(create_app(settings), log_level="error"))
        thread = threading.Thread(target=server.run, args=([place],), daemon=True)
        thread.start()
        while not _has_ended(ledger):
            time.sleep(0.5)
        try:
            yield f"http://127.0.0.1:{place.getsockname()[1]}", token
        finally:
            server.should_exit = True
            thread.join()


def _has_ended(ledger: str) -> bool:
    """Whether the last audit of the demonstration has been prepared."""
    try:
        live = LiveAudit.open(ledger, demonstration.ENDED_AUDIT)
    except EquipoiseError:  # it has not begun
        return False
    has_ended = live.finding is not None
    live.close_ledger()
    return has_ended


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
