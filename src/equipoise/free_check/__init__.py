"""The free check: what past data alone establish, at no cost."""

from equipoise.free_check.answer import Check, check
from equipoise.free_check.assumptions import Assume
from equipoise.free_check.explanations import list_assumptions, name_short_strata
from equipoise.free_check.gaps import gap_bounds, rate_intervals
from equipoise.free_check.past_bounds import CheckInputs, bands_from_past, group_shares
from equipoise.free_check.verdict import free_verdict

__all__ = [
    "Assume",
    "Check",
    "CheckInputs",
    "bands_from_past",
    "check",
    "free_verdict",
    "gap_bounds",
    "group_shares",
    "list_assumptions",
    "name_short_strata",
    "rate_intervals",
]
