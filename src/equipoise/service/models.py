"""What the API takes and gives."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from equipoise.rates import METRICS

Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Why = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
Bit = Annotated[int, Field(ge=0, le=1, strict=True)]
Amount = Annotated[int, Field(ge=0, lt=2**53, strict=True)]
Unit = Annotated[float, Field(gt=0.0, lt=1.0, allow_inf_nan=False, strict=True)]
Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False, strict=True)]
Number = Annotated[float, Field(allow_inf_nan=False, strict=True)]
Count = Annotated[float, Field(ge=0.0, le=2.0**53, allow_inf_nan=False, strict=True)]
BATCH = 1000


class Model(BaseModel):
    """What is not named here is refused, not ignored."""

    model_config = ConfigDict(extra="forbid")


# -- people ---------------------------------------------------------------------------------------


class Arrival(Model):
    """Somebody arrived: who they belong to, and what was decided.

    ``score``, of a model's ``version``, and ``price`` are for audits that look before they ask.
    """

    group: Name
    decision: Bit
    score: Number | None = None
    price: Amount | None = None
    version: Annotated[str, StringConstraints(max_length=2000)] = ""


class NamedArrival(Arrival):
    """The same in a batch."""

    person: Name


class Arrivals(Model):
    """Many who arrived."""

    people: Annotated[list[NamedArrival], Field(max_length=BATCH)]


class Outcome(Model):
    """How it turned out."""

    outcome: Bit


class NamedOutcome(Outcome):
    """The same in a batch."""

    person: Name


class Outcomes(Model):
    """Many that became known."""

    outcomes: Annotated[list[NamedOutcome], Field(max_length=BATCH)]


class People(Model):
    """Pseudonyms."""

    people: Annotated[list[Name], Field(max_length=BATCH)]


class Correction(Model):
    """The right outcome, and why."""

    outcome: Bit
    why: Why


class Overdue(Model):
    """Days after which an outcome is overdue; null for the audit's own number."""

    days: Annotated[float, Field(ge=0.0, le=36600.0, allow_inf_nan=False, strict=True)] | None = (
        None
    )


class WriterReply(Model):
    """All that a writer is told: what is wanted, and that it is stored."""

    person: str
    state: str
    want: Literal["NOTHING", "SCORE_ONLY", "FEATURES", "LABEL"]
    repeated: bool


class FullReply(WriterReply):
    """The same for those who may see the audit."""

    hold: int
    number: int | None
    request: int | None
    why: str
    outcome: int | None


class ProblemModel(BaseModel):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str | None = None


class Refusal(Model):
    """One of a batch that was not taken."""

    person: str
    problem: ProblemModel


class Results(Model):
    """A result for each of a batch, in its order."""

    results: list[FullReply | WriterReply | Refusal]


class PersonModel(Model):
    """What is stored about a person."""

    number: int
    person: str | None
    group: str
    decision: int
    want: str
    state: str
    why: str
    request: int | None
    hold: int
    paid: int
    overrun: int
    outcome: int | None
    asked: str
    executed: bool
    conflicted: bool


class PeoplePage(Model):
    """People in order of arrival; ``next`` is what to pass as ``after``, null at the end."""

    people: list[PersonModel]
    next: int | None


class EventsPage(Model):
    """Events in order; ``next`` is what to pass as ``after``, ``head`` the number of the last."""

    events: list[dict[str, Any]]
    next: int
    head: int


# -- audits ---------------------------------------------------------------------------------------


class GroupCounts(Model):
    """Past decisions of one group."""

    approved_positive: Count
    approved_negative: Count
    denied: Count
    approved_unknown: Count = 0.0


class QuestionModel(Model):
    """What is asked; see ``equipoise.Question``."""

    metric: Literal[tuple(METRICS)] = "equalized_odds"  # type: ignore[valid-type]
    gamma: Annotated[float, Field(ge=0.0, lt=1.0, allow_inf_nan=False, strict=True)] = 0.05
    epsilon: Unit = 0.05
    delta: Unit = 0.05
    compare: Literal["difference", "ratio"] = "difference"


class Prices(Model):
    """In whole minor units (cents)."""

    feature: Amount = 0
    label: Amount = 1


class CostsModel(Prices):
    """Prices, and other ones for some groups."""

    groups: dict[str, Prices] = {}


class NewAudit(Model):
    """An audit that begins; see ``LiveAudit.create``."""

    past: Annotated[dict[str, GroupCounts], Field(min_length=2, max_length=200)]
    question: QuestionModel = QuestionModel()
    costs: CostsModel = CostsModel()
    audit: Literal["adaptive", "rs", "baseline"] = "adaptive"
    options: dict[str, Any] = {}
    budget: Amount | None = None
    max_in_flight: Annotated[int, Field(ge=1, lt=2**53, strict=True)] | None = None
    max_in_flight_groups: dict[str, Annotated[int, Field(ge=1, lt=2**53, strict=True)]] = {}
    lottery: Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False, strict=True)] = 1.0
    overdue_after: Annotated[float, Field(gt=0.0, le=36600.0, strict=True)] | None = None
    stream: Literal["everybody", "denied"] = "everybody"
    currency: Annotated[str, StringConstraints(max_length=200)] = ""
    decimals: Annotated[int, Field(ge=0, le=9, strict=True)] = 0
    approvals: list[Literal["budget", "concluded", "corrected", "erased", "limits", "resumed"]] = []


class AuditModel(Model):
    """One audit in the list."""

    name: str
    id: str
    events: int
    time: str
    cap: int | None
    spent: int
    reserved: int
    overrun: int


class AuditsPage(Model):
    """The audits that a token opens."""

    audits: list[AuditModel]


class Reason(Model):
    """Why somebody decides something."""

    why: Why


class Budget(Model):
    """The money of an audit in minor units; ``cap`` null for none."""

    cap: int | None
    spent: int
    reserved: int
    overrun: int
    free: int | None
    currency: str
    decimals: int


class NewBudget(Reason):
    """Another cap, null for none."""

    budget: Amount | None


class NewLimits(Reason):
    """Other limits of what may be without an outcome."""

    max_in_flight: Annotated[int, Field(ge=1, lt=2**53, strict=True)] | None = None
    max_in_flight_groups: dict[str, Annotated[int, Field(ge=1, lt=2**53, strict=True)]] = {}


class Decision(Model):
    """What came of a decision about the audit; PROPOSED where a second person must approve."""

    state: str
    number: int | None
    why: str
    repeated: bool


class CheckpointModel(Model):
    """An end of the chain that was handed out."""

    audit: str
    seq: int
    hash: str
    time: str
    actor: str


class CheckpointsPage(Model):
    """The latest checkpoints, the latest first."""

    checkpoints: list[CheckpointModel]


class Verification(Model):
    """A check of the whole ledger against its events and against every checkpoint."""

    events: int
    head: str
    verdict: str | None
    checkpoints: int


class FindingModel(Model):
    """The verdict; null while the audit goes on. ``so_far`` is what is established by now."""

    finding: dict[str, Any] | None
    so_far: dict[str, Any]


class Forecast(Model):
    """What an audit is expected to cost: C* times the multiples that were measured.

    All null where no audit can decide; all 0 where past data do.
    """

    least: float | None
    low: float | None
    expected: float | None
    high: float | None
    assumes: dict[str, float]
    rehearsed: dict[str, Any] | None = None


class DriftPage(Model):
    """Whether the present is like the past."""

    tests: list[dict[str, Any]]
    alarm: bool
