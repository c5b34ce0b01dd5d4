"""Planning: what an audit would cost on this history, before anything is paid."""

from equipoise.planning.forecasts import Forecast, forecast
from equipoise.planning.make_plan import OtherAudit, Plan, plan
from equipoise.planning.scenarios import Scenario, ScenarioKind

__all__ = ["Forecast", "OtherAudit", "Plan", "Scenario", "ScenarioKind", "forecast", "plan"]
