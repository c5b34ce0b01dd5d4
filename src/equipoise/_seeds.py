"""``random_state``, as other libraries call it, in place of ``seed``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

from equipoise.errors import InvalidInput

P = ParamSpec("P")
R = TypeVar("R")


def accepts_random_state(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function with a parameter ``seed`` be called with ``random_state`` instead.

    Examples
    --------
    >>> @accepts_random_state
    ... def draw(size, seed=0):
    ...     return seed
    >>> draw(3, random_state=7), draw(3, 7, random_state=7)
    (7, 7)
    """
    function_signature = signature(function)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        random_state = kwargs.pop("random_state", None)
        if random_state is not None:
            # Bound to the function's parameters, so that a seed given by position is seen as well.
            bound_arguments = function_signature.bind_partial(*args, **kwargs).arguments
            if "seed" not in bound_arguments:
                kwargs["seed"] = random_state
            elif (
                bound_arguments["seed"] is not random_state
                and bound_arguments["seed"] != random_state
            ):
                raise InvalidInput(
                    "'random_state' is another name of 'seed': give one of them; got "
                    f"seed={bound_arguments['seed']!r} and random_state={random_state!r}"
                )
        return function(*args, **kwargs)

    parameters = list(function_signature.parameters.values())
    # In the signature as well, so that editors and the documents know it. Only **options stand
    # behind it.
    added = Parameter("random_state", Parameter.KEYWORD_ONLY, default=None)
    has_rest = bool(parameters) and parameters[-1].kind is Parameter.VAR_KEYWORD
    place = len(parameters) - has_rest
    parameters.insert(place, added)
    call.__signature__ = function_signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return call
