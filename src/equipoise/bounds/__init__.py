"""What audits cost: the least possible, the paper's theorems, and exact expectations."""

from equipoise.bounds.least_cost import LowerBound, least_history_size, lower_bound
from equipoise.bounds.theorems import Price, expectation, family_bound, upper_bound

__all__ = [
    "LowerBound",
    "Price",
    "expectation",
    "family_bound",
    "least_history_size",
    "lower_bound",
    "upper_bound",
]
