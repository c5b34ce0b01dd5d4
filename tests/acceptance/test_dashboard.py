"""The dashboard in a real browser: from a table of past decisions to a verdict and its report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from equipoise.ledger import LiveAudit, Status
from equipoise.protocol import Want
from equipoise.service import pages_check
from tests.acceptance.browser import grave_faults
from tests.profiles import FULL, only_in_full, quick
from tests.support.postgres import in_memory
from tests.support.serving import WORLD, Served, serving

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
UNFOLD = "document.querySelectorAll('details').forEach((details) => { details.open = true; })"


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with TemporaryDirectory(dir=in_memory()) as directory, serving(directory) as server:
        yield server


def logged_in(context: BrowserContext, served: Served, role: str) -> Page:
    """Log in by token; every complaint of the page fails the test that reads it."""
    served.as_(role)
    page = context.new_page()
    page.complaints = []  # type: ignore[attr-defined]
    page.on("console", lambda message: page.complaints.append(message.text))  # type: ignore[attr-defined]
    page.on("pageerror", lambda error: page.complaints.append(str(error)))  # type: ignore[attr-defined]
    page.goto(served.url)
    page.get_by_label("Token").fill(served.tokens[f"{role} of all"])
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Audits")).to_be_visible()
    return page


def require_accessible(page: Page) -> None:
    assert grave_faults(page) == []


def test_from_a_table_to_a_verdict(
    served: Served, browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = quick(4, full=pages_check.TRIAL_RUNS)
    monkeypatch.setattr(pages_check, "TRIAL_RUNS", runs)
    table = tmp_path / "past.csv"
    rows = [
        f"{p.group},{p.decision},{p.outcome if p.decision else ''}" for p in WORLD.draw(3000, 1)
    ]
    table.write_text("\n".join(["race,approved,repaid", *rows]))
    context = browser.new_context(viewport={"width": 1100, "height": 900})
    page = logged_in(context, served, "auditor")
    require_accessible(page)  # nothing is there yet

    page.get_by_role("link", name="New audit").click()
    page.locator("input[name=table]").set_input_files(table)
    page.get_by_role("button", name="Read the columns").click()
    page.get_by_role("button", name="Count the rows").click()
    expect(page.locator("#result")).to_contain_text("Rows counted", timeout=20_000)
    page.locator("select[name=metric]").select_option("equal_opportunity")
    page.locator("input[name=tolerance]").fill("10")
    page.locator("input[name=margin]").fill("20")
    page.get_by_role("button", name="Check the data").click()
    expect(page.locator(".answer .word")).to_have_text("INCONCLUSIVE")
    page.get_by_role("button", name="Plan an audit").click()
    # A slider plans again at once, and trial runs simulate the audit.
    forecast = page.locator("#forecast")
    expect(forecast.get_by_role("rowheader").nth(1)).to_be_visible()  # several cases
    for group in "AB":
        slider = page.get_by_label(f"{group}: of 100 denied people")
        slider.focus()
        slider.press("End")
        expect(slider).to_be_focused()
        expect(page.locator("#prices").get_by_label(group, exact=True)).to_be_checked()
    expect(forecast.get_by_role("rowheader")).to_have_text(["as you say"])
    page.get_by_role("button", name=f"Run {runs} trial audits").click()
    expect(page.locator("#forecast h3")).to_have_text("Trial runs", timeout=60_000)
    expect(forecast.locator("td[data-h='Runs with a verdict']")).to_have_text("100%")
    expect(page.get_by_label("A: of 100 denied people")).to_have_value("100")
    require_accessible(page)
    page.locator("#begin").get_by_label("Name").fill("loans & <b>more</b>")
    page.get_by_role("button", name="Begin the audit").click()  # a budget is asked for
    expect(page.get_by_role("alert")).to_contain_text("'budget' is needed")
    (refused,) = page.complaints  # type: ignore[attr-defined]
    assert "422" in refused
    page.complaints.clear()  # type: ignore[attr-defined]
    expect(page.locator("#begin").get_by_label("Name")).to_have_value(
        "loans & <b>more</b>"
    )  # nothing is lost
    page.locator("#begin input[name=budget]").fill("1,000,000")
    page.get_by_role("button", name="Begin the audit").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("loans & <b>more</b>")

    page.get_by_role("link", name="Enter data").click()
    arrival = page.get_by_role("region", name="New person")
    arrival.get_by_label("Pseudonym").fill("by-hand")
    arrival.get_by_label("Group").select_option("B")
    arrival.get_by_role("button").click()
    expect(page.get_by_role("status")).to_contain_text("The outcome is wanted")
    outcome = page.get_by_role("region", name="Outcome", exact=True).last
    outcome.get_by_label("Pseudonym").fill("by-hand")
    outcome.get_by_role("button").click()
    expect(page.get_by_role("status")).to_have_text("The outcome is entered.")
    page.get_by_role("link", name="Overview").click()
    expect(page.locator(".answer .word")).to_have_text("NO VERDICT YET")

    live = LiveAudit.open(served.settings.ledger, "loans & <b>more</b>", actor="bank")
    people = list(WORLD.draw(4000, 2))
    for start in range(0, len(people), 200):
        part = people[start : start + 200]
        replies = live.ask_many((f"{start}-{i}", p.group, p.decision) for i, p in enumerate(part))
        live.tell_many(
            (r.person, p.outcome)
            for r, p in zip(replies, part, strict=True)
            if r.want is Want.LABEL
        )
        if live.finding is not None:
            break
    assert live.finding is not None
    # Nobody touched the page: it asks for news.
    verdict = page.locator(".answer .word")
    expect(verdict).to_have_text(live.finding.verdict.value, timeout=15_000)
    expect(page.locator("#live svg").first).to_be_visible(timeout=15_000)
    require_accessible(page)
    with page.expect_download() as download:
        page.get_by_role("link", name="report (HTML)").click()
    text = Path(download.value.path()).read_text()
    assert live.finding.verdict.value in text
    assert live.checkpoint().hash in text
    assert page.complaints == []  # type: ignore[attr-defined]
    live.close_ledger()
    context.close()


@pytest.fixture(scope="module")
def full(served: Served) -> str:
    """Return the name of an audit with a verdict, open outcomes and a proposal."""
    name = "full"
    served.create(
        name, audit="adaptive", options={}, budget=500_000, currency="EUR", approvals=["budget"]
    )
    live = LiveAudit.open(served.settings.ledger, name, actor="bank")
    people = list(WORLD.draw(1000, 2))
    for start in range(0, len(people), 100):
        part = people[start : start + 100]
        replies = live.ask_many((f"{start}-{i}", p.group, p.decision) for i, p in enumerate(part))
        told = [
            (reply.person, person.outcome)
            for reply, person in zip(replies, part, strict=True)
            if reply.want is Want.LABEL
        ]
        live.tell_many(told[1:])  # the first outcome of each hundred stays open
        if live.finding is not None:
            break
    assert live.finding is not None
    live.close_ledger()
    served.result(name, "set_budget", budget=900_000, why="more people came", role="auditor")
    return name


@pytest.mark.parametrize("look", quick(["dark"], full=["light", "dark", "phone"]))
def test_every_page_is_readable(served: Served, browser: Browser, full: str, look: str) -> None:
    empty = look != "phone" and FULL
    if empty:
        served.create(f"empty {look}", audit="adaptive", options={})
    width = 390 if look == "phone" else 1280
    context = browser.new_context(
        color_scheme="dark" if look == "dark" else "light", viewport={"width": width, "height": 900}
    )
    page = context.new_page()
    page.goto(served.url)
    assert page.evaluate(OVERFLOW) <= 0, "login"
    page = logged_in(context, served, "auditor")
    parts = ("", "/people", "/work", "/enter", "/log", "/report/view")
    paths = ["/", "/check", *(f"/audits/{full}{part}" for part in parts)]
    if empty:
        paths += [f"/audits/empty {look}{part}" for part in ("", "/work")]
    for path in paths:
        page.goto(f"{served.url}{path}")
        page.evaluate(UNFOLD)  # what is folded is looked at as well
        assert page.evaluate(OVERFLOW) <= 0, path
        if not FULL:  # the phone's width, which has a turn of its own at full size
            page.set_viewport_size({"width": 390, "height": 900})
            assert page.evaluate(OVERFLOW) <= 0, path
            page.set_viewport_size({"width": width, "height": 900})
        # In every run of the pages that nothing else looks at in this way.
        seen_elsewhere = path.endswith("/report/view") or (not FULL and path in ("/", "/check"))
        if look != "phone" and not seen_elsewhere:
            require_accessible(page)  # the report has a test of its own
    page.goto(f"{served.url}/audits/{full}/enter")
    page.get_by_text("Erase a person").click()
    erasure = page.locator("details[open]")
    erasure.get_by_label("Pseudonym").fill("somebody with a very long pseudonym " * 4)
    erasure.get_by_role("button").click()
    expect(page.get_by_role("heading", name="This cannot be undone")).to_be_visible()
    assert page.evaluate(OVERFLOW) <= 0, "what cannot be undone"
    if look != "phone":
        require_accessible(page)
    assert page.complaints == []  # type: ignore[attr-defined]
    context.close()


def test_five_tasks_take_at_most_two_clicks(
    served: Served, browser: Browser, full: str, tmp_path: Path
) -> None:
    audit_page = f"{served.url}/audits/{full}"
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = logged_in(context, served, "auditor")
    status = Status.from_dict(served.as_("auditor").get(f"/v1/audits/{full}/status").json())
    assert status.finding is not None

    # Without a click, in the first view: the verdict, who is disadvantaged, what it cost.
    page.goto(audit_page)
    answer = page.get_by_role("region", name="Verdict")
    for words in (
        str(status.finding.verdict),
        "Largest estimated difference: B,",
        status.money(status.spent),
    ):
        expect(answer.get_by_text(words, exact=False).first).to_be_in_viewport()

    # Two clicks: upload outcomes.
    (open_person, *_) = LiveAudit.open(served.settings.ledger, full).people(states=("RESERVED",))
    outcomes = tmp_path / "outcomes.csv"
    outcomes.write_text(f"person,outcome\n{open_person.person},good\n")
    page.get_by_role("link", name="Enter data").click()
    upload = page.get_by_role("region", name="Many people at once").get_by_role(
        "region", name="Outcomes"
    )
    upload.get_by_label("Table").set_input_files(outcomes)
    upload.get_by_role("button", name="Upload outcomes").click()
    expect(page.get_by_role("status")).to_have_text("1 rows: 1 new, 0 known before, 0 refused.")

    # Two clicks: approve a proposal.
    other = browser.new_context(viewport={"width": 1280, "height": 900})
    page = logged_in(other, served, "approver")
    page.goto(audit_page)
    page.get_by_text("Decide").click()
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("status")).to_have_text("The proposal is approved and carried out.")
    assert served.as_("auditor").get(f"/v1/audits/{full}").json()["cap"] == 900_000
    for one in (context, other):
        one.close()


def test_news_leave_open_what_the_reader_opened(
    served: Served, browser: Browser, full: str
) -> None:
    context = browser.new_context()
    page = logged_in(context, served, "regulator")
    page.goto(f"{served.url}/audits/{full}")
    page.get_by_text("Head of the hash chain").click()
    page.evaluate("document.activeElement.blur()")
    with page.expect_response(lambda response: response.url.endswith("/live"), timeout=15_000):
        pass
    page.wait_for_timeout(100)
    expect(page.locator("#head")).to_have_attribute("open", "")
    context.close()


def test_the_keyboard_is_enough(served: Served, browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(served.url)
    served.as_("approver")
    page.keyboard.type(served.tokens["approver of all"])  # the field has the focus
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Audits")).to_be_visible()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    context.close()


def test_the_link_that_serve_prints_logs_in(served: Served, browser: Browser) -> None:
    served.as_("auditor")
    context = browser.new_context()
    page = context.new_page()
    link = f"{served.url}/login#token={served.tokens['auditor of all']}"
    page.goto(link)
    expect(page.get_by_role("heading", name="Audits")).to_be_visible()
    assert "token" not in page.url
    # Pasted into a tab that shows the login page, it only changes what is behind the "#".
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    page.evaluate("address => { location.href = address }", link)
    expect(page.get_by_role("heading", name="Audits")).to_be_visible()
    # Somebody else's link, pasted into a tab where one is logged in, changes who is logged in.
    served.as_("regulator")
    page.goto(f"{served.url}/login#token={served.tokens['regulator of all']}")
    expect(page.get_by_text("(regulator)")).to_be_visible()
    assert "token" not in page.url
    context.close()


@only_in_full  # the forms themselves are read in tests/service in every run
def test_enter_in_the_reason_approves_nothing(served: Served, browser: Browser) -> None:
    """d3163f9: whoever typed why not and pressed Enter approved."""
    served.create("enter", budget=1000, approvals=["budget"])
    served.result("enter", "set_budget", budget=5000, why="more", role="auditor")
    context = browser.new_context()
    page = logged_in(context, served, "approver")
    page.goto(f"{served.url}/audits/enter")
    page.get_by_text("Decide").click()
    page.get_by_label("Why not").press("Enter")  # without a reason nothing is decided
    page.get_by_label("Why not").fill("far too much")
    status = served.as_("auditor").get("/v1/audits/enter/status").json()
    assert (status["cap"], len(status["proposals"])) == (1000, 1)
    page.get_by_label("Why not").press("Enter")
    expect(page.get_by_role("status")).to_have_text("The proposal is rejected.")
    status = served.as_("auditor").get("/v1/audits/enter/status").json()
    assert (status["cap"], len(status["proposals"])) == (1000, 0)
    context.close()
