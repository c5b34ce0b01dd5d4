"""Planning: what every audit would cost on this history, before anything is paid."""

from equipoise.planning.forecast import Forecast, Outlook
from equipoise.planning.make_plan import Plan, plan
from equipoise.planning.whatif import Variation, what_if

__all__ = ["Forecast", "Outlook", "Plan", "Variation", "plan", "what_if"]
