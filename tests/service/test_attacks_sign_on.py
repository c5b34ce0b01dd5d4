"""Attacks on the sign-on by a trusted proxy; ``docs/security.md`` lists them by name."""

from __future__ import annotations

from collections.abc import Iterator
from tempfile import TemporaryDirectory

import httpx
import pytest

from equipoise.errors import InvalidInput
from equipoise.service import load_settings
from tests.service.attacking import form_key
from tests.support.postgres import in_memory
from tests.support.serving import Served, serving

SECRET = "a secret of twenty-four"
PROXY = {"x-equipoise-proxy-secret": SECRET}
ANNA = {**PROXY, "x-forwarded-email": "anna@bank", "x-forwarded-groups": "staff,audit-team"}
GIVEN = {
    "proxy_secret": SECRET,
    "proxy_roles": "audit-team=auditor, risk=approver, core=writer",
}


@pytest.fixture(scope="module")
def signed() -> Iterator[Served]:
    """A server that trusts a proxy on this machine."""
    with (
        TemporaryDirectory(dir=in_memory()) as directory,
        serving(directory, proxy_peers="127.0.0.0/8", **GIVEN) as server,
    ):
        yield server


def test_a_proxy_names_the_actor_and_groups_give_the_role(signed: Served) -> None:
    signed.create("signed")
    anna = signed.client({**ANNA, "origin": signed.url})
    page = anna.get("/audits/signed")
    assert 'anna@bank <span class="small">(auditor)' in page.text
    assert "Log out" not in page.text
    form = {"form_key": form_key(page.text), "why": "holidays"}
    assert anna.post("/audits/signed/do/pause", data=form).status_code == 303
    status = signed.as_("auditor").get("/v1/audits/signed/status").json()
    assert status["actors"]["anna@bank"] == {"paused": 1}
    ben = signed.client({**ANNA, "x-forwarded-email": "ben@bank", "origin": signed.url})
    assert ben.post("/audits/signed/do/resume", data=form).status_code == 403  # another's key
    risk = signed.client({**ANNA, "x-forwarded-groups": "risk"})
    assert 'anna@bank <span class="small">(approver)' in risk.get("/").text
    assert anna.get("/login").headers["location"] == "/"
    evil = {"origin": "https://evil.example"}
    assert anna.post("/audits/signed/do/resume", data=form, headers=evil).status_code == 403


def test_whoever_is_not_the_proxy_is_refused(signed: Served) -> None:
    def get(headers: list[tuple[str, str]] | dict[str, str], path: str = "/") -> httpx.Response:
        return httpx.get(signed.url + path, headers=headers)

    assert get(ANNA).status_code == 200
    # without the secret the other headers say nothing: the browser must log in
    without = {name: value for name, value in ANNA.items() if name not in PROXY}
    assert get(without).headers["location"] == "/login"
    for wrong in ("", "x", SECRET[:-1], SECRET + "x", SECRET.upper()):
        assert get({**ANNA, "x-equipoise-proxy-secret": wrong}).status_code == 401
    twice = [*ANNA.items(), ("x-equipoise-proxy-secret", SECRET)]
    assert get(twice).status_code == 401
    # a proxy that adds to what a browser sent, instead of replacing it, is no proxy to trust
    assert get([*ANNA.items(), ("x-forwarded-email", "boss@bank")]).status_code == 401
    assert get([*ANNA.items(), ("x-forwarded-groups", "risk")]).status_code == 401
    for nobody in ("", "a\tb", "x" * 201):
        assert get({**ANNA, "x-forwarded-email": nobody}).status_code in (401, 422)
    for groups in ("", "staff", "audit", "audit-team=auditor", "AUDIT-TEAM"):
        assert get({**ANNA, "x-forwarded-groups": groups}).status_code == 403
    assert get({k: v for k, v in ANNA.items() if k != "x-forwarded-groups"}).status_code == 403
    assert get({**ANNA, "x-forwarded-groups": "core"}).status_code == 403  # writers have no pages
    assert get(ANNA, "/v1/audits").status_code == 401  # programs show tokens


def test_names_in_another_encoding_are_refused(signed: Served) -> None:
    # both would become 'anna\ufffd', so that two people could approve each other's proposals alone
    for name in (b"anna\xff", b"anna\xfe"):
        headers = [(key.encode(), value.encode()) for key, value in ANNA.items()]
        headers = [(k, name if k == b"x-forwarded-email" else value) for k, value in headers]
        assert httpx.get(signed.url, headers=headers).status_code == 401
    bad_groups = [(k.encode(), v.encode()) for k, v in ANNA.items() if k != "x-forwarded-groups"]
    bad_groups.append((b"x-forwarded-groups", b"audit-team,\xff"))
    assert httpx.get(signed.url, headers=bad_groups).status_code == 401
    zoe = [*((k.encode(), v.encode()) for k, v in ANNA.items() if k != "x-forwarded-email")]
    zoe.append((b"x-forwarded-email", "zoë@bank".encode()))
    assert "zoë@bank" in httpx.get(signed.url, headers=zoe).text


def test_only_listed_sockets_are_the_proxy() -> None:
    with (
        TemporaryDirectory(dir=in_memory()) as directory,
        serving(
            directory, proxy_peers="10.0.0.5/32", forwarded_from="127.0.0.1", **GIVEN
        ) as served,
    ):
        for headers in (ANNA, {**ANNA, "x-forwarded-for": "10.0.0.5"}):
            assert served.client(headers).get("/").status_code == 401
    with TemporaryDirectory(dir=in_memory()) as directory, serving(directory) as served:
        assert served.client(ANNA).get("/").status_code == 401  # nobody is trusted by default
        empty = {**ANNA, "x-equipoise-proxy-secret": ""}
        assert served.client(empty).get("/").status_code == 401


def test_half_a_sign_on_does_not_start() -> None:
    whole = {"proxy_peers": "10.0.0.5/32", **GIVEN}
    assert load_settings(ledger="a.db", **whole).proxy_roles["risk"] == "approver"
    for name in whole:
        half = {key: value for key, value in whole.items() if key != name}
        with pytest.raises(InvalidInput, match="needed together"):
            load_settings(ledger="a.db", **half)
    for name, bad in (
        ("proxy_peers", "everybody"),
        ("proxy_roles", "audit-team=boss"),
        ("proxy_roles", "audit-team"),
        ("proxy_secret", "short"),
    ):
        with pytest.raises(InvalidInput):
            load_settings(ledger="a.db", **{**whole, name: bad})
