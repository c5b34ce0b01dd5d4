"""The decision-maker as a truncation: who is let through, asked for many people at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.errors import BadData, InvalidInput
from equipoise.mixture.family import Array

__all__ = ["Accepts", "HalfSpace", "Oracle"]

Accepts: TypeAlias = Callable[[Array], ArrayLike]


@dataclass(frozen=True, eq=False)
class HalfSpace:
    """``normal . x >= offset``: what a linear classifier approves.

    Known as such, it lets a Gaussian be fitted exactly.

    Examples
    --------
    >>> HalfSpace([1.0, -1.0], offset=0.5)(np.array([[1.0, 0.0], [0.0, 1.0]]))
    array([ True, False])
    """

    normal: ArrayLike
    offset: float = 0.0

    def __post_init__(self) -> None:
        normal = np.array(self.normal, dtype=float)
        if normal.ndim != 1 or not np.isfinite(normal).all() or not normal.any():
            raise InvalidInput(f"'normal' must be a finite non-zero vector; got {self.normal!r}")
        normal.setflags(write=False)
        object.__setattr__(self, "normal", normal)

    def __call__(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Say for every row whether it is approved."""
        return np.asarray(np.asarray(X, dtype=float) @ np.asarray(self.normal) >= self.offset)


class Oracle:
    """``accepts`` with its manners checked and its calls counted.

    Parameters
    ----------
    accepts
        Takes an (n, d) array and returns n booleans (or 0/1).
    limit
        The most points it may be asked about, or None.
    """

    def __init__(self, accepts: Accepts, *, limit: int | None = None) -> None:
        if not callable(accepts):
            raise InvalidInput(f"'accepts' must be callable; got {type(accepts).__name__}")
        self.accepts = accepts
        self.limit = limit
        self.calls = 0

    def __call__(self, X: Array) -> NDArray[np.bool_]:
        """Say for every row whether it is approved."""
        self.calls += len(X)
        try:
            answer = np.asarray(self.accepts(X))
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                "'accepts' failed on an array of several rows; it must be vectorised: "
                f"(n, d) array in, n booleans out ({type(error).__name__}: {error})"
            ) from error
        if answer.shape != (len(X),):
            raise InvalidInput(
                f"'accepts' must be vectorised: for {len(X)} rows it must return {len(X)} "
                f"booleans; got shape {answer.shape}"
            )
        if answer.dtype != bool and not np.isin(answer, (0, 1)).all():
            raise InvalidInput(
                "'accepts' must return booleans or 0/1; got "
                f"{answer.dtype} values such as {answer.ravel()[0]!r} (scores need a threshold)"
            )
        return answer.astype(bool)

    @property
    def spent(self) -> bool:
        """Whether the limit is reached."""
        return self.limit is not None and self.calls >= self.limit

    def require_all(self, X: Array) -> None:
        """Raise unless every past approved person is approved by the oracle."""
        refused = int((~self(X)).sum())
        if refused:
            raise BadData(
                f"'accepts' refuses {refused} of the {len(X)} people who were approved: it is not "
                "the decision-maker of these data, or it does not see the group or column that "
                "the decision used"
            )
