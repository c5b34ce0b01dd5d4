"""Scores before labels: scores and prices decide who is asked, a draw keeps it honest."""

from equipoise.assist.options import Assist

__all__ = ["Assist"]
