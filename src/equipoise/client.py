"""A live audit on a server, used like one in a ledger: the same verbs, over HTTP.

Every call may be repeated, so a call that got no answer is: after a lost connection, a busy or
restarting server, for as long as ``patience`` says. What was carried out before is answered as it
was.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from equipoise._json import to_plain_data
from equipoise.errors import (
    Conflict,
    EquipoiseError,
    InvalidInput,
    LedgerError,
    MissingExtra,
    ProtocolError,
    UnknownPerson,
)
from equipoise.finding import Finding
from equipoise.history.past import Past
from equipoise.ledger import Checkpoint, Reply, Status, commands
from equipoise.ledger.commands import BATCH_LIMIT, AuditCommands, Command
from equipoise.question import Costs, Question

if TYPE_CHECKING:
    import httpx

__all__ = ["AccessDenied", "RemoteAudit"]

AGAIN = (408, 429, 502, 503, 504)
POLLED = 0.5  # seconds between looks at a verification


class AccessDenied(EquipoiseError):
    """The token is none, has expired, or may not do this."""


ERRORS: Mapping[str, type[EquipoiseError]] = {
    "unauthenticated": AccessDenied,
    "forbidden": AccessDenied,
    "unknown-person": UnknownPerson,
    "person-conflict": Conflict,
    "outcome-conflict": Conflict,
    "wrong-state": ProtocolError,
    "budget-committed": ProtocolError,
    "storage-unavailable": LedgerError,
    "busy": LedgerError,
    "internal": LedgerError,
}
"""Type of a problem -> the error that a ledger would raise; InvalidInput for every other."""


class RemoteAudit(AuditCommands):
    """One audit on a server.

    Parameters
    ----------
    url
        Where the server is, as in ``https://audits.example``.
    name
        The audit.
    token
        As ``equipoise token new`` showed it.
    patience
        Seconds for which a call is repeated while nobody answers.

    Notes
    -----
    A writer's replies hold what is wanted and nothing else; ``number``, ``why`` and the like stay
    empty.
    """

    def __init__(
        self,
        url: str,
        name: str,
        *,
        token: str | None = None,
        patience: float = 60.0,
        timeout: float = 30.0,
    ) -> None:
        try:
            import httpx
        except ImportError:
            raise MissingExtra("httpx", extra="client", purpose="audits on a server") from None
        if not url.startswith(("http://", "https://")):
            raise InvalidInput(f"'url' must begin with http:// or https://; got {url!r}")
        secret = (token or "").strip()  # as read from a file
        if not secret.isascii() or not secret.isprintable():
            raise InvalidInput("'token' must be what 'equipoise token new' showed, and no more")
        headers = {"authorization": f"Bearer {secret}"} if secret else {}
        self.name = name
        self._patience = patience
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout)
        self._root = f"/v1/audits/{quote(name, safe='')}"

    @classmethod
    def create(
        cls,
        url: str,
        name: str,
        history: Past,
        question: Question,
        costs: Costs,
        *,
        token: str | None = None,
        patience: float = 60.0,
        **settings: Any,
    ) -> RemoteAudit:
        """Begin an audit, or find it begun; ``settings`` as in :meth:`LiveAudit.create`."""
        made = cls(url, name, token=token, patience=patience)
        body = {"past": history.cells.to_dict(), "question": question, "costs": costs, **settings}
        made._call("PUT", "", to_plain_data(body))
        return made

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- commands ---------------------------------------------------------------------------------

    def results(self, commands: Sequence[Command]) -> list[Reply | EquipoiseError]:
        """Send checked commands, at most 1,000; return a result for each."""
        sent = [_keyed(one).to_dict() for one in commands]
        found = self._call("POST", "/commands", {"commands": sent}).get("results", ())
        if len(found) != len(sent):
            raise LedgerError(
                f"{len(found)} of {len(sent)} commands were answered; send them again"
            )
        return [
            _error(one["problem"]) if one.get("problem") else Reply.from_dict(one) for one in found
        ]

    def overdue(self, *, days: float | None = None) -> list[Reply]:
        """Mark the requests that are older than ``days`` (the audit's ``overdue_after``)."""
        found = self._call("POST", "/overdue", {"days": days})
        return [Reply.from_dict(one) for one in found["results"]]

    # -- where it stands, and proof ---------------------------------------------------------------

    @property
    def finding(self) -> Finding | None:
        """The answer, None while the audit is in progress."""
        return self.status().finding

    def so_far(self) -> Finding:
        """Return what the evidence would support if nobody else came; the audit goes on."""
        return Finding.from_dict(self._call("GET", "/finding")["so_far"])

    def status(self) -> Status:
        """Return people, money, evidence and drift as of now."""
        return Status.from_dict(self._call("GET", "/status"))

    def checkpoint(self) -> Checkpoint:
        """Return the chain's present end, to keep; the server remembers that it was handed out."""
        found = self._call("POST", "/checkpoints")
        names = ("audit", "seq", "hash", "time")
        return Checkpoint(name=self.name, **{name: found[name] for name in names})

    def verify(self) -> dict[str, Any]:
        """Have the ledger checked against its events and every checkpoint handed out.

        The server does it beside its other work; this waits for the end of it.

        Raises
        ------
        LedgerError
            If something was changed, or the server was stopped before the end.
        """
        found: dict[str, Any] = self._call("POST", "/verifications")
        while found["kind"] == "running":
            time.sleep(POLLED)
            found = self._call("GET", f"/verifications/{found['id']}")
        if found["kind"] != "verified":
            raise LedgerError(found["note"] or "the server was stopped meanwhile; verify again")
        return found

    def events(self, *, after: int = 0) -> Iterator[dict[str, Any]]:
        """Yield what happened, event by event, as far as it goes now."""
        while page := self._call("GET", f"/events?after={after}&limit={BATCH_LIMIT}")["events"]:
            yield from page
            after = page[-1]["seq"]

    def person(self, person: str) -> dict[str, Any] | None:
        """Return what is stored about a person, None if nobody asked about them."""
        found: list[dict[str, Any]] = self._call("POST", "/people", {"people": [person]})["people"]
        return found[0] if found else None

    def people(self, *, states: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        """Yield people in order of arrival, in the given states, page by page."""
        states = (states,) if isinstance(states, str) else states
        wanted, after = "".join(f"&state={quote(state)}" for state in states), 0
        while after is not None:
            page = self._call("GET", f"/people?after={after}&limit={BATCH_LIMIT}{wanted}")
            yield from page["people"]
            after = page["next"]

    # -- helpers ----------------------------------------------------------------------------------

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Call until somebody answers; every call may be repeated."""
        import httpx

        deadline, wait = time.monotonic() + self._patience, 0.05
        while True:
            try:
                answer = self._http.request(method, self._root + path, json=body)
                if answer.is_success:
                    return _read(answer)
                problem = _error_of(answer)
                if answer.status_code not in AGAIN:
                    raise problem
                asked = answer.headers.get("retry-after", "")  # seconds; a proxy may send a date
                wait = min(max(wait, float(asked) if asked.isdecimal() else 0.0), 30.0)
                words = str(problem)
            except httpx.RequestError as error:
                words = f"no answer from {self._http.base_url}: {error}"
            if time.monotonic() + wait > deadline:
                raise LedgerError(f"{words}; repeating the call is safe")
            time.sleep(wait * random.uniform(0.5, 1.0))
            wait = min(2.0 * wait, 5.0)


def _keyed(command: Command) -> Command:
    """Return a decision about the audit with a key, so that a repeated call is known as one."""
    if command.key or commands.person_of(command):
        return command
    return replace(command, key=secrets.token_hex(16))


def _read(answer: httpx.Response) -> dict[str, Any]:
    try:
        return dict(answer.json())
    except (TypeError, ValueError):
        raise LedgerError(
            f"what answers at {answer.url.host} is not the service, or somebody between: "
            f"{answer.text[:60]!a}"
        ) from None


def _error_of(answer: httpx.Response) -> EquipoiseError:
    try:
        return _error(answer.json())
    except (KeyError, TypeError, ValueError, AttributeError):
        return LedgerError(f"the server answered {answer.status_code} without a reason")


def _error(problem: Mapping[str, Any]) -> EquipoiseError:
    kind = str(problem["type"]).removeprefix("urn:equipoise:")
    return ERRORS.get(kind, InvalidInput)(f"{problem.get('detail') or problem['title']} ({kind})")
