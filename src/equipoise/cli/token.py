"""``equipoise token``: who may use the service, made, listed and revoked here and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from equipoise.cli.console import print_json, show_list
from equipoise.cli.options import LEDGER, Json, Ledger
from equipoise.cli.serve import Tokens, require_extra

if TYPE_CHECKING:
    from equipoise.service import TokenStore

__all__ = ["app"]

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Make, list and revoke tokens of the service."
)

Name = Annotated[str, typer.Argument(help="Who holds it; the actor in every event.")]


@app.command()
def new(
    name: Name,
    role: Annotated[
        Literal["writer", "auditor", "approver", "regulator"],
        typer.Option(
            help="writer asks and tells; auditor runs audits; approver is the second person; "
            "regulator reads.",
            show_default=False,
        ),
    ],
    audit: Annotated[
        str | None, typer.Option(help="The one audit that it opens; every one if left out.")
    ] = None,
    days: Annotated[float, typer.Option(help="Until it expires.")] = 90.0,
    ledger: Ledger = LEDGER,
    tokens: Tokens = "",
    json: Json = False,
) -> None:
    """Make a token and show it, once: only its hash is kept.

    Example: equipoise token new core-banking --role writer --audit loans
    """
    store = _store(ledger, tokens)
    from equipoise.service import Role

    text = store.new(name, Role(role), audit, days=days)
    if json:
        print_json({"name": name, "role": role, "audit": audit, "token": text})
    else:
        typer.echo(text)


@app.command("list")
def list_all(ledger: Ledger = LEDGER, tokens: Tokens = "", json: Json = False) -> None:
    """Show every token without its secret."""
    found = [token.to_dict() for token in _store(ledger, tokens).all()]
    if not json:
        columns = ("name", "role", "audit", "expires", "revoked")
        found = [{column: token[column] for column in columns} for token in found]
    show_list(found, json)


@app.command()
def revoke(name: Name, ledger: Ledger = LEDGER, tokens: Tokens = "", json: Json = False) -> None:
    """End a token and what is logged in with it, within two seconds."""
    token = _store(ledger, tokens).revoke(name)
    if json:
        print_json(token.to_dict())
    else:
        typer.echo(f"{token.name}: revoked {token.revoked}")


def _store(ledger: str, tokens: str) -> TokenStore:
    require_extra()
    from equipoise.service import TokenStore
    from equipoise.service.settings import tokens_beside

    return TokenStore(tokens or tokens_beside(ledger))
