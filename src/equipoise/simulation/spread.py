"""Spread independent work over whatever joblib runs on: processes, Dask, Ray."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["spread"]


def spread(tasks: Iterable[Any], n_jobs: int | None) -> Iterator[Any]:
    """Yield the results of joblib's delayed calls in their order, as soon as they are there.

    ``n_jobs=None`` follows :func:`joblib.parallel_config`. Backends that cannot hand out results
    one by one, such as Ray's, give them all at the end.

    Examples
    --------
    >>> from joblib import delayed
    >>> list(spread((delayed(abs)(x) for x in (-1, 2)), n_jobs=None))
    [1, 2]
    """
    from joblib import Parallel

    try:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    except ValueError:
        parallel = Parallel(n_jobs=n_jobs)
    yield from parallel(tasks)
