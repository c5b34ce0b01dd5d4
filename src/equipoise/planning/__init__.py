"""Planning: what every audit would cost on this history, before anything is paid."""

from equipoise.planning.plans import PLANNERS, Forecast, Plan, plan

__all__ = ["PLANNERS", "Forecast", "Plan", "plan"]
