"""The mixture model: exponential families behind a truncation, and what they are good for."""

from equipoise.mixture.bayes_classifier import BayesClassifier as BayesClassifier
from equipoise.mixture.decision_maker import HalfSpace as HalfSpace
from equipoise.mixture.fairness_accuracy import FairnessAccuracyCurve as FairnessAccuracyCurve
from equipoise.mixture.fairness_accuracy import (
    fairness_accuracy_curve as fairness_accuracy_curve,
)
from equipoise.mixture.families import Binomial as Binomial
from equipoise.mixture.families import ContinuousBernoulli as ContinuousBernoulli
from equipoise.mixture.families import ContinuousPoisson as ContinuousPoisson
from equipoise.mixture.families import Exponential as Exponential
from equipoise.mixture.families import Family as Family
from equipoise.mixture.families import Poisson as Poisson
from equipoise.mixture.families import Weibull as Weibull
from equipoise.mixture.gaussian import Gaussian as Gaussian
from equipoise.mixture.likelihood_weights import Weight as Weight
from equipoise.mixture.likelihood_weights import likelihood_weight as likelihood_weight
from equipoise.mixture.likelihood_weights import log_ratio as log_ratio
from equipoise.mixture.model import MixtureModel as MixtureModel
from equipoise.mixture.model import PastFeatures as PastFeatures
from equipoise.mixture.model_checks import LawSeparation as LawSeparation
from equipoise.mixture.model_checks import SelfCheck as SelfCheck
from equipoise.mixture.model_checks import check_assumptions as check_assumptions
from equipoise.mixture.model_checks import measure_separation as measure_separation
from equipoise.mixture.trunc_est import StructuralConstants as StructuralConstants
from equipoise.mixture.trunc_est import TruncEstConstants as TruncEstConstants
from equipoise.mixture.trunc_est import TruncEstResult as TruncEstResult
from equipoise.mixture.trunc_est import separation_needed as separation_needed
from equipoise.mixture.trunc_est import trunc_est as trunc_est
from equipoise.mixture.trunc_est import trunc_est_constants as trunc_est_constants
from equipoise.mixture.truncated_fit import TruncatedFit as TruncatedFit
from equipoise.mixture.truncated_fit import acceptance as acceptance
from equipoise.mixture.truncated_fit import fit_truncated as fit_truncated
from equipoise.mixture.truncated_fit import known_law as known_law

__all__ = sorted(name for name, value in globals().items() if callable(value))
