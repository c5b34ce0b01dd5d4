"""What to think of a naive answer: one number in place of the range that the data support."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Opinion(StrEnum):
    """How a number for the gap relates to the range that the data support."""

    NO_ANSWER = "no-answer"
    RULED_OUT = "ruled-out"
    RIGHT = "right"
    NOT_SUPPORTED = "not-supported"


OPINION_TITLES: Mapping[Opinion, str] = {
    Opinion.NO_ANSWER: "no answer",
    Opinion.RULED_OUT: "wrong",
    Opinion.RIGHT: "right",
    Opinion.NOT_SUPPORTED: "not supported",
}
"""Opinion -> a word or two."""
OPINION_TEXT: Mapping[Opinion, str] = {
    Opinion.NO_ANSWER: "no answer",
    Opinion.RULED_OUT: "wrong: the data rule it out",
    Opinion.RIGHT: "right",
    Opinion.NOT_SUPPORTED: "not supported: other values fit the data equally well",
}
"""Opinion -> the same with the reason."""
