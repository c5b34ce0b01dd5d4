"""``equipoise token``: who may use the service, made, listed and revoked here and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import typer

from equipoise.cli.console import Answer, Table
from equipoise.cli.options import LEDGER, command, option
from equipoise.cli.serve import TOKENS, require_extra

if TYPE_CHECKING:
    from equipoise.service import TokenStore

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Make, list and revoke tokens of the service."
)

NAME = typer.Argument(..., help="Who holds it; the actor in every event.")


@app.command()
@command()
def new(
    name: str = NAME,
    role: Literal["writer", "auditor", "approver", "regulator"] = option(
        ...,
        "writer asks and tells; auditor runs audits; approver is the second person; regulator "
        "reads.",
    ),
    audit: str | None = option(None, "The one audit that it opens; every one if left out."),
    days: float = option(90.0, "Until it expires."),
    ledger: str = LEDGER,
    tokens: str = TOKENS,
) -> Answer:
    """Make a token and show it, once: only its hash is kept.

    Example: equipoise token new core-banking --role writer --audit loans
    """
    store = _store(ledger, tokens)
    from equipoise.service import Role

    text = store.new(name, Role(role), audit, days=days)
    return Answer({"name": name, "role": role, "audit": audit, "token": text}, text)


@app.command("list")
@command()
def list_all(ledger: str = LEDGER, tokens: str = TOKENS) -> Answer:
    """Show every token without its secret."""
    found = [token.to_dict() for token in _store(ledger, tokens).all()]
    columns = ("name", "role", "audit", "expires", "revoked")
    rows = [{column: token[column] for column in columns} for token in found]
    return Answer(found, [Table(rows)])


@app.command()
@command()
def revoke(name: str = NAME, ledger: str = LEDGER, tokens: str = TOKENS) -> Answer:
    """End a token and what is logged in with it, at once."""
    token = _store(ledger, tokens).revoke(name)
    return Answer(token.to_dict(), f"{token.name}: revoked {token.revoked}")


def _store(ledger: str, tokens: str) -> TokenStore:
    require_extra()
    from equipoise.service import TokenStore, load_settings

    return TokenStore(load_settings(ledger=ledger, tokens=tokens).token_store)
