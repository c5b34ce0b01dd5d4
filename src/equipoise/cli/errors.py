"""Errors in the words of the shell."""

from __future__ import annotations

from equipoise import errors
from equipoise.messages import shell
from equipoise.messages.refusals import to_shell


def describe_error(error: Exception) -> str:
    """Return what is wrong, and what helps as the shell writes it.

    An audit's refusal names a command; problems of a table name options.
    """
    refusal = getattr(error, "refusal", None)
    return shell.describe_error(error) if refusal is None else to_shell(refusal)


def documented_name(error: errors.EquipoiseError) -> str:
    """Return the name of an error, or of the class above it that ``equipoise.errors`` has."""
    names = (kind.__name__ for kind in type(error).__mro__)
    return next(name for name in names if hasattr(errors, name))
