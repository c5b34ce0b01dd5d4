"""Errors in the words of the shell."""

from __future__ import annotations

from equipoise.messages.refusals import to_shell


def describe_error(error: Exception) -> str:
    """Return what is wrong; an audit's refusal with the command of the shell that helps."""
    refusal = getattr(error, "refusal", None)
    return str(error) if refusal is None else to_shell(refusal)
