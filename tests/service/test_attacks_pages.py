"""Attacks through browsers: cookies, forms, pages, uploads; ``docs/security.md`` lists them."""

from __future__ import annotations

import io
import json
import zipfile

import openpyxl

from equipoise.service import access
from tests.service.attacking import form_key, log_in
from tests.support.serving import Served


def test_a_forged_cookie_is_no_session(served: Served) -> None:
    served.as_("auditor")
    for value in ("x", served.tokens["auditor of all"], "a" * 500, "' OR 1=1 --"):
        browser = served.client({"cookie": f"{access.SESSION_COOKIE}={value}"})
        assert browser.get("/").headers["location"] == "/login"
    browser = log_in(served)
    cookie = browser.cookies[access.SESSION_COOKIE]
    assert browser.get("/").status_code == 200
    assert (
        served.client({"cookie": f"{access.SESSION_COOKIE}={cookie[:-1]}"}).get("/").status_code
        == 303
    )
    # A session opens pages and no program's door; a token opens no page.
    assert browser.get("/v1/audits").status_code == 401
    assert served.as_("auditor").get("/").status_code == 303
    browser.post("/logout", data={"form_key": form_key(browser.get("/").text)})
    assert (
        served.client({"cookie": f"{access.SESSION_COOKIE}={cookie}"}).get("/").status_code == 303
    )


def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(served: Served) -> None:
    served.as_("auditor")
    answer = served.client({"origin": served.url}).post(
        "/login", data={"token": served.tokens["auditor of all"]}
    )
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


def test_another_site_cannot_act_for_somebody(served: Served) -> None:
    served.create("csrf")
    browser = log_in(served)
    key = form_key(browser.get("/audits/csrf").text)
    assert len(key) == 64
    pause = "/audits/csrf/do/pause"
    good = {"form_key": key, "why": "holidays"}
    evil = {"origin": "https://evil.example"}
    assert browser.post(pause, data=good, headers=evil).status_code == 403
    for odd in ("null", "http://[", "//[x"):
        assert browser.post(pause, data=good, headers={"origin": odd}).status_code == 403
    without = served.client(
        {"cookie": f"{access.SESSION_COOKIE}={browser.cookies[access.SESSION_COOKIE]}"}
    )
    assert without.post(pause, data=good).status_code == 403  # no origin at all
    for wrong in ("", "0" * 64, form_key(log_in(served).get("/audits/csrf").text)):
        assert browser.post(pause, data={**good, "form_key": wrong}).status_code == 403
    auditor = served.as_("auditor")
    assert auditor.get("/v1/audits/csrf/status").json()["paused"] is None
    assert browser.post(pause, data=good).status_code == 303
    assert auditor.get("/v1/audits/csrf/status").json()["paused"] == "holidays"


def test_pages_run_no_inline_script_and_cannot_be_framed(served: Served) -> None:
    browser = log_in(served)
    for path in ("/", "/check", "/login", "/nothing", "/static/dashboard.js", "/livez"):
        headers = browser.get(path).headers
        policy = headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
    for path in ("/", "/check"):
        page = browser.get(path).text
        assert page.count("<script") == page.count('<script src="/static/dashboard.js"') == 1
        assert " onclick" not in page
        assert "style=" not in page


def test_forms_in_odd_encodings_are_refused(served: Served) -> None:
    served.create("odd")
    browser, act = log_in(served), "/audits/odd/do/pause"
    body = b'--b\r\ncontent-disposition: form-data; name="form_key"\r\n\r\n%s\r\n--b--'
    for path in ("/login", act, "/check"):
        for charset in ("undefined", "unicode_escape", "idna", '"utf-16"', "utf-8-sig", "x" * 99):
            headers = {"content-type": f"multipart/form-data; boundary=b; charset={charset}"}
            for key in (b"\\ud800", b"\xff"):
                answer = browser.post(path, content=body % key, headers=headers)
                assert answer.status_code == 400, (path, charset)
    for kind in ("multipart/form-data", "multipart/form-data; boundary=", "text/plain", "x;;=="):
        answer = browser.post(act, content=b"--b", headers={"content-type": kind})
        assert answer.status_code in (400, 403), kind


def test_what_a_form_says_is_checked_like_any_request(served: Served) -> None:
    served.create("forms", budget=1000)
    browser, act = log_in(served), "/audits/forms/do"
    key = {"form_key": form_key(browser.get("/audits/forms").text)}
    asked = {**key, "group": "A", "decision": "0"}
    answer = browser.post(f"{act}/ask", data=asked, files={"person": ("p", b"p")})
    assert answer.status_code == 400  # a file is no name
    for budget, status in (("-5", 422), ("x", 422), ("", 422), ("9" * 19, 422), ("2000", 303)):
        form = {**key, "budget": budget, "why": "x"}
        assert browser.post(f"{act}/set_budget", data=form).status_code == status, budget
    words = dict.fromkeys(("max_in_flight", "max_in_flight_groups", "random_accepts"), "many")
    for command in ("set_limits", "set_random_accepts"):  # no page of ours sends these
        answer = browser.post(f"{act}/{command}", data={**key, **words, "why": "x"})
        assert answer.status_code == 422, command
    counts = {"approved_positive": 9, "approved_negative": 9, "denied": 9}
    for group in ("\ud800", "\x00", "x" * 201, " B"):
        cells = json.dumps({group: counts, "B": counts})
        answer = browser.post("/check", data={**key, "cells": cells})
        assert answer.status_code == 422, group
    cells = {**key, "cells": json.dumps({"A": counts, "B": counts})}
    for limits in ("at-most:B", "at-most:nobody=0.4", "at-most:B=nan", "at-least:B=2", "\ud7ff"):
        answer = browser.post("/check", data={**cells, "limits": limits})
        assert answer.status_code == 422, limits
    found = served.as_("auditor").get("/v1/audits/forms/status").json()
    assert (found["events"], found["cap"]) == (2, 2000)


def test_long_texts_are_cut_before_expressions_read_them(served: Served) -> None:
    # Expressions with quadratic time read notes and messages: 160,000 spaces took 40 seconds.
    browser = log_in(served)
    counts = {"approved_positive": 9, "approved_negative": 9, "denied": 9}
    form = {
        "form_key": form_key(browser.get("/check").text),
        "cells": json.dumps({"A": counts, "B": counts}),
    }
    swollen = f"begin{' ' * 160_000}end"
    page = browser.post("/check", data={**form, "notes": swollen})
    assert page.status_code == 200
    assert "begin " in page.text
    assert len(page.text) < 50_000
    refused = browser.post("/check", data={**form, "metric": swollen})
    assert refused.status_code == 422
    assert "begin " in refused.text
    assert len(refused.text) < 50_000


def test_broken_and_swollen_tables_are_refused(served: Served) -> None:
    browser = log_in(served)
    columns = {"group": "g", "decision": "d", "outcome": "o"}
    form = {"form_key": form_key(browser.get("/check").text), **columns}
    sheet = (
        '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">]><worksheet xmlns="http://schemas.openxmlformats.org/'
        'spreadsheetml/2006/main"><sheetData><row r="1"><c r="A1" t="str"><v>&{};</v></c></row>'
        "</sheetData></worksheet>"
    )
    tables = {
        "undefined.xlsx": workbook(sheet.format("b")),
        "unknown columns.xlsx": workbook(sheet.format("a")),
        "bomb.xlsx": workbook(" " * (2 << 20)),
        "none.xlsx": b"PK\x03\x04 and no more",
        "bad.parquet": b"PAR1 and no more PAR1",
        "database.csv": b"SQLite format 3\0" + bytes(100),
        "garbled.csv": b"g,d,o\n\xff\xfe,1,1\n" * 3,
    }
    for name, content in tables.items():
        answer = browser.post("/check", data=form, files={"table": (name, content)})
        assert answer.status_code == 422, name
        assert 'role="alert"' in answer.text
        assert "/tmp" not in answer.text  # nor where the server put it


def workbook(sheet: str) -> bytes:
    """Return an Excel file with this for its only sheet."""
    plain, made = io.BytesIO(), io.BytesIO()
    openpyxl.Workbook().save(plain)
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.namelist():
            is_sheet = part.startswith("xl/worksheets/")
            new.writestr(part, sheet if is_sheet else old.read(part))
    return made.getvalue()
