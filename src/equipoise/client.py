"""A live audit on a server, used like one in a ledger: the same methods, over HTTP.

Every call may be repeated, so a call that got no answer is: after a lost connection, a busy or
restarting server, for as long as ``patience`` says. What was carried out before is answered as it
was.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from equipoise._json import JsonValue
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
from equipoise.ledger import Checkpoint, Reply, Status
from equipoise.ledger import commands as do
from equipoise.ledger.commands import Command
from equipoise.question import Costs, Question, Want

if TYPE_CHECKING:
    import httpx

__all__ = ["AccessDenied", "RemoteAudit"]

AT_ONCE = 1000
AGAIN = (408, 429, 502, 503, 504)


class AccessDenied(EquipoiseError):
    """The token is none, has expired, or may not do this."""


ERRORS: Mapping[str, type[EquipoiseError]] = {
    "unauthenticated": AccessDenied,
    "forbidden": AccessDenied,
    "unknown-person": UnknownPerson,
    "person-conflict": Conflict,
    "outcome-conflict": Conflict,
    "wrong-state": ProtocolError,
    "audit-concluded": ProtocolError,
    "ledger-broken": LedgerError,
    "storage-unavailable": LedgerError,
    "busy": LedgerError,
    "internal": LedgerError,
}
"""Type of a problem -> the error that a ledger would raise; InvalidInput for every other."""


class RemoteAudit:
    """One audit on a server.

    Parameters
    ----------
    url
        Where the server is, as in ``https://audits.example``.
    name
        The audit.
    token
        As ``equipoise token new`` showed it; not needed where the server is open.
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
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self.name = name
        self._patience = patience
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout)
        self._root = f"/v1/audits/{_part(name)}"

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
        names = ("metric", "gamma", "epsilon", "delta", "compare")
        asked = {n: getattr(question, n) for n in names}
        groups = {g: {"feature": c.feature, "label": c.label} for g, c in costs.groups.items()}
        body = {
            "past": history.cells.to_dict(),
            "question": asked,
            "costs": {"feature": costs.feature, "label": costs.label, "groups": groups},
            **settings,
        }
        made._call("PUT", "", _whole(body))
        return made

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self.close()

    # -- people -----------------------------------------------------------------------------------

    def ask(
        self,
        person: str,
        group: str,
        decision: int,
        *,
        score: float | None = None,
        price: int | None = None,
        version: str = "",
    ) -> Reply:
        """Say what is wanted of somebody who arrived; the same for ever after.

        ``score``, of a model's ``version``, and ``price`` are for audits that look before they ask.
        """
        return self._one("", do.Ask(person, group, decision, score, price, version))

    def ask_many(self, people: Iterable[Sequence[Any]]) -> list[Reply]:
        """Ask about many; a refused one has its ``problem`` set and holds up nobody.

        Each is a person, a group and a decision, then perhaps a score, a price and a version.
        """
        rows = (do.made(do.Ask, row, "person, group, decision") for row in people)
        return self._many("/people", "people", rows)

    def tell(self, person: str, outcome: int) -> Reply:
        """Bring an outcome, in any order, at any time."""
        return self._one("/outcome", do.Tell(person, outcome))

    def tell_many(self, outcomes: Iterable[tuple[str, int]]) -> list[Reply]:
        """Bring many outcomes; a refused one has its ``problem`` set and holds up nobody."""
        rows = (do.made(do.Tell, row, "person, outcome") for row in outcomes)
        return self._many("/outcomes", "outcomes", rows)

    def executed(self, person: str) -> Reply:
        """Say that the override was carried out."""
        return self._about(person, "/execution")

    def withdraw(self, person: str) -> Reply:
        """Say that the person refused: the hold is released, the outcome stays unknown."""
        return self._about(person, "/withdrawal")

    def overdue(self, *, days: float | None = None) -> list[Reply]:
        """Mark the requests that are older than ``days`` (the audit's ``overdue_after``)."""
        return [_reply(one) for one in self._call("POST", "/overdue", {"days": days})["results"]]

    def write_off(self, person: str) -> Reply:
        """Give up an overdue outcome: its worst cost is posted, it stays unknown."""
        return self._about(person, "/write-off")

    def correct(self, person: str, outcome: int, why: str) -> Reply:
        """Replace a known outcome by the right one; the old event stays."""
        return self._about(person, "/correction", {"outcome": outcome, "why": why})

    def erase(self, person: str) -> Reply:
        """Forget a person: pseudonym, and key are gone, chain and money stay provable."""
        return _reply(self._call("DELETE", f"/people/{_part(person)}"))

    # -- the audit --------------------------------------------------------------------------------

    def conclude(self, why: str = "nobody else is to come") -> Finding | None:
        """Say that nobody else will come; return what the evidence supports."""
        self._call("POST", "/conclude", {"why": why})
        return self.finding

    def pause(self, why: str) -> Reply:
        """Ask nobody for now; outcomes are taken all the same."""
        return _decision(self._call("POST", "/pause", {"why": why}))

    def resume(self, why: str) -> Reply:
        """Ask again."""
        return _decision(self._call("POST", "/resume", {"why": why}))

    def set_budget(self, budget: int | None, why: str) -> Reply:
        """Change the cap: up freely, down to what is spent or held; None for no cap."""
        return _decision(self._call("PUT", "/budget", {"budget": budget, "why": why}))

    def set_limits(
        self,
        max_in_flight: int | None,
        max_in_flight_groups: Mapping[str, int] | None = None,
        *,
        why: str,
    ) -> Reply:
        """Change how many requests may be without an outcome at once."""
        body = {"max_in_flight": max_in_flight, "why": why}
        groups = {"max_in_flight_groups": dict(max_in_flight_groups or {})}
        return _decision(self._call("PUT", "/limits", body | groups))

    def approve(self, proposal: int) -> Reply:
        """Carry out what somebody else proposed, where the audit asks for a second person."""
        return _decision(self._call("POST", f"/proposals/{int(proposal)}/approval"))

    def reject(self, proposal: int, why: str) -> Reply:
        """Drop a proposal."""
        body = {"why": why}
        return _decision(self._call("POST", f"/proposals/{int(proposal)}/rejection", body))

    # -- where it stands, and proof ---------------------------------------------------------------

    @property
    def finding(self) -> Finding | None:
        """The answer, None while the audit goes on."""
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
        """Have the ledger checked against its events and every checkpoint handed out."""
        found: dict[str, Any] = self._call("POST", "/verifications")
        return found

    def events(self, *, after: int = 0) -> Iterator[dict[str, Any]]:
        """Yield what happened, event by event, as far as it goes now."""
        while page := self._call("GET", f"/events?after={after}&limit={AT_ONCE}")["events"]:
            yield from page
            after = page[-1]["seq"]

    def people(self, *, states: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        """Yield people in order of arrival, in the given states, page by page."""
        wanted, after = "".join(f"&state={quote(state)}" for state in states), 0
        while after is not None:
            page = self._call("GET", f"/people?after={after}&limit={AT_ONCE}{wanted}")
            yield from page["people"]
            after = page["next"]

    # -- helpers ----------------------------------------------------------------------------------

    def _about(self, person: str, what: str, body: Mapping[str, Any] | None = None) -> Reply:
        return _reply(self._call("PUT", f"/people/{_part(person)}{what}", body))

    def _one(self, what: str, command: do.Ask | do.Tell) -> Reply:
        person, body = _apart(do.checked(command))
        return self._about(person, what, body)

    def _many(
        self, path: str, name: str, commands: Iterable[Command | EquipoiseError]
    ) -> list[Reply]:
        def send(part: Sequence[Command]) -> list[Reply]:
            rows = [{"person": person, **body} for person, body in map(_apart, part)]
            found = self._call("POST", path, {name: rows})["results"] if rows else []
            return [_reply(one) for one in found]

        return do.in_batches(commands, AT_ONCE, send)

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Call until somebody answers; every call may be repeated."""
        import httpx

        deadline, wait = time.monotonic() + self._patience, 0.05
        while True:
            try:
                answer = self._http.request(method, self._root + path, json=body)
                if answer.status_code not in AGAIN:
                    return _read(answer)
                asked = float(answer.headers.get("retry-after", 0))
                wait = min(max(wait, asked), 30.0)
                problem = str(_problem(answer))
            except httpx.TransportError as error:
                problem = f"no answer from {self._http.base_url}: {error}"
            if time.monotonic() + wait > deadline:
                raise LedgerError(f"{problem}; repeating the call is safe")
            time.sleep(wait * random.uniform(0.5, 1.0))
            wait = min(2.0 * wait, 5.0)


def _read(answer: httpx.Response) -> Any:
    if answer.is_success:
        return answer.json()
    raise _problem(answer)


def _problem(answer: httpx.Response) -> EquipoiseError:
    try:
        found = answer.json()
        kind = str(found["type"]).removeprefix("urn:equipoise:")
        words = found.get("detail") or found["title"]
    except (KeyError, TypeError, ValueError, AttributeError):
        return LedgerError(f"the server answered {answer.status_code} without a reason")
    return ERRORS.get(kind, InvalidInput)(f"{words} ({kind})")


def _reply(found: Mapping[str, Any]) -> Reply:
    if "problem" in found:
        problem = found["problem"]
        return Reply(found["person"], problem=problem.get("detail") or problem["title"])
    return Reply(**{**found, "want": Want(found["want"])})


def _decision(found: Mapping[str, Any]) -> Reply:
    return Reply("", **found)


def _part(name: str) -> str:
    return quote(name, safe="")


def _apart(command: Command) -> tuple[str, dict[str, Any]]:
    """Return whom a command is about, and what it says of them."""
    said = {field.name: getattr(command, field.name) for field in fields(command)}
    del said["command"]
    return said.pop("person"), {k: v for k, v in said.items() if v is not None and v != ""}


def _whole(value: Any) -> Any:
    """Return amounts as the whole numbers that they are."""
    if isinstance(value, JsonValue):
        return _whole(value.to_dict())
    if isinstance(value, Mapping):
        return {key: _whole(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return [_whole(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
