"""The free check: what past data alone establish, at no cost."""

from equipoise.free_check.answer import Check, assumptions_of, check, free_verdict, short_strata
from equipoise.free_check.assumptions import Assume
from equipoise.free_check.gaps import gap_bounds, rate_intervals
from equipoise.free_check.past_bounds import Given, bands_from_past, group_shares

__all__ = [
    "Assume",
    "Check",
    "Given",
    "assumptions_of",
    "bands_from_past",
    "check",
    "free_verdict",
    "gap_bounds",
    "group_shares",
    "rate_intervals",
    "short_strata",
]
