"""Everything Equipoise can object to, as one exception tree.

EquipoiseError
├── InvalidInput        an argument, a column or a file breaks a stated rule
│   ├── UnknownName     a name that does not exist, with the nearest that does
│   ├── UnknownPerson   a person whom the audit was never asked about
│   └── BadData         rows that the model of partial feedback does not allow
├── ProtocolError       ask/tell used out of order
│   └── Conflict        a fact was told that differs from the one stored
├── LedgerError         the ledger could not store or read; nothing was acknowledged
└── MissingExtra        an optional package is needed and absent
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from math import isfinite
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.messages.refusals import Refusal

_MAX_NAMES_LISTED = 20  # that an error lists
_LONGEST_REPR = 60  # of a value that an error shows


class EquipoiseError(Exception):
    """Base of every error that Equipoise raises on purpose.

    Examples
    --------
    >>> issubclass(InvalidInput, EquipoiseError), issubclass(InvalidInput, ValueError)
    (True, True)
    """

    refusal: Refusal | None = None
    """Where an audit refused a command: why, as data."""


class InvalidInput(EquipoiseError, ValueError):
    """An argument, column or file breaks a rule; the message names all three and the remedy.

    Examples
    --------
    >>> from equipoise import Question
    >>> Question(gamma="0.05")
    Traceback (most recent call last):
    equipoise.errors.InvalidInput: 'gamma' must be a number; got '0.05'
    """


class UnknownName(InvalidInput):
    """A name that does not exist.

    Examples
    --------
    >>> raise UnknownName("column", "rce", ["race", "sex"])
    Traceback (most recent call last):
    equipoise.errors.UnknownName: unknown column 'rce'. Did you mean 'race'? Known: race, sex
    """

    def __init__(
        self, kind: str, name: object, known: Iterable[object], *, remedy: str = ""
    ) -> None:
        choices = list(map(str, known))
        nearest = get_close_matches(str(name), choices, n=1, cutoff=0.6)
        hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
        listing = ", ".join(choices[:_MAX_NAMES_LISTED]) or "none"
        if len(choices) > _MAX_NAMES_LISTED:
            listing += ", …"
        ending = f". {remedy}" if remedy else ""
        super().__init__(f"unknown {kind} {str(name)!r}.{hint} Known: {listing}{ending}")


class UnknownPerson(InvalidInput):
    """A person whom the audit was never asked about."""


class BadData(InvalidInput):
    """Rows that cannot be read as past decisions with partial feedback."""


class ProtocolError(EquipoiseError, RuntimeError):
    """An audit's ask/tell protocol was used out of order."""


class Conflict(ProtocolError):
    """A fact about a person was told that differs from the one stored; the stored one stands."""


class LedgerError(EquipoiseError):
    """The ledger could not store or read: locked, full, damaged, or of a newer version."""


_PACKAGES = {  # extras of pyproject.toml of which one package alone is not enough
    "lake": "deltalake pyarrow",
    "postgres": "'psycopg[binary]'",
    # Without uvloop, which cannot be installed everywhere and only makes the server faster.
    "serve": "fastapi uvicorn python-multipart prometheus-client itsdangerous pydantic-settings "
    "httpx",
}


class MissingExtra(EquipoiseError, ImportError):
    """An optional dependency is needed and not installed.

    The message has the command that installs it, wherever Equipoise itself was installed from.

    Examples
    --------
    >>> raise MissingExtra("matplotlib", extra="report", purpose="plots")
    Traceback (most recent call last):
    equipoise.errors.MissingExtra: plots need 'matplotlib': pip install matplotlib
    """

    def __init__(self, package: str, *, extra: str, purpose: str) -> None:
        packages = _PACKAGES.get(extra, package)
        super().__init__(f"{purpose} need {package!r}: pip install {packages}")


def require_kind(name: str, value: object, kind: type | tuple[type, ...], description: str) -> None:
    """Raise unless ``value`` is an instance of ``kind``, which ``description`` says in words."""
    if not isinstance(value, kind):
        raise InvalidInput(f"{name!r} must be {description}; got {_brief_repr(value)}")


def require_in_open_unit(name: str, value: float) -> None:
    """Raise unless ``value`` lies strictly between 0 and 1."""
    if not 0.0 < _number(name, value) < 1.0:
        raise InvalidInput(f"{name!r} must be in (0, 1); got {value!r}")


def require_n_jobs(n_jobs: int | None) -> None:
    """Raise unless ``n_jobs`` is what joblib takes for a number of processes."""
    number = plain_number(n_jobs)  # joblib refuses 0
    is_integer = number is not None and number != 0 and number % 1 == 0
    if n_jobs is not None and not is_integer:
        raise InvalidInput(
            f"'n_jobs' must be a number of processes, -1 for all, or None; got {n_jobs!r}"
        )


def require_whole(name: str, value: int | None, least: int = 1) -> None:
    """Raise unless ``value`` is a whole number of at least ``least``, or None."""
    number = least if value is None else plain_number(value)
    if number is None or number % 1 or number < least:
        raise InvalidInput(f"{name!r} must be a whole number of at least {least}; got {value!r}")


def require_finite(name: str, value: object) -> None:
    """Raise unless ``value`` is None or a finite number."""
    if value is not None and plain_number(value) is None:
        raise InvalidInput(
            f"{name!r} must be a finite number, or None where there is none; got {value!r}"
        )


def require_in_unit(name: str, value: float) -> None:
    """Raise unless ``value`` lies between 0 and 1, ends included."""
    if not 0.0 <= _number(name, value) <= 1.0:
        raise InvalidInput(f"{name!r} must be in [0, 1]; got {value!r}")


def require_non_negative(name: str, value: float) -> None:
    """Raise unless ``value`` is a finite number of at least 0."""
    if _number(name, value) < 0.0 or plain_number(value) is None:
        raise InvalidInput(f"{name!r} must be a finite number >= 0; got {value!r}")


def plain_number(value: object) -> int | float | None:
    """Return a finite number, also one of numpy's, as Python's own; None for any other value.

    Examples
    --------
    >>> import numpy as np
    >>> [plain_number(value) for value in (np.float32(0.5), np.int64(50), True, 10**400)]
    [0.5, 50, None, None]
    """
    with suppress(OverflowError):  # an integer too large for isfinite
        if not isinstance(value, bool) and isinstance(value, Real) and isfinite(value):
            return int(value) if isinstance(value, Integral) else float(value)
    return None


def _number(name: str, value: Any) -> Any:
    """Return the value if it is a real number and not a boolean; raise otherwise."""
    # True is an int to Python; as a number it is a mistake.
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidInput(f"{name!r} must be a number; got {_brief_repr(value)}")
    return value


def _brief_repr(value: object) -> str:
    """Return a value's repr if it is short and on one line, else the name of its type."""
    # A frame's repr would fill the screen and hide what is wrong with it.
    text = repr(value)
    is_brief = len(text) <= _LONGEST_REPR and "\n" not in text
    return text if is_brief else f"a {type(value).__name__}"


def few_of(names: Sequence[str], most: int = 8) -> str:
    """Return the names of groups for a message; of more than ``most``, how many and the first few.

    Examples
    --------
    >>> few_of(["A", "B"]), few_of(["A", "B", "C"], most=1)
    ('A, B', '3 groups, such as A')
    """
    first_names = ", ".join(names[:most])
    if len(names) <= most:
        return first_names
    return f"{len(names)} groups, such as {first_names}"
