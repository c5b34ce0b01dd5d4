"""What attacks on the service share."""

from __future__ import annotations

import re
import socket
from typing import Any

import httpx

from tests.support.serving import Served

__all__ = ["HOSTILE", "clicked", "form_key", "kind", "log_in", "refusal", "send_raw"]

HOSTILE = "<script>window.pwned=1</script>'\"; DROP TABLE people;-- {{7*7}}"


def kind(answer: httpx.Response) -> str:
    """Return a problem's type, checked to be what RFC 9457 wants."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    found = answer.json()
    assert found["status"] == answer.status_code
    assert found["title"]
    return str(found["type"]).removeprefix("urn:equipoise:")


def refusal(result: dict[str, Any]) -> str:
    """Return why a command was refused, checked to be what RFC 9457 wants."""
    found = result["problem"]
    assert found["status"] >= 400
    assert found["title"]
    return str(found["type"]).removeprefix("urn:equipoise:")


def log_in(served: Served, role: str = "auditor") -> httpx.Client:
    """Return a browser that logged in."""
    served.as_(role)
    browser = served.client({"origin": served.url})
    answer = browser.post("/login", data={"token": served.tokens[f"{role} of all"]})
    assert answer.status_code == 303, answer.text
    return browser


def form_key(page: str) -> str:
    """Return what the forms of a page bring along."""
    return page.partition('name="form_key" value="')[2].partition('"')[0]


def send_raw(served: Served, method: bytes, path: bytes, token: str) -> int:
    """Send a path that no client library would."""
    host, port = served.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10.0) as connection:
        head = b"%s %s HTTP/1.1\r\nhost: %s\r\nauthorization: Bearer %s\r\nconnection: close\r\n"
        body = b'{"commands":[{"command":"ask","person":"p","group":"B","decision":0}]}'
        more = b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
        connection.sendall(head % (method, path, host.encode(), token.encode()))
        connection.sendall(more % (len(body), body))
        answer = b""
        while data := connection.recv(65536):
            answer += data
    return int(answer.split(b" ", 2)[1])


def clicked(page: str, role: str) -> dict[str, str]:
    """Return what the values of a column mean on a page, as far as it is clicked."""
    values = re.findall(rf'name="{role}_value" value="([^"]*)"', page)
    button = rf'name="{role}_meaning_(\d+)" value="([^"]*)" required checked'
    return {values[int(number)]: meaning for number, meaning in re.findall(button, page)}
