"""Planning: what every audit would cost on this history, before anything is paid."""

from equipoise.planning.budget import Affordable
from equipoise.planning.forecast import Forecast
from equipoise.planning.make_plan import Plan, plan
from equipoise.planning.rehearsal import Quantile, Rehearsal
from equipoise.planning.scenarios import Scenario
from equipoise.planning.score_savings import ScoreSavings
from equipoise.planning.whatif import Variation, what_if

__all__ = [
    "Affordable",
    "Forecast",
    "Plan",
    "Quantile",
    "Rehearsal",
    "Scenario",
    "ScoreSavings",
    "Variation",
    "plan",
    "what_if",
]
