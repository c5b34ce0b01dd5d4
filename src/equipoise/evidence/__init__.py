"""How evidence is weighed: certified refutation of one wrong answer or the other."""

from equipoise.evidence.confidence import anytime_interval
from equipoise.evidence.evidence import Evidence
from equipoise.evidence.null_cells import NullCells
from equipoise.evidence.request_log import UNKNOWN
from equipoise.evidence.wrong_answers import WrongAnswers

__all__ = ["EDITION", "UNKNOWN", "Evidence", "NullCells", "WrongAnswers", "anytime_interval"]

EDITION = 1
"""Edition of the statistics, named in the first event of every ledger.

It stays 1 until the first release. From then on, raise it with every change that could make an
audit ask, decide or conclude otherwise on the same people, and keep a ledger of the new edition:
``python -m tests.conformance.editions``.
"""
