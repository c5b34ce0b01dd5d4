"""The ``equipoise`` command: finds its subcommands when they are called, and reports errors."""

from __future__ import annotations

import json
import sys
from difflib import get_close_matches
from importlib import import_module
from typing import Any, cast

import typer
from typer.core import TyperGroup

from equipoise import errors
from equipoise.cli.short_help import HELP_ALL, shorten_help
from equipoise.errors import EquipoiseError
from equipoise.messages.shell import describe_error

# In the order of the help; the module of each has an ``app``, which is a typer.Typer.
COMMANDS = ("demo", "read", "check", "trend", "plan", "simulate", "audit", "serve", "token")

# Typer exports this error's subclass only, and its home has moved between versions.
UsageError = cast("type[Exception]", typer.BadParameter.__mro__[1])


class LazyGroup(TyperGroup):
    """Import a command's module when it is needed; turn our errors into a message and code 2."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return every command's name."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; None if there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        command = typer.main.get_command(import_module(f"equipoise.cli.{cmd_name}").app)
        command.name = cmd_name
        shorten_help(command, show_all=ctx.obj == HELP_ALL)
        return command

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Read ``--help-all`` as ``--help`` of a command that hides no option."""
        if HELP_ALL in args:
            ctx.obj = HELP_ALL
            args = ["--help" if argument == HELP_ALL else argument for argument in args]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command; for an unknown one, name the nearest."""
        name = args[0] if args else ""
        # Options, and no command at all, are Typer's to complain about.
        if args and not name.startswith("-") and name not in COMMANDS:
            nearest = get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
            suggestion = f" Did you mean {nearest[0]!r}?" if nearest else ""
            raise UsageError(
                f"There is no command {name!r}.{suggestion} The commands are {', '.join(COMMANDS)}"
            )
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; end with code 2 and one message, in JSON if that was asked for."""
        in_json = "--json" in ctx.args  # read before the command takes its arguments away
        try:
            return super().invoke(ctx)
        except EquipoiseError as error:
            error_name = _documented_name(error)
            message = describe_error(error)
        except UsageError as error:
            error_name = "UsageError"
            failed_context = getattr(error, "ctx", None) or ctx
            text = error.format_message()  # type: ignore[attr-defined]
            message = f"{text} (see: {failed_context.command_path} --help)"
        if in_json:
            problem = {"error": error_name, "message": message}
            print(json.dumps(problem, ensure_ascii=False), file=sys.stderr)
        else:
            print(f"error: {message}", file=sys.stderr)
        raise typer.Exit(2)


def _documented_name(error: EquipoiseError) -> str:
    """Return the name of an error, or of the class above it that ``equipoise.errors`` has."""
    # A class that no document names would tell its reader nothing.
    names = (error_class.__name__ for error_class in type(error).__mro__)
    return next(name for name in names if hasattr(errors, name))


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(is_asked_for: bool) -> None:
    if is_asked_for:
        from equipoise import __version__

        typer.echo(f"equipoise {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Audit the fairness of yes/no decisions when outcomes are known for approved people only.

    To learn more, an audit overrides some denials. Start with: equipoise demo
    """
