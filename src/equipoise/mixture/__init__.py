"""The mixture model: exponential families behind a truncation, and what they are good for."""

from equipoise.mixture.families import (
    Binomial,
    ContinuousBernoulli,
    ContinuousPoisson,
    Exponential,
    Family,
    Poisson,
    Weibull,
)
from equipoise.mixture.gaussian import Gaussian
from equipoise.mixture.model import (
    MixtureModel,
    PastFeatures,
    SelfCheck,
    fit_model,
    learn_model,
)
from equipoise.mixture.rules import HalfSpace, LearnedRule, learn_classifier
from equipoise.mixture.trunc_est import (
    AssumptionCheck,
    StructuralConstants,
    TruncEstConstants,
    TruncEstResult,
    check_assumptions,
    separation_needed,
    trunc_est,
    trunc_est_constants,
)
from equipoise.mixture.truncated import (
    Diagnostics,
    TruncatedFit,
    acceptance,
    fit_truncated,
    known_law,
)
from equipoise.mixture.weights import Weight, likelihood_weight, log_ratio, map_weight

__all__ = [
    "AssumptionCheck",
    "Binomial",
    "ContinuousBernoulli",
    "ContinuousPoisson",
    "Diagnostics",
    "Exponential",
    "Family",
    "Gaussian",
    "HalfSpace",
    "LearnedRule",
    "MixtureModel",
    "PastFeatures",
    "Poisson",
    "SelfCheck",
    "StructuralConstants",
    "TruncEstConstants",
    "TruncEstResult",
    "TruncatedFit",
    "Weibull",
    "Weight",
    "acceptance",
    "check_assumptions",
    "fit_model",
    "fit_truncated",
    "known_law",
    "learn_classifier",
    "learn_model",
    "likelihood_weight",
    "log_ratio",
    "map_weight",
    "separation_needed",
    "trunc_est",
    "trunc_est_constants",
]
