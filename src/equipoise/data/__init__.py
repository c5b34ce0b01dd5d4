"""Data to try things on: a lender whose every outcome is known, and tables of the literature."""

from equipoise.data.classifier_worlds import adult_world
from equipoise.data.fico import Lender, fico_lender
from equipoise.data.tables import adult, encode, law_school

__all__ = ["Lender", "adult", "adult_world", "encode", "fico_lender", "law_school"]
