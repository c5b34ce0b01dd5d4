"""The mixture model: exponential families behind a truncation, and what they are good for."""

from equipoise.mixture.acceptance import acceptance, known_law
from equipoise.mixture.bayes_classifier import BayesClassifier, TradeOff, trade_off
from equipoise.mixture.family import Curvature, Family
from equipoise.mixture.fitted import Diagnostics, TruncatedFit
from equipoise.mixture.gaussian import Gaussian
from equipoise.mixture.learned_rules import LearnedRule, learn_classifier
from equipoise.mixture.line_families import (
    ContinuousBernoulli,
    ContinuousPoisson,
    Exponential,
    Weibull,
)
from equipoise.mixture.model import MixtureModel, fit_model, learn_model
from equipoise.mixture.oracle import HalfSpace
from equipoise.mixture.self_checks import SelfCheck
from equipoise.mixture.theory import TruncEstConstants, separation_needed, trunc_est_constants
from equipoise.mixture.truncated import fit_truncated
from equipoise.mixture.weights import Weight, likelihood_weight, log_ratio, map_weight

__all__ = [
    "BayesClassifier",
    "ContinuousBernoulli",
    "ContinuousPoisson",
    "Curvature",
    "Diagnostics",
    "Exponential",
    "Family",
    "Gaussian",
    "HalfSpace",
    "LearnedRule",
    "MixtureModel",
    "SelfCheck",
    "TradeOff",
    "TruncEstConstants",
    "TruncatedFit",
    "Weibull",
    "Weight",
    "acceptance",
    "fit_model",
    "fit_truncated",
    "known_law",
    "learn_classifier",
    "learn_model",
    "likelihood_weight",
    "log_ratio",
    "map_weight",
    "separation_needed",
    "trade_off",
    "trunc_est_constants",
]
