"""``equipoise token``: who may use the service, made, listed and revoked here and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from equipoise.cli import options as shared
from equipoise.cli.console import Output, Table, show
from equipoise.cli.serve import TokenStorage, require_extra

if TYPE_CHECKING:
    from equipoise.service import TokenStore

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Make, list and revoke tokens of the service."
)

HolderName = Annotated[
    str, typer.Argument(help="Who holds it. This name is the actor in every event.")
]
RoleName = Annotated[
    Literal["writer", "auditor", "approver", "regulator"],
    typer.Option(
        "--role",
        help="writer asks and tells, auditor runs audits, approver is the second person, regulator "
        "reads.",
    ),
]
OnlyAudit = Annotated[
    str | None,
    typer.Option("--audit", help="The one audit that it opens. Default: every audit."),
]
Days = Annotated[float, typer.Option("--days", help="Days until the token expires.")]


@app.command()
def new(
    name: HolderName,
    role: RoleName,
    audit: OnlyAudit = None,
    days: Days = 90.0,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    tokens: TokenStorage = "",
    json: shared.Json = False,
) -> None:
    """Make a token and show it, once: only its hash is kept.

    Example: equipoise token new core-banking --role writer --audit loans
    """
    store = _open_store(ledger, tokens)
    from equipoise.service import Role  # after the check that its packages are installed

    token = store.new(name, Role(role), audit, days=days)
    show(Output({"name": name, "role": role, "audit": audit, "token": token}, token), json)


@app.command("list")
def list_tokens(
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    tokens: TokenStorage = "",
    json: shared.Json = False,
) -> None:
    """Show every token without its secret."""
    records = [token.to_dict() for token in _open_store(ledger, tokens).all()]
    columns = ("name", "role", "audit", "expires", "revoked")
    rows = [{column: record[column] for column in columns} for record in records]
    show(Output(records, [Table(rows)]), json)


@app.command()
def revoke(
    name: HolderName,
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    tokens: TokenStorage = "",
    json: shared.Json = False,
) -> None:
    """End a token and all of its sessions at once."""
    token = _open_store(ledger, tokens).revoke(name)
    show(Output(token.to_dict(), f"{token.name}: revoked {token.revoked}"), json)


def _open_store(ledger: str, tokens: str) -> TokenStore:
    require_extra()
    from equipoise.service import TokenStore, load_settings

    return TokenStore(load_settings(ledger=ledger, tokens=tokens).token_store)
