"""What audits cost: the least possible, the paper's theorems, and exact expectations."""

from equipoise.bounds.assisted import most_efficient
from equipoise.bounds.expected import baseline_expectation, rs_expectation
from equipoise.bounds.optimal import LowerBound, lower_bound
from equipoise.bounds.paper_bounds import baseline_bound, exp_bound, family_bound, rs_bound
from equipoise.bounds.price import Price

__all__ = [
    "LowerBound",
    "Price",
    "baseline_bound",
    "baseline_expectation",
    "exp_bound",
    "family_bound",
    "lower_bound",
    "most_efficient",
    "rs_bound",
    "rs_expectation",
]
