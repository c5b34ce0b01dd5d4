"""The ``equipoise`` command: finds its subcommands when they are called, and reports errors."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any, cast

import typer
from typer.core import TyperGroup

from equipoise import errors
from equipoise.errors import EquipoiseError
from equipoise.messages.shell import describe_error

# In the order of the help; the module of each has an ``app``, which is a typer.Typer.
COMMANDS = ("demo", "read", "check", "plan", "simulate", "audit", "serve", "token")

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
        return command

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
    """Audit the fairness of yes/no decisions when only the approved show their outcome."""
