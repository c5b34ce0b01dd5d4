"""``--help`` with the options that most people use, ``--help-all`` with all of them in groups."""

from __future__ import annotations

from typing import Any

HELP_ALL = "--help-all"
COMMON_OPTIONS = {
    *("--group", "--decision", "--outcome", "--positive", "--metric", "--gamma", "--epsilon"),
    *("--delta", "--assume", "--save", "--report", "--json", "--help", "--label-cost", "--budget"),
    *("--ledger", "--trial-runs", "--audit", "--yes"),
}
"""The options that ``--help`` shows of a command with many."""

FEW_OPTIONS = 16  # a command with no more shows all of them at once
TYPE_WORDS = {"<float>": "NUMBER", "<int>": "NUMBER", "<Path>": "FILE", "<str>": "TEXT"}


def shorten_help(command: Any, *, show_all: bool) -> None:
    """Hide the options of a command, or of a group's commands, that few people need.

    Parameters
    ----------
    command
        A command of Typer.
    show_all
        Whether all options were asked for.
    """
    # A group shows its commands, each of which has a help of its own.
    for subcommand in getattr(command, "commands", {}).values():
        shorten_help(subcommand, show_all=show_all)
    for parameter in command.params:
        _simplify_type(parameter)
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    if show_all or len(options) <= FEW_OPTIONS:
        return
    for option in options:
        if not COMMON_OPTIONS.intersection(option.opts):
            option.hidden = True
    command.epilog = f"{HELP_ALL} shows all {len(options)} options, in groups."


def _simplify_type(parameter: Any) -> None:
    """Describe a parameter's type in the help by a word that people know, or not at all."""
    describe_type = getattr(parameter, "display_type_rich", None)
    if describe_type is None:  # of other versions of Typer, which do not show Python's types
        return

    def describe_plainly(ctx: Any = None) -> str | None:
        text: str | None = describe_type(ctx=ctx)
        if text is None or text == "<bool>" or text.startswith("<list"):
            return None
        # A list of choices has a line each, so that it leaves room for the name of the option.
        return TYPE_WORDS.get(text, text.strip("<>").replace("|", " |\n"))

    parameter.display_type_rich = describe_plainly
