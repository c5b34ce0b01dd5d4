"""What audits cost: the paper's theorems with their constants, and exact expectations."""

from equipoise.bounds.expected import baseline_expectation, rs_expectation
from equipoise.bounds.price import Price
from equipoise.bounds.stopping import OUTCOMES, paper_epsilon, paper_tau, relative_error
from equipoise.bounds.theorems import baseline_bound, exp_bound, family_bound, rs_bound

__all__ = [
    "OUTCOMES",
    "Price",
    "baseline_bound",
    "baseline_expectation",
    "exp_bound",
    "family_bound",
    "paper_epsilon",
    "paper_tau",
    "relative_error",
    "rs_bound",
    "rs_expectation",
]
