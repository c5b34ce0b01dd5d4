"""The free check: what past data alone establish, at no cost."""

from equipoise.free_check.answer import (
    Check,
    check,
    compared_groups,
    list_assumptions,
    name_short_strata,
    proof_from_past,
)
from equipoise.free_check.assumptions import Assume
from equipoise.free_check.bounds import (
    CheckInputs,
    bands_from_past,
    gap_bounds,
    group_shares,
    rate_intervals,
)
from equipoise.free_check.verdict import free_verdict

__all__ = [
    "Assume",
    "Check",
    "CheckInputs",
    "bands_from_past",
    "check",
    "compared_groups",
    "free_verdict",
    "gap_bounds",
    "group_shares",
    "list_assumptions",
    "name_short_strata",
    "proof_from_past",
    "rate_intervals",
]
