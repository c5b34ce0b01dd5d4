"""What may be done to an audit, and what comes back.

A command is a frozen dataclass; its attribute ``command`` is the tag by which it is known outside.
``to_dict`` leaves out what is at its default, and :func:`read_command` builds the command again,
so commands travel as JSON as they are::

    {"command": "ask", "person": "p-17", "group": "A", "decision": 0}
    {"command": "pause", "why": "a holiday", "key": "f3a9…"}

A :class:`Reply` travels the same way (``to_dict``, ``from_dict``). Whoever runs commands answers
each with a reply or with the reason why not (an :class:`~equipoise.errors.EquipoiseError`), in
their order; a refused command leaves no trace, except that a conflict is itself an event.

Commands about a person may be repeated: what was carried out before is answered from the ledger.
``key`` makes that true of every command: the first one that carries a key and changes something
leaves it in its event, and any later one with the same key is answered from the record, however
late it comes (pause, resume, and the first *pause* once more).

:class:`AuditCommands` are the same commands as methods: :class:`~equipoise.ledger.live.LiveAudit`
carries them out in a ledger and :class:`~equipoise.client.RemoteAudit` sends them to a server.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, ClassVar

from equipoise._json import JsonValue, to_plain_data
from equipoise.errors import EquipoiseError, InvalidInput, UnknownName, require_kind
from equipoise.finding import Finding
from equipoise.ledger import inputs
from equipoise.protocol import Want

BATCH_LIMIT = 1000  # commands per transaction, or per message, in a long batch


@dataclass(frozen=True, kw_only=True)
class Command(JsonValue):
    """Something that may be done to an audit; the tag of a class is how it is known outside.

    ``key`` is a client's own, by which a duplicate is recognised.
    """

    command: ClassVar[str] = ""
    key: str = ""

    def __init_subclass__(cls, tag: str = "") -> None:
        cls.command = tag
        if tag:  # a base of commands, and Scrubbed, have none: no message can name them
            COMMANDS[tag] = cls

    def to_dict(self) -> dict[str, Any]:
        """Return the tag, and every field that is not at its default."""
        data: dict[str, Any] = {"command": self.command}
        for field_ in fields(self):
            value = to_plain_data(getattr(self, field_.name))
            # A default that a factory makes is not known here, so such a field is always written.
            if value != field_.default:
                data[field_.name] = value
        return data


COMMANDS: dict[str, type[Command]] = {}
"""Tag -> class."""


@dataclass(frozen=True)
class OfPerson(Command):
    """Something that happens to a person and needs no more words."""

    person: str


@dataclass(frozen=True)
class ForReason(Command):
    """Something that happens to the audit, and why."""

    why: str


@dataclass(frozen=True)
class Ask(Command, tag="ask"):
    """Somebody arrived; with a score, of a version, and a price for audits that use scores."""

    person: str
    group: str
    decision: int
    score: float | None = None
    price: int | None = None
    version: str = ""


@dataclass(frozen=True)
class Tell(Command, tag="tell"):
    """An outcome became known."""

    person: str
    outcome: int


class Execute(OfPerson, tag="execute"):
    """An override was carried out."""


class Withdraw(OfPerson, tag="withdraw"):
    """A person refused before the override was carried out."""


class MarkOverdue(OfPerson, tag="overdue"):
    """An outcome should have come by now."""


class WriteOff(OfPerson, tag="write_off"):
    """An overdue outcome is given up; its worst cost is posted."""


@dataclass(frozen=True)
class Correct(Command, tag="correct"):
    """A known outcome was wrong."""

    person: str
    outcome: int
    why: str


class Erase(OfPerson, tag="erase"):
    """Forget a person: pseudonym and key."""


class Conclude(ForReason, tag="conclude"):
    """Nobody else is to come."""


class Pause(ForReason, tag="pause"):
    """Ask nobody for now."""


class Resume(ForReason, tag="resume"):
    """Continue after a pause."""


@dataclass(frozen=True)
class SetBudget(Command, tag="set_budget"):
    """Another cap, or none."""

    budget: int | None
    why: str


@dataclass(frozen=True)
class SetLimits(Command, tag="set_limits"):
    """Other limits of what is in flight."""

    max_in_flight: int | None
    max_in_flight_groups: Mapping[str, int] = field(default_factory=dict)
    why: str = ""


@dataclass(frozen=True)
class SetRandomAccepts(Command, tag="set_random_accepts"):
    """A later file of the test programme: good, bad and unknown outcomes per group."""

    random_accepts: Mapping[str, Sequence[int]]
    corrected: Mapping[str, int] = field(default_factory=dict)
    why: str = ""


class Upgrade(ForReason, tag="upgrade"):
    """Weigh what is recorded by this program's edition of the statistics from now on."""


@dataclass(frozen=True)
class Approve(Command, tag="approve"):
    """Carry out what somebody else proposed."""

    proposal: int


@dataclass(frozen=True)
class Reject(Command, tag="reject"):
    """Reject a proposal."""

    proposal: int
    why: str


@dataclass(frozen=True)
class Scrubbed(Command):
    """The database's files hold no copies of the first ``erased`` people who were erased.

    The program that rewrote the files runs it; it has no tag, so it never comes from outside.
    """

    erased: int


EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "ask": {"person": "applicant-4711", "group": "B", "decision": 0},
    "tell": {"person": "applicant-4711", "outcome": 1},
    "execute": {"person": "applicant-4711"},
    "withdraw": {"person": "applicant-4711"},
    "overdue": {"person": "applicant-4711"},
    "write_off": {"person": "applicant-4711"},
    "correct": {"person": "applicant-4711", "outcome": 0, "why": "the wrong column was read"},
    "erase": {"person": "applicant-4711"},
    "conclude": {"why": "the pilot has ended"},
    "pause": {"why": "holidays", "key": "pause of 24 December"},
    "resume": {"why": "back at work"},
    "set_budget": {"budget": 600000, "why": "the board has agreed"},
    "set_limits": {"max_in_flight": 50, "max_in_flight_groups": {"B": 20}, "why": "more staff"},
    "set_random_accepts": {"random_accepts": {"A": [40, 9, 1], "B": [31, 18, 0]}, "why": "May"},
    "upgrade": {"why": "version 0.2"},
    "approve": {"proposal": 7},
    "reject": {"proposal": 7, "why": "the budget is enough"},
}
"""Tag of a command -> fields of an example, which the description of the HTTP interface shows."""


def read_command(data: Mapping[str, Any]) -> Command:
    """Build a command from what ``to_dict`` gave; its values are checked when it is run.

    Examples
    --------
    >>> read_command({"command": "tell", "person": "p-17", "outcome": 1})
    Tell(key='', person='p-17', outcome=1)
    """
    require_kind("command", data, Mapping, "an object with the field 'command'")
    tag = data.get("command")
    if not isinstance(tag, str) or tag not in COMMANDS:
        raise UnknownName("command", tag, COMMANDS)
    arguments = {name: value for name, value in data.items() if name != "command"}
    try:
        return COMMANDS[tag].from_dict(arguments)
    except (AttributeError, TypeError):
        # A field too many, or of another kind, has no list: it is shown with the whole command.
        missing = _missing_fields(COMMANDS[tag], data)
        problem = f"lacks {' and '.join(missing)}" if missing else f"cannot be read: {dict(data)!a}"
        # Cut, because the data come from outside and may be of any length.
        raise InvalidInput(f"the command {tag!r} {problem}"[:300]) from None


def _missing_fields(command_class: type[Command], data: Mapping[str, Any]) -> list[str]:
    """Return the fields, in quotes, that a command needs and the data lack."""
    missing = []
    for field_ in fields(command_class):
        has_default = not (field_.default is MISSING and field_.default_factory is MISSING)
        if not has_default and field_.name not in data:
            missing.append(repr(field_.name))
    return missing


def person_of(command: object) -> str:
    """Return whom a command is about, nobody ('') if it is about the audit."""
    return str(getattr(command, "person", ""))


CHECKS: Mapping[str, Callable[[str, object], object]] = {
    # Field -> check; the names are those of JSON.
    "key": inputs.name,
    "person": inputs.name,
    "group": inputs.name,
    "decision": inputs.binary,
    "outcome": inputs.binary,
    "score": inputs.number,
    "price": inputs.whole_amount,
    "budget": inputs.whole_amount,
    "proposal": inputs.count,
    "version": inputs.text,
    "why": inputs.reason,
    "max_in_flight_groups": inputs.mapping,
    "random_accepts": inputs.mapping,
    "corrected": inputs.mapping,
}
"""Field of a command -> what returns its value in stored form, or refuses it."""
MAY_BE_NONE = ("score", "price", "budget")


def _check_command(command: object) -> Command | EquipoiseError:
    """Return the command with everything in it in stored form, or why it is refused.

    The check is made in the caller's own thread, so a bad command never reaches a transaction that
    others share.
    """
    if isinstance(command, EquipoiseError):
        return command
    if not isinstance(command, Command) or command.command not in COMMANDS:
        return InvalidInput(f"a command is needed, as in Ask('p1', 'A', 0); got {command!r}")
    stored_values: dict[str, Any] = {}
    for field_ in fields(command):
        name = field_.name
        value = getattr(command, name)
        # Their checks would refuse "no key" and "no cap", which are allowed.
        is_absent = (name == "key" and value == "") or (name in MAY_BE_NONE and value is None)
        if name not in CHECKS or is_absent:
            continue
        try:
            stored_values[name] = CHECKS[name](name, value)
        except EquipoiseError as error:
            return error
    return replace(command, **stored_values)


@dataclass(frozen=True)
class Reply(JsonValue):
    """What came of one command.

    Attributes
    ----------
    want, hold, request
        The stored decision: what is wanted of the person, the most that it can cost in minor
        units, and the place in request order (None where the audit was not consulted).
    number
        The person's number in order of arrival, which stands for them in the chain; of a
        proposal, what to approve it by.
    state, why
        The person's state, and why nothing is wanted where it is SKIPPED: ``approved``, ``budget``,
        ``concluded``, ``decided``, ``in_flight``, ``left_out``, ``lottery``, ``not_wanted`` or
        ``paused``.
    repeated
        The command changed nothing: it was carried out before.
    problem
        In a batch: why this one was refused; None if it was not.

    Examples
    --------
    >>> Reply("p-17", state="RESERVED", want=Want.LABEL, hold=100).to_dict()["want"]
    'LABEL'
    """

    person: str
    state: str = ""
    want: Want = Want.NOTHING
    hold: int = 0
    number: int | None = None
    request: int | None = None
    why: str = ""
    outcome: int | None = None
    repeated: bool = False
    problem: str | None = None


class AuditCommands(ABC):
    """The commands of an audit as methods; a subclass says how they are carried out.

    Every method may be repeated after a failure: what was carried out before is answered as it was
    and changes nothing. What a method returns is on disk. ``key``, any text of the caller's own,
    makes that hold for a duplicate that comes late, too.
    """

    @abstractmethod
    def results(self, commands: Sequence[Command]) -> list[Reply | EquipoiseError]:
        """Carry out checked commands, at most 1,000; return, once stored, a result for each."""

    @property
    @abstractmethod
    def finding(self) -> Finding | None:
        """The answer, None while the audit is in progress."""

    def attempt(self, commands: Sequence[Command | EquipoiseError]) -> list[Reply | EquipoiseError]:
        """Carry out commands of any kind and number; return a result, or why not, for each."""
        answers: list[Reply | EquipoiseError] = []
        for start in range(0, len(commands), BATCH_LIMIT):
            batch = [_check_command(command) for command in commands[start : start + BATCH_LIMIT]]
            accepted = [command for command in batch if not isinstance(command, EquipoiseError)]
            replies = iter(self.results(accepted) if accepted else ())
            # Refused commands have no reply, so replies are counted off beside the commands.
            for command in batch:
                if isinstance(command, EquipoiseError):
                    answers.append(command)
                else:
                    answers.append(next(replies))
        return answers

    def do(self, command: Command) -> Reply:
        """Carry out one command, or raise the reason why not."""
        (answer,) = self.attempt([command])
        if isinstance(answer, EquipoiseError):
            raise answer
        return answer

    def run(self, commands: Iterable[Command | EquipoiseError]) -> list[Reply]:
        """Carry out commands of any kind; a refused one has its ``problem`` set."""
        batch = list(commands)
        replies = []
        for command, answer in zip(batch, self.attempt(batch), strict=True):
            if isinstance(answer, EquipoiseError):
                person = printable(getattr(command, "person", ""))
                replies.append(Reply(person, problem=str(answer)))
            else:
                replies.append(answer)
        return replies

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
        key: str = "",
    ) -> Reply:
        """Say what is wanted of somebody who arrived; the same for ever after.

        ``score``, of a model's ``version``, and ``price`` are for audits that use scores.
        """
        return self.do(Ask(person, group, decision, score, price, version, key=key))

    def ask_many(self, people: Iterable[Sequence[Any]]) -> list[Reply]:
        """Ask about many; a refused one has its ``problem`` set and holds up nobody.

        Each is a person, a group and a decision, then perhaps a score, a price and a version.
        """
        return self.run(_command_from(Ask, row, "person, group, decision") for row in people)

    def tell(self, person: str, outcome: int, *, key: str = "") -> Reply:
        """Bring an outcome, in any order, at any time."""
        return self.do(Tell(person, outcome, key=key))

    def tell_many(self, outcomes: Iterable[tuple[str, int]]) -> list[Reply]:
        """Bring many outcomes; a refused one has its ``problem`` set and holds up nobody."""
        return self.run(_command_from(Tell, row, "person, outcome") for row in outcomes)

    def executed(self, person: str, *, key: str = "") -> Reply:
        """Say that the override was carried out."""
        return self.do(Execute(person, key=key))

    def withdraw(self, person: str, *, key: str = "") -> Reply:
        """Say that the person refused: the hold is released, the outcome stays unknown."""
        return self.do(Withdraw(person, key=key))

    def write_off(self, person: str, *, key: str = "") -> Reply:
        """Give up an overdue outcome: its worst cost is posted, it stays unknown."""
        return self.do(WriteOff(person, key=key))

    def correct(self, person: str, outcome: int, why: str, *, key: str = "") -> Reply:
        """Replace a known outcome by the right one; the old event stays."""
        return self.do(Correct(person, outcome, why, key=key))

    def erase(self, person: str, *, key: str = "") -> Reply:
        """Erase a person. Pseudonym and key leave the tables. The chain can still be verified.

        The answer is ERASED where nothing is left of them, and UNLINKED while copies stay in the
        database's files, with who must do what in ``why``. Nothing is left that could tell
        whether somebody was erased before or never known, so a name that nobody has is answered
        as ``repeated``: look there for a mistyped one.
        """
        return self.do(Erase(person, key=key))

    # -- the audit --------------------------------------------------------------------------------

    def conclude(self, why: str = "nobody else is to come", *, key: str = "") -> Finding | None:
        """Say that nobody else will come; return what the evidence supports."""
        self.do(Conclude(why, key=key))
        return self.finding

    def pause(self, why: str, *, key: str = "") -> Reply:
        """Ask nobody for now; outcomes are taken all the same.

        The answer is PAUSED, or CONCLUDED or DECIDED if the audit has ended: nobody is asked then.
        """
        return self.do(Pause(why, key=key))

    def resume(self, why: str, *, key: str = "") -> Reply:
        """Continue after a pause.

        The answer is RESUMED, or CONCLUDED or DECIDED if the audit has ended: nobody is asked then.
        """
        return self.do(Resume(why, key=key))

    def set_budget(self, budget: int | None, why: str, *, key: str = "") -> Reply:
        """Change the cap: up freely, down to what is spent or held; None for no cap."""
        return self.do(SetBudget(budget, why, key=key))

    def set_limits(
        self,
        max_in_flight: int | None,
        max_in_flight_groups: Mapping[str, int] | None = None,
        *,
        why: str,
        key: str = "",
    ) -> Reply:
        """Change how many requests may be without an outcome at once."""
        return self.do(SetLimits(max_in_flight, max_in_flight_groups or {}, why, key=key))

    def set_random_accepts(
        self,
        random_accepts: Mapping[str, Sequence[int]],
        corrected: Mapping[str, int] | None = None,
        *,
        why: str,
        key: str = "",
    ) -> Reply:
        """Count a later file of the test programme that is part of the historical data.

        It brings good, bad and unknown outcomes per group (``History.read(...).cells`` counts
        them) of everybody whom the programme accepted since its first day; a group that is left out
        has none. Nobody may be missing who was in the last file: people who left stay as unknown,
        and ``corrected`` says how many outcomes of a group were changed since. Null cells and bets
        stay those of the past data.
        """
        return self.do(SetRandomAccepts(random_accepts, corrected or {}, why, key=key))

    def upgrade(self, why: str, *, key: str = "") -> Reply:
        """Go on under this program's edition of the statistics; what is recorded stands."""
        return self.do(Upgrade(why, key=key))

    def approve(self, proposal: int, *, key: str = "") -> Reply:
        """Carry out what somebody else proposed, where the audit asks for a second person."""
        return self.do(Approve(proposal, key=key))

    def reject(self, proposal: int, why: str, *, key: str = "") -> Reply:
        """Reject a proposal."""
        return self.do(Reject(proposal, why, key=key))


def _command_from(
    command_class: type[Ask | Tell], row: Any, names: str
) -> Command | EquipoiseError:
    """Return a row as a command, or why it cannot be one."""
    try:
        return command_class(*row)
    except TypeError:
        return InvalidInput(f"a row must be ({names}); got {row!a}")


def printable(person: object) -> str:
    """Return a pseudonym, or what was given as one, as it can be written anywhere."""
    return person if isinstance(person, str) and person.isprintable() else ascii(person)
