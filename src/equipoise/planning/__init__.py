"""Planning: what an audit would cost on this history, before anything is paid."""

from equipoise.planning.cases import Scenario
from equipoise.planning.forecasts import Forecast, forecast
from equipoise.planning.make_plan import OtherAudit, Plan, plan
from equipoise.planning.score_savings import ScoreSavings

__all__ = [
    "Forecast",
    "OtherAudit",
    "Plan",
    "Scenario",
    "ScoreSavings",
    "forecast",
    "plan",
]
