"""A file of people means the same in the shell and in the browser."""

from __future__ import annotations

import html
import re
import shlex
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from equipoise.cli import app
from equipoise.ledger import LiveAudit
from tests.service.attacking import form_key, log_in
from tests.support.serving import Served

PAST = ["race,approved,repaid"] + [
    f"{group},{decision},{outcome}"
    for group, n_paid, n_default, n_denied in (("White", 60, 10, 30), ("Black", 30, 5, 65))
    for decision, outcome, n_people in (
        ("Y", "paid", n_paid),
        ("Y", "default", n_default),
        ("N", "", n_denied),
    )
    for _ in range(n_people)
]
READ = (
    "-g race -d approved -o repaid --positive decision=Y --positive outcome=paid "
    "--metric equal_opportunity --audit baseline --option tau=50"
)
PLAIN = ["person,group,decision", "p1,White,denied", "p2,Black,denied", "p3,White,0", "p4,Black,0"]
PAID_BLANK_NA_DEFAULT = ["person,outcome", "p1,paid", "p2,", "p3,NA", "p4,default"]


class Audits:
    """Two audits on the same past: people are reported to one in the shell, to one by upload."""

    def __init__(self, served: Served, folder: Path) -> None:
        self.ledger = served.settings.ledger
        self.folder = folder
        self.browser: httpx.Client = log_in(served)
        past = self.write("past.csv", PAST)
        for name in ("shell", "browser"):
            assert self.run(f"audit new {name}{self.suffix} {past} {READ}")[0] == 0

    @property
    def suffix(self) -> str:
        """What makes the names of one test's audits its own."""
        return self.folder.name

    def write(self, name: str, rows: list[str]) -> str:
        path = self.folder / name
        path.write_text("\n".join(rows) + "\n")
        return str(path)

    def run(self, command: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, [*shlex.split(command), "--ledger", self.ledger])
        return done.exit_code, done.output

    def in_shell(self, verb: str, rows: list[str]) -> tuple[int, str]:
        path = self.write("people.csv", rows)
        return self.run(f"audit {verb} shell{self.suffix} --file {path}")

    def in_browser(self, verb: str, rows: list[str]) -> tuple[int, str]:
        page = f"/audits/browser{self.suffix}"
        form = {
            "form_key": form_key(self.browser.get(page).text),
            "what": "arrivals" if verb == "ask" else "outcomes",
        }
        files = {"table": ("people.csv", ("\n".join(rows) + "\n").encode())}
        answer = self.browser.post(f"{page}/upload", data=form, files=files)
        return answer.status_code, html.unescape(answer.text)

    def summaries(self, verb: str, rows: list[str]) -> tuple[str, str]:
        """Return how many rows came to what, in the shell and in the browser."""
        return (
            summary_of(self.in_shell(verb, rows)[1]),
            summary_of(self.in_browser(verb, rows)[1]),
        )


def summary_of(text: str) -> str:
    pattern = r"\d+ rows: \d+ new, \d+ known before, \d+ refused(, \d+ without an outcome yet)?"
    match = re.search(pattern, text)
    return match[0] if match else text


@pytest.fixture
def audits(served: Served, tmp_path: Path) -> Audits:
    return Audits(served, tmp_path)


def test_an_outcome_that_is_not_there_yet_is_no_mistake(audits: Audits) -> None:
    """The shell passed over rows without an outcome, and the browser refused the same rows."""
    shell, browser = audits.summaries("ask", PLAIN)
    assert shell == browser == "4 rows: 4 new, 0 known before, 0 refused"
    shell, browser = audits.summaries("tell", PAID_BLANK_NA_DEFAULT)
    assert shell == browser
    assert shell == "4 rows: 2 new, 0 known before, 0 refused, 2 without an outcome yet"


def test_columns_and_words_of_the_past_are_known_to_both(audits: Audits) -> None:
    rows = ["person,race,approved", "p1,white,n", "p2, BLACK ,N", "p3,Black,Y", "p4,Red,N"]
    shell, browser = audits.summaries("ask", rows)
    assert shell == browser == "4 rows: 3 new, 0 known before, 1 refused"
    outcomes = ["person,repaid,notes", "p1,PAID,x", "p2,default,y", "p3,maybe,z"]
    shell, browser = audits.summaries("tell", outcomes)
    assert shell == browser == "3 rows: 2 new, 0 known before, 1 refused"


def test_separators_and_torn_rows_are_read_alike(audits: Audits) -> None:
    rows = ["person;group;decision", "p1;White;0", "p2;White", "", '"p;3";Black;0']
    shell, browser = audits.summaries("ask", rows)
    assert shell == browser == "3 rows: 2 new, 0 known before, 1 refused"


@pytest.mark.parametrize(
    ("verb", "header"),
    [("ask", "person,group,group,decision"), ("tell", "person,outcome,outcome,outcome")],
)
def test_two_columns_of_one_name_are_refused_by_both(
    audits: Audits, verb: str, header: str
) -> None:
    rows = [header, "p1,1,1,0"]
    column = header.split(",")[1]
    for code, text in (audits.in_shell(verb, rows), audits.in_browser(verb, rows)):
        assert code in (2, 422)
        assert f"column '{column}' must be there once" in text


def test_a_column_that_lacks_is_named_in_the_words_of_each(audits: Audits) -> None:
    rows = ["who,group,decision", "p1,White,0"]
    assert "Say which one it is: --column person=NAME" in audits.in_shell("ask", rows)[1]
    code, text = audits.in_browser("ask", rows)
    assert (code, "--" in text.replace("<!--", "")) == (422, False)
    assert "the table has no column 'person'; it has who, group, decision" in text


def test_programs_may_spell_a_group_in_any_case(audits: Audits, served: Served) -> None:
    name = f"browser{audits.suffix}"
    reply = served.result(name, "ask", "p9", group="BLACK", decision=0)
    assert (reply["person"], reply["state"]) == ("p9", "SKIPPED")  # another group is wanted now


@pytest.mark.parametrize(
    ("score", "price", "stored"),
    [
        ("0.25", "120", (0.25, 120)),
        ("", "120", (None, 120)),
        ("NA", "1e2", (None, 100)),
        ("high", "120", "'score' must be a number; got 'high'"),
        ("0.5", "9007199254740993", "'price' must be a whole number of minor units"),
        ("0.5", "cheap", "'price' must be a number; got 'cheap'"),
    ],
)
def test_a_typed_person_is_read_alike(
    served: Served, tmp_path: Path, score: str, price: str, stored: object
) -> None:
    ledger = served.settings.ledger
    suffix = tmp_path.name
    for name in ("shell", "browser"):
        options = {"assist": {"max_price": 300}}
        served.create(f"{name}{suffix}", audit="adaptive", options=options)
    typed = f"audit ask shell{suffix} p B 0 --score '{score}' --price '{price}' --ledger {ledger}"
    shell = CliRunner().invoke(app, shlex.split(typed))
    browser = log_in(served)
    page = f"/audits/browser{suffix}"
    form = {"form_key": form_key(browser.get(page).text), "person": "p", "group": "B"}
    fields = {**form, "decision": "0", "score": score, "price": price}
    answer = browser.post(f"{page}/do/ask", data=fields)
    if isinstance(stored, str):
        assert (shell.exit_code, answer.status_code) == (2, 422)
        assert stored in shell.output
        assert stored in html.unescape(answer.text)
        return
    assert (shell.exit_code, answer.status_code) == (0, 303)
    for name in ("shell", "browser"):
        events = list(LiveAudit.open(ledger, f"{name}{suffix}").events())
        observation = events[-1]["data"]["observation"]
        assert (observation["score"], observation["price"]) == stored
