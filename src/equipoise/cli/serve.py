"""``equipoise serve``: live audits over HTTP and in the browser."""

from __future__ import annotations

import importlib.util
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from equipoise.cli.options import LEDGER, option
from equipoise.errors import MissingExtra

if TYPE_CHECKING:
    from equipoise.service import ServiceSettings

app = typer.Typer(add_completion=False)

PACKAGES = ("fastapi", "uvicorn", "prometheus_client", "multipart", "itsdangerous",
            "pydantic_settings")  # fmt: skip
HANDLER = {"class": "logging.StreamHandler", "formatter": "lines", "stream": "ext://sys.stderr"}
LOGGER = {"handlers": ["err"], "level": "INFO", "propagate": False}
SERVER: dict[str, Any] = {  # what uvicorn logs, how much it takes, how it ends
    "access_log": False,
    "server_header": False,
    "proxy_headers": False,  # the application reads them, from whom it is told to
    "http": "h11",
    "h11_max_incomplete_event_size": 64 << 10,  # of a request's head
    "timeout_keep_alive": 20,
    "timeout_graceful_shutdown": 5,
    "limit_concurrency": 2000,
    "log_config": {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": "equipoise.service.limits.JsonLines"}},
        "handlers": {"err": HANDLER},
        "loggers": {"uvicorn": LOGGER, "equipoise.service": LOGGER},
    },
}
LINK = "login link"  # how the names of tokens begin that a server made for itself

TOKENS = option(
    "",
    "Where tokens are kept; beside the ledger if left out.",
    metavar="FILE|URL",
    envvar="EQUIPOISE_TOKENS",
    shown=False,
)


@app.command()
def serve(
    ledger: str = LEDGER,
    host: str = option("127.0.0.1", "Address to listen at."),
    port: int = typer.Option(8100, min=1, max=65535),
    tokens: str = TOKENS,
    https: bool = option(
        False,
        "Browsers come by https, through a proxy: cookies insist on it.",
        envvar="EQUIPOISE_HTTPS",
    ),
    demo: bool = option(
        False,
        "With a demonstration audit at which simulated people arrive.",
        envvar="EQUIPOISE_DEMO",
    ),
) -> None:
    """Serve the audits of a ledger: an API for programs, a dashboard for people.

    Where nobody has made a token (equipoise token new), a link that logs in for a day is printed.
    Everything else is set by the environment: EQUIPOISE_SECRET_KEY, EQUIPOISE_BODY_LIMIT and so on.
    """
    require_extra()
    import uvicorn

    from equipoise.ledger.database import shown
    from equipoise.service import create_app, load_settings

    settings = load_settings(ledger=ledger, tokens=tokens, https=https, demo=demo)
    secret = _login_token(settings)
    typer.echo(f"serving {shown(ledger)} at http://{host}:{port}")
    if secret:
        place = "127.0.0.1" if host in ("0.0.0.0", "::") else host
        typer.echo(f"log in, today: http://{place}:{port}/login#token={secret}")
    uvicorn.run(create_app(settings), host=host, port=port, **SERVER)


def require_extra() -> None:
    """Refuse where the service's packages are missing."""
    for package in PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise MissingExtra(package, extra="serve", purpose="the service and its dashboard")


def _login_token(settings: ServiceSettings) -> str:
    """Make an auditor's token for a day, unless somebody has made one by hand."""
    from equipoise.ledger.inputs import system_user
    from equipoise.service import Role, TokenStore

    store, now = TokenStore(settings.token_store), datetime.now(UTC)
    try:
        if settings.proxy_peers or any(
            token.lives(now) and not token.name.startswith(LINK) for token in store.all()
        ):
            return ""
        return store.new(f"{LINK} of {system_user()}, {now.isoformat()}", Role.AUDITOR, days=1)
    finally:
        store.close()
