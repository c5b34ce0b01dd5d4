"""Which pair of groups is likely to be the unfair one, judged by the pilot's labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from equipoise.evidence.geometry import Pair

__all__ = ["pair_weights"]

Array = NDArray[np.float64]

_UNIFORM = 0.25  # of the weight is spread evenly, whatever the pilot says
_DRAWS = 256


def pair_weights(pairs: Sequence[Pair], ones: Array, zeros: Array) -> Array:
    """Return each pair's share of the error level: how often it has the largest gap, by the pilot.

    The truth is FAIR for every pair or for none, so refuting one pair suffices; each pays for its
    share. Weights may depend on the pilot because only later labels count against the pairs.
    """
    if len(pairs) == 1:
        return np.ones(1)
    draws = np.random.default_rng(0).beta(ones + 0.5, zeros + 0.5, size=(_DRAWS, len(ones)))
    gaps = np.stack(
        [
            np.max(
                [
                    np.abs(a.value(draws[:, pair.a]) - b.value(draws[:, pair.b]))
                    for a, b in pair.curves()
                ],
                axis=0,
            )
            for pair in pairs
        ]
    )
    often = np.bincount(gaps.argmax(axis=0), minlength=len(pairs)) / _DRAWS
    return np.asarray(_UNIFORM / len(pairs) + (1.0 - _UNIFORM) * often)
