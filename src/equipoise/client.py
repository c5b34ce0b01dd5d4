"""A live audit on a server, used like one in a ledger: the same commands, over HTTP.

Every call may be repeated, because the server answers what was carried out before as it was. So the
client repeats a call that got no answer, for as long as ``patience`` says: after a lost connection,
or while the server is busy or restarts.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
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
from equipoise.messages.refusals import SENTENCES, Refusal, to_python
from equipoise.question import Costs, Question

if TYPE_CHECKING:
    import httpx

__all__ = ["AccessDenied", "RemoteAudit"]

RETRY_STATUS_CODES = (408, 429, 502, 503, 504)  # the server, or a proxy, may answer later
FIRST_WAIT = 0.05  # seconds before a call is repeated; doubled each time
LONGEST_OWN_WAIT = 5.0  # seconds; doubling stops here
LONGEST_ASKED_WAIT = 30.0  # seconds; a server may ask for so long a wait
POLL_INTERVAL = 0.5  # seconds between questions whether a verification has ended


class AccessDenied(EquipoiseError):
    """The token is unknown or has expired, or its role may not do this."""


ERROR_CLASSES: Mapping[str, type[EquipoiseError]] = {
    "unauthenticated": AccessDenied,
    "forbidden": AccessDenied,
    "unknown-person": UnknownPerson,
    "person-conflict": Conflict,
    "outcome-conflict": Conflict,
    "key-reused": Conflict,
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
        Seconds for which a call is repeated while the server does not answer.
    timeout
        Seconds to wait for the answer to one call.

    Notes
    -----
    A writer's replies have what is wanted and what it may cost; ``number``, ``why`` and the like
    stay empty.
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
        audit = cls(url, name, token=token, patience=patience)
        body = {"past": history.cells.to_dict(), "question": question, "costs": costs, **settings}
        coding = getattr(history, "coding", None)  # of a History that was read from a table
        if coding is not None:
            body["coding"] = coding.to_dict()
        audit._call("PUT", "", to_plain_data(body))
        return audit

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
        sent = [_with_key(command).to_dict() for command in commands]
        answers = self._call("POST", "/commands", {"commands": sent}).get("results", ())
        # Answers belong to commands by their order alone, so one that is missing spoils all.
        if len(answers) != len(sent):
            raise LedgerError(
                f"{len(answers)} of {len(sent)} commands were answered; send them again"
            )
        return [_read_result(answer, self.name) for answer in answers]

    def overdue(self, *, days: float | None = None) -> list[Reply]:
        """Mark the requests that are older than ``days`` (the audit's ``overdue_after``)."""
        answer = self._call("POST", "/overdue", {"days": days})
        return [Reply.from_dict(reply) for reply in answer["results"]]

    # -- where it stands, and proof ---------------------------------------------------------------

    @property
    def finding(self) -> Finding | None:
        """The answer, None while the audit is in progress."""
        return self.status().finding

    def so_far(self) -> Finding:
        """Return what the evidence supports so far. The audit goes on."""
        return Finding.from_dict(self._call("GET", "/finding")["so_far"])

    def status(self) -> Status:
        """Return people, money, evidence and drift as of now."""
        return Status.from_dict(self._call("GET", "/status"))

    def checkpoint(self) -> Checkpoint:
        """Return the chain's present end, to keep; the server remembers that it was handed out."""
        end = self._call("POST", "/checkpoints")
        return Checkpoint(
            name=self.name, audit=end["audit"], seq=end["seq"], hash=end["hash"], time=end["time"]
        )

    def verify(self) -> dict[str, Any]:
        """Have the ledger checked against its events and every checkpoint handed out.

        The server does it beside its other work; this waits for the end of it.

        Raises
        ------
        LedgerError
            If something was changed, or the server was stopped before the end.
        """
        verification: dict[str, Any] = self._call("POST", "/verifications")
        # It may take longer than any request, so the server answers at once and is asked again.
        while verification["kind"] == "running":
            time.sleep(POLL_INTERVAL)
            verification = self._call("GET", f"/verifications/{verification['id']}")
        if verification["kind"] != "verified":
            reason = verification["note"] or "the server was stopped meanwhile; verify again"
            raise LedgerError(reason)
        return verification

    def events(self, *, after: int = 0) -> Iterator[dict[str, Any]]:
        """Yield what happened, event by event, as far as it goes now."""
        while page := self._call("GET", f"/events?after={after}&limit={BATCH_LIMIT}")["events"]:
            yield from page
            after = page[-1]["seq"]

    def person(self, person: str) -> dict[str, Any] | None:
        """Return what is stored about a person; None if they were never asked about."""
        answer = self._call("POST", "/people", {"people": [person]})
        records: list[dict[str, Any]] = answer["people"]
        return records[0] if records else None

    def people(self, *, states: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        """Yield people in order of arrival, in the given states, page by page."""
        states = (states,) if isinstance(states, str) else states
        state_filter = "".join(f"&state={quote(state)}" for state in states)
        after = 0
        while after is not None:
            page = self._call("GET", f"/people?after={after}&limit={BATCH_LIMIT}{state_filter}")
            yield from page["people"]
            after = page["next"]

    # -- helpers ----------------------------------------------------------------------------------

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON that the server answers; repeat the call until it does.

        Raises
        ------
        EquipoiseError
            If the server refuses the call, or does not answer within ``patience`` seconds.
        """
        import httpx

        deadline = time.monotonic() + self._patience
        wait = FIRST_WAIT
        while True:
            try:
                response = self._http.request(method, self._root + path, json=body)
                if response.is_success:
                    return _read_json(response)
                error = _read_error(response, self.name)
                if response.status_code not in RETRY_STATUS_CODES:
                    raise error
                # A busy server knows best when it will be free.
                wait = max(wait, _asked_wait(response))
                failure = str(error)
            except httpx.RequestError as connection_error:
                failure = f"no answer from {self._http.base_url}: {connection_error}"
            if time.monotonic() + wait > deadline:
                raise LedgerError(f"{failure}; repeating the call is safe")
            # Clients that failed together come back at different times.
            time.sleep(wait * random.uniform(0.5, 1.0))
            wait = min(2.0 * wait, LONGEST_OWN_WAIT)


def _asked_wait(response: httpx.Response) -> float:
    """Return how many seconds a server asks to wait, at most 30; 0 if it does not say."""
    retry_after = response.headers.get("retry-after", "")
    if not retry_after.isdecimal():  # a proxy may send a date
        return 0.0
    return min(float(retry_after), LONGEST_ASKED_WAIT)


def _with_key(command: Command) -> Command:
    """Return a command about the whole audit with a key, so that a repeated call is known as one.

    A command about a person needs none: the ledger knows by the person that it was carried out.
    """
    if command.key or commands.person_of(command):
        return command
    return replace(command, key=secrets.token_hex(16))


def _read_json(response: httpx.Response) -> dict[str, Any]:
    try:
        return dict(response.json())
    except (TypeError, ValueError):
        raise LedgerError(
            f"what answers at {response.url.host} is not the service, or somebody between: "
            f"{response.text[:60]!a}"
        ) from None


def _read_result(answer: Mapping[str, Any], audit: str) -> Reply | EquipoiseError:
    """Return the reply to one command of an audit, or why it was refused."""
    if answer.get("problem"):
        return _error_of(answer["problem"], audit)
    return Reply.from_dict(answer)


def _read_error(response: httpx.Response, audit: str) -> EquipoiseError:
    """Return the error that a response without success stands for."""
    try:
        return _error_of(response.json(), audit)
    except (KeyError, TypeError, ValueError, AttributeError):
        return LedgerError(f"the server answered {response.status_code} without a reason")


def _error_of(problem: Mapping[str, Any], audit: str) -> EquipoiseError:
    """Return a problem of the server as the error that a ledger would raise."""
    problem_type = str(problem["type"]).removeprefix("urn:equipoise:")
    error_class = ERROR_CLASSES.get(problem_type, InvalidInput)
    text = problem.get("detail") or problem["title"]
    refusal = None
    if problem.get("code") in SENTENCES:
        refusal = Refusal(problem["code"], problem.get("facts") or {}, audit)
        # The server's text has JSON where this program's user needs a call of Python. A server of
        # another version may state other facts, from which no text can be made here.
        with suppress(LookupError, TypeError, ValueError):
            text = to_python(refusal)
    error = error_class(f"{text} ({problem_type})")
    error.refusal = refusal
    return error
