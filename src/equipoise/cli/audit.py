"""``equipoise audit``: run an audit over months, in a ledger that survives everything."""

from __future__ import annotations

import typer

from equipoise.cli import audit_changes, audit_looks, audit_people
from equipoise.cli.audit_new import new

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Run an audit over months, in a ledger."
)

# In the order of the help.
app.command("new")(new)
for module in (audit_people, audit_changes, audit_looks):
    for name, function in module.COMMANDS.items():
        app.command(name)(function)
