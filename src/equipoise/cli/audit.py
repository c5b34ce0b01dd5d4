"""``equipoise audit``: run an audit over months, in a ledger that survives everything."""

from __future__ import annotations

import typer

from equipoise.cli import audit_changes as changes
from equipoise.cli import audit_looks as looks
from equipoise.cli import audit_people as people
from equipoise.cli.audit_new import new

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Run an audit over months, in a ledger."
)

# In the order of the help.
app.command("new")(new)
app.command("ask")(people.ask)
app.command("tell")(people.tell)
app.command("executed")(people.executed)
app.command("withdraw")(people.withdraw)
app.command("overdue")(people.overdue)
app.command("write-off")(people.write_off)
app.command("correct")(people.correct)
app.command("conclude")(changes.conclude)
app.command("budget")(changes.budget)
app.command("limits")(changes.limits)
app.command("random-accepts")(changes.random_accepts)
app.command("pause")(changes.pause)
app.command("resume")(changes.resume)
app.command("approve")(changes.approve)
app.command("reject")(changes.reject)
app.command("erase")(changes.erase)
app.command("scrub")(changes.scrub)
app.command("upgrade")(changes.upgrade)
app.command("status")(looks.status)
app.command("list")(looks.list_audits)
app.command("report")(looks.report)
app.command("log")(looks.log)
app.command("checkpoint")(looks.checkpoint)
app.command("export")(looks.export)
app.command("verify")(looks.verify)
