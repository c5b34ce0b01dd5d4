"""What is asked: the question, its possible answers, and the price of information."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Literal

from equipoise._json import JsonValue
from equipoise.comparison import Comparison, GapScale, ResolvedComparison, as_comparison
from equipoise.display import format_level, format_number
from equipoise.errors import (
    InvalidInput,
    UnknownName,
    require_in_open_unit,
    require_kind,
    require_non_negative,
)
from equipoise.metrics import METRICS

SMALLEST_ERROR_LEVEL = 1e-100  # evidence must reach its inverse, as a floating-point number


class Verdict(StrEnum):
    """The answer of an audit.

    Examples
    --------
    >>> Verdict.UNFAIR == "UNFAIR"
    True
    """

    FAIR = "FAIR"
    UNFAIR = "UNFAIR"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True)
class Question(JsonValue):
    """Is the largest gap between groups at most ``gamma``, or above ``gamma + epsilon``?

    The gap is the largest over the metric's rates, of ``highest - lowest`` over the groups
    (``compare="difference"``) or of ``1 - lowest/highest`` (``compare="ratio"``: gamma = 0.2 is
    the four-fifths rule; 0/0 counts as 0, 0/x as 1); a :class:`Comparison` says which groups are
    compared, where it is not every one with every other. FAIR is right when the gap is at most
    gamma, UNFAIR when it is above gamma + epsilon; in between either answer is right. A verdict is
    wrong with probability at most ``delta``.

    Parameters
    ----------
    metric
        One of :data:`equipoise.metrics.METRICS`; or several, as a tuple of names or as
        ``"equal_opportunity+demographic_parity"``: the gap is the largest over all of their rates.
    gamma
        The tolerated gap, >= 0.
    epsilon
        The width of the zone in which either answer is acceptable, in (0, 1).
    delta
        The error probability, in (0, 1).
    delta_wrong_fair, delta_wrong_unfair
        Separate error probabilities, for calling an unfair decision-maker FAIR and for calling a
        fair one UNFAIR; ``delta`` where left out.
    compare
        ``"difference"``, ``"ratio"``, or a :class:`Comparison` that also says who is compared with
        whom. ``gamma + epsilon`` must be below 1 for a ratio. Where a rate is 0 in every group,
        the ratio is FAIR, but no number of labels tells it from one that is 0 in one group only:
        FAIR is out of reach, and C* infinite.

    Examples
    --------
    >>> print(Question("demographic_parity", gamma=0.2, epsilon=0.05, compare="ratio"))
    demographic parity as a ratio: FAIR if the gap (1 - lowest/highest rate) is at most 20% of the
    highest rate, UNFAIR if it is above 25% of the highest rate, error probability at most 5%
    >>> print(Question("equal_opportunity", gamma=0.05, epsilon=0.05, delta=0.05))
    equal opportunity: FAIR if the gap (the largest difference between groups) is at most 5 points,
    UNFAIR if it is above 10 points, error probability at most 5%
    """

    metric: str = "equalized_odds"
    gamma: float = 0.05
    epsilon: float = 0.05
    delta: float = 0.05
    delta_wrong_fair: float | None = None
    delta_wrong_unfair: float | None = None
    compare: Literal["difference", "ratio"] | Comparison = "difference"

    def __post_init__(self) -> None:
        object.__setattr__(self, "metric", _joined_metric_names(self.metric))
        require_non_negative("gamma", self.gamma)
        require_in_open_unit("epsilon", self.epsilon)
        _require_error_level("delta", self.delta)
        if self.delta_wrong_fair is not None:
            _require_error_level("delta_wrong_fair", self.delta_wrong_fair)
        if self.delta_wrong_unfair is not None:
            _require_error_level("delta_wrong_unfair", self.delta_wrong_unfair)
        # A frozen dataclass can be filled in here only by this detour.
        object.__setattr__(self, "compare", _shortest_form(self.compare))
        self._require_threshold_within_scale()

    def _require_threshold_within_scale(self) -> None:
        """Raise if no gap can be above ``gamma + epsilon``."""
        got = f"{self.gamma!r} + {self.epsilon!r}"
        # Strict, because above(rate, 1) of a ratio would divide by 0.
        if self.gap_scale is GapScale.RATIO and self.threshold >= 1.0:
            raise InvalidInput(
                "'gamma' + 'epsilon' of a ratio must be below 1, the gap between nothing and "
                f"something; got {got}"
            )
        if self.threshold > 1.0:
            raise InvalidInput(
                f"'gamma' + 'epsilon' must be at most 1, the largest possible difference; got {got}"
            )

    @cached_property
    def comparison(self) -> Comparison:
        """Who is compared with whom, and how: ``compare``, whichever way it was written."""
        return as_comparison(self.compare)

    @property
    def gap_scale(self) -> GapScale:
        """How two groups' rates are compared."""
        return GapScale(self.comparison.by)

    def resolve(self, groups: Iterable[str]) -> ResolvedComparison:
        """Return who is compared among all of the groups, by position.

        Raises
        ------
        UnknownName
            If the comparison names a group that is not among them.
        """
        # A misspelt group in leave_out would otherwise be compared without a word.
        names = tuple(groups)
        self.comparison.require_left_out_exist(names)
        return self.comparison.resolve(names)

    @property
    def level_wrong_fair(self) -> float:
        """The allowed probability of answering FAIR when UNFAIR is true."""
        return self.delta if self.delta_wrong_fair is None else self.delta_wrong_fair

    @property
    def level_wrong_unfair(self) -> float:
        """The allowed probability of answering UNFAIR when FAIR is true."""
        return self.delta if self.delta_wrong_unfair is None else self.delta_wrong_unfair

    @property
    def strictest_level(self) -> float:
        """The smaller of the two error levels, for events that could cause either mistake."""
        return min(self.level_wrong_fair, self.level_wrong_unfair)

    @property
    def threshold(self) -> float:
        """``gamma + epsilon``, the largest gap for which FAIR is right."""
        return self.gamma + self.epsilon

    def truth(self, gap: float) -> frozenset[Verdict]:
        """Return the verdicts that are right for a true gap."""
        # Two ifs: between gamma and gamma + epsilon both verdicts are right.
        right_verdicts = set()
        if gap <= self.threshold:
            right_verdicts.add(Verdict.FAIR)
        if gap > self.gamma:
            right_verdicts.add(Verdict.UNFAIR)
        return frozenset(right_verdicts)

    def __str__(self) -> str:
        metric_words = self.metric.replace("_", " ")
        gap_words = "the largest difference between groups"
        if self.gap_scale is GapScale.RATIO:
            metric_words = f"{metric_words} as a ratio"
            gap_words = "1 - lowest/highest rate"
        wrong_fair = format_level(self.level_wrong_fair)
        risk = f"error probability at most {wrong_fair}"
        if self.level_wrong_fair != self.level_wrong_unfair:
            wrong_unfair = format_level(self.level_wrong_unfair)
            risk = f"error probability at most {wrong_fair} for FAIR and {wrong_unfair} for UNFAIR"
        tolerance = self.gap_scale.format_gap(self.gamma)
        threshold = self.gap_scale.format_gap(self.threshold, 10)
        return (
            f"{metric_words}: FAIR if the gap ({gap_words}{self.comparison.words}) is at most "
            f"{tolerance}, UNFAIR if it is above {threshold}, {risk}"
        )


def _joined_metric_names(metric: object) -> str:
    """Return one or several metrics' names, joined by "+", each once; raise if one is unknown."""
    # Stored as one text, so that questions stay hashable and one JSON field holds any metric.
    names = metric.split("+") if isinstance(metric, str) else metric
    if not isinstance(names, list | tuple) or not names:
        raise UnknownName("metric", metric, METRICS)
    for name in names:
        if not isinstance(name, str) or name not in METRICS:
            raise UnknownName("metric", name, METRICS)
    return "+".join(dict.fromkeys(names))


def _require_error_level(name: str, error_level: float) -> None:
    """Raise unless an error level lies in (0, 1) and is not too small for the arithmetic."""
    require_in_open_unit(name, error_level)
    if error_level < SMALLEST_ERROR_LEVEL:
        raise InvalidInput(
            f"{name!r} must be at least 10 to the power of -100, the least that arithmetic keeps; "
            f"got {error_level!r}"
        )


def _shortest_form(compare: object) -> str | Comparison:
    """Return a comparison as questions store it, so that equal questions are equal values.

    A comparison of all pairs of groups is stored as ``"difference"`` or ``"ratio"``. JSON gives a
    mapping, which is read first.
    """
    if isinstance(compare, Mapping):
        compare = Comparison.from_dict(compare)
    if not isinstance(compare, Comparison):
        compare = Comparison(compare)  # type: ignore[arg-type]  # the constructor refuses others
    return compare.by if compare == Comparison(compare.by) else compare


@dataclass(frozen=True)
class Costs(JsonValue):
    """The price of information about a denied person.

    ``feature`` is paid for every denied person whose features or label are requested, ``label``
    on top of it only if that label turns out 0. Approved people cost nothing.

    Parameters
    ----------
    feature, label
        ``c_feat`` and ``c_lab``, both >= 0.
    groups
        Other prices for some groups.

    Examples
    --------
    >>> costs = Costs(feature=0.05, label=1.0, groups={"B": Costs(0.05, 2.0)})
    >>> costs.of("A").worst, costs.of("B").worst
    (1.05, 2.05)
    """

    feature: float = 0.0
    label: float = 1.0
    groups: Mapping[str, Costs] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_non_negative("feature", self.feature)
        require_non_negative("label", self.label)
        if not isinstance(self.groups, Mapping) or not all(
            isinstance(costs, Costs) and not costs.groups for costs in self.groups.values()
        ):
            raise InvalidInput(
                "'groups' of Costs must map groups to Costs that have no groups of their own; "
                f"got {self.groups!r}"
            )

    # The mapping has no hash of its own, and the order of its groups does not matter.
    def __hash__(self) -> int:
        return hash((self.feature, self.label, tuple(sorted(self.groups.items()))))

    def of(self, group: str) -> Costs:
        """Return the prices that hold for one group."""
        return self.groups.get(group, self)

    @property
    def worst(self) -> float:
        """The most that one label can cost."""
        return self.feature + self.label

    def expected(self, r: float) -> float:
        """Return the mean cost of a label when ``r = P[Y=1 | f=0]``."""
        return self.feature + self.label * (1.0 - r)

    def __str__(self) -> str:
        parts = [
            f"{format_number(self.feature)} per request + {format_number(self.label)} per failure"
        ]
        parts += [f"{group}: {costs}" for group, costs in self.groups.items()]
        return "; ".join(parts)


def as_question(question: object) -> Question:
    """Return a question; the name of a metric asks with the usual gamma, epsilon and delta."""
    if isinstance(question, str):
        return Question(question)
    require_question_and_costs(question)
    assert isinstance(question, Question)
    return question


def require_question_and_costs(question: object, costs: object = None) -> None:
    """Raise unless ``question`` is a Question and ``costs``, if there are any, are Costs."""
    require_kind("question", question, Question, "a Question, as in Question('equal_opportunity')")
    if costs is not None:
        require_kind("costs", costs, Costs, "Costs, as in Costs(feature=0.0, label=1.0)")
