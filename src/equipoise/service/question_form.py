"""What a form asks about past decisions: the question, what is assumed, and what an audit costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from equipoise.comparison import Comparison
from equipoise.errors import InvalidInput, UnknownName
from equipoise.free_check.assumptions import NO_BETTER, Assume
from equipoise.messages.form import COMPARE_TITLES, DIRECTION_TITLES, QUESTION_TITLES
from equipoise.metrics import METRICS
from equipoise.planning.scenarios import denied_rates_by_ratio
from equipoise.question import Costs, Question
from equipoise.service.counted_past import CountedPast
from equipoise.service.forms import Form

QUESTION_FIELDS = ("metric", "also", "tolerance", "margin", "error", "error_fair", "error_unfair",
                   "compare", "against", "direction", "leave_out", "all_rates", "no_better",
                   "limits", "deciders")  # fmt: skip
PRICE_FIELDS = ("feature", "label", "arrivals_per_day", "outcome_after")
DENIED_RATE = "denied_rate_"  # and a group's position among all groups: a slider, in percent
RATE_IS_KNOWN = "known_"  # and the position: whether the plan takes what the slider says
EVERY_METRIC = "all"
USUAL_METRIC = "equalized_odds"
USUAL_PERCENTAGES = {"tolerance": "5", "margin": "5", "error": "5"}
MAX_NUMBER_CHARACTERS = 40


def question_texts(form: Form) -> dict[str, Any]:
    """Return what the fields of the question show: as sent, or the usual."""
    texts: dict[str, Any] = {name: form.text(name) for name in (*QUESTION_FIELDS, *PRICE_FIELDS)}
    for name, usual in USUAL_PERCENTAGES.items():
        texts[name] = texts[name] or usual
    texts["metric"] = texts["metric"] or USUAL_METRIC
    texts["label"] = texts["label"] or "1"
    texts["feature"] = texts["feature"] or "0"
    texts["leave_out"] = left_out_groups(form)
    return texts


def sent_question(form: Form) -> list[tuple[str, str]]:
    """Return the fields of a question as they travel with another form."""
    return _sent_fields(form, QUESTION_FIELDS)


def sent_prices(form: Form) -> list[tuple[str, str]]:
    """Return the prices of an audit as they travel with another form."""
    sliders = [
        name for name, _ in form.multi_items() if name.startswith((DENIED_RATE, RATE_IS_KNOWN))
    ]
    return _sent_fields(form, (*PRICE_FIELDS, *sliders))


def _sent_fields(form: Form, names: Sequence[str]) -> list[tuple[str, str]]:
    fields = [(name, str(value)) for name, value in form.multi_items() if name in names]
    return [(name, value) for name, value in fields if value.strip()]


def left_out_groups(form: Form) -> list[str]:
    """Return the groups that a form leaves out; a name may hold any character."""
    names = [str(value).strip() for value in form.getlist("leave_out")]
    return [name for name in names if name]


def read_questions(form: Form, past: CountedPast) -> tuple[Question, ...]:
    """Return what a form asks: one question, or one for every metric.

    Raises
    ------
    InvalidInput
        If a field breaks a rule, or names a group that does not exist.
    """
    metric = form.text("metric", USUAL_METRIC) or USUAL_METRIC
    second_metric = form.text("also")
    if metric == EVERY_METRIC:
        metrics = list(METRICS)
    else:
        metrics = [f"{metric}+{second_metric}" if second_metric else metric]
    comparison = Comparison(
        _read_choice(form, "compare", COMPARE_TITLES),
        form.text("against") or None,
        _read_choice(form, "direction", DIRECTION_TITLES) if form.text("against") else "both",
        past.has_strata,
        tuple(left_out_groups(form)),
    )
    questions = []
    for name in metrics:
        question = Question(
            name,
            gamma=_share(form, "tolerance"),
            epsilon=_share(form, "margin"),
            delta=_share(form, "error"),
            delta_wrong_fair=_share(form, "error_fair") if form.text("error_fair") else None,
            delta_wrong_unfair=_share(form, "error_unfair") if form.text("error_unfair") else None,
            compare=comparison,
        )
        question.resolve(past.history.cells)  # refuses groups that do not exist
        questions.append(question)
    return tuple(questions)


def _read_choice(form: Form, name: str, titles: Any) -> Any:
    """Return a choice of a form, the first of them if nothing is chosen."""
    choice = form.text(name) or next(iter(titles))
    if choice not in titles:
        raise UnknownName(f"value of {name!r}", choice, titles)
    return choice


def _share(form: Form, name: str) -> float:
    """Return a field in points or percent as a share: "5" is 0.05."""
    text = form.text(name) or USUAL_PERCENTAGES[name]
    try:
        number = Decimal(text[:MAX_NUMBER_CHARACTERS])
        if not number.is_finite():
            raise InvalidOperation
        return float(number / 100)
    except (InvalidOperation, OverflowError):
        title = QUESTION_TITLES[name]
        message = f"“{title}” must be a number; got {text[:MAX_NUMBER_CHARACTERS]!r}"
        raise InvalidInput(message) from None


def read_assumptions(form: Form) -> Assume | None:
    """Return the assumptions that the form grants, None if there are none."""
    lines = [line.strip() for line in form.text("limits").splitlines()]
    assumptions = [line for line in lines if line]
    if form.text("no_better"):
        assumptions.insert(0, NO_BETTER)
    return Assume.parse(assumptions) or None


def read_deciders(form: Form) -> Literal["as_random"] | None:
    """Return whether cases are said to fall to deciders as if at random."""
    return "as_random" if form.text("deciders") else None


def read_costs(form: Form) -> Costs:
    """Return the prices of an audit, in whole units of the currency."""
    return Costs(feature=form.number("feature", 0.0), label=form.number("label", 1.0))


@dataclass(frozen=True)
class DeniedRateSlider:
    """How many of a group's denied people would do well, as a form has it.

    Attributes
    ----------
    group
        The group.
    position
        Its position among all groups, which is part of the names of its fields.
    percent
        What the slider says; the usual share until somebody moves it.
    is_rate_known
        Whether the plan takes it. Otherwise the plan has several cases.
    """

    group: str
    position: int
    percent: float
    is_rate_known: bool

    @property
    def name(self) -> str:
        """The name of the slider's field."""
        return f"{DENIED_RATE}{self.position}"

    @property
    def tick_name(self) -> str:
        """The name of the field that says whether it is known."""
        return f"{RATE_IS_KNOWN}{self.position}"


def read_sliders(form: Form, past: CountedPast, question: Question) -> list[DeniedRateSlider]:
    """Return a slider for every group that the question compares.

    Raises
    ------
    InvalidInput
        If a slider does not say a number from 0 to 100.
    """
    cells = past.history.cells
    left_out = question.resolve(cells).left_out
    sliders = []
    # Fields are named by position, because a group's name may hold any character.
    for position, (group, usual_rate) in enumerate(denied_rates_by_ratio(cells).items()):
        if group in left_out:
            continue
        percent = form.number(f"{DENIED_RATE}{position}", round(100.0 * usual_rate))
        if not 0.0 <= percent <= 100.0:  # "not a number" is refused as well
            raise InvalidInput(
                f"of 100 denied people of {group}, 0 to 100 would do well; got {percent!r}"
            )
        is_rate_known = bool(form.text(f"{RATE_IS_KNOWN}{position}"))
        sliders.append(DeniedRateSlider(group, position, percent, is_rate_known))
    return sliders


def read_plan_options(form: Form, past: CountedPast, question: Question) -> dict[str, Any]:
    """Return further arguments of a plan: what is known of the denied, and the pace."""
    options: dict[str, Any] = {}
    for name in ("arrivals_per_day", "outcome_after"):
        if form.text(name):
            options[name] = form.number(name, 0.0)
    sliders = read_sliders(form, past, question)
    denied_rates = {
        slider.group: slider.percent / 100.0 for slider in sliders if slider.is_rate_known
    }
    if len(denied_rates) == len(sliders):
        # Nothing is left to guess. Groups that are left out do not matter to the question.
        denied_rates = denied_rates_by_ratio(past.history.cells) | denied_rates
    if denied_rates:
        options["denied_rate"] = denied_rates
    return options
