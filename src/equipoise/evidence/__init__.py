"""How evidence is weighed: certified refutation of one wrong answer or the other."""

from equipoise.evidence.confidence import anytime_interval
from equipoise.evidence.staircase import Staircase
from equipoise.evidence.weighing import Weighing
from equipoise.evidence.wrong_answers import Levels, WrongAnswers

__all__ = ["Levels", "Staircase", "Weighing", "WrongAnswers", "anytime_interval"]
