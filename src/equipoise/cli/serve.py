"""``equipoise serve``: live audits over HTTP and in the browser."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.cli.option_groups import LEDGER, Ledger
from equipoise.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from equipoise.service import ServiceSettings

__all__ = ["Tokens", "app", "server_options", "settings_for"]

app = typer.Typer(add_completion=False)

Tokens = Annotated[
    str,
    typer.Option(
        envvar="EQUIPOISE_TOKENS",
        metavar="FILE|URL",
        help="Where tokens are kept; beside the ledger if left out.",
        show_default=False,
    ),
]


@app.command()
def serve(
    ledger: Ledger = LEDGER,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8100,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes.")] = 1,
    tokens: Tokens = "",
    https: Annotated[
        bool, typer.Option(help="Browsers come by https, through a proxy: cookies insist on it.")
    ] = False,
    demo: Annotated[
        bool, typer.Option(help="With a demonstration audit at which simulated people arrive.")
    ] = False,
) -> None:
    """Serve the audits of a ledger: an API for programs, a dashboard for people.

    Without tokens (equipoise token new) the server is open, and listens on this machine alone.
    """
    settings = settings_for(ledger, host, tokens, https=https, demo=demo)
    import uvicorn

    with tempfile.TemporaryDirectory() as shared:
        os.environ.update(settings.to_environment())
        if workers > 1:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = shared
        who = "open to this machine, no token needed" if settings.open else "tokens needed"
        typer.echo(f"serving {ledger} at http://{host}:{port} ({who})")
        uvicorn.run(**server_options(host, port, workers))


def settings_for(
    ledger: str, host: str, tokens: str = "", *, https: bool = False, demo: bool = False
) -> ServiceSettings:
    """Return settings; refuse to be open to others than this machine."""
    for package in ("fastapi", "uvicorn", "httptools", "prometheus_client", "multipart"):
        if importlib.util.find_spec(package) is None:
            raise MissingExtra(package, extra="serve", purpose="the service and its dashboard")
    from equipoise.service import ServiceSettings, TokenStore
    from equipoise.service.settings import is_loopback

    settings = ServiceSettings(ledger, tokens, secure=https, demo=demo)
    store = TokenStore(settings.tokens)
    guarded = bool(store.all())  # dead ones as well: what was closed once does not open by itself
    store.close()
    if not guarded and not is_loopback(host):
        raise InvalidInput(
            f"'--host' {host} can be reached by others and there is no token, so anybody could do "
            "anything; make one first: equipoise token new NAME --role auditor"
        )
    return replace(settings, open=not guarded)


def server_options(host: str, port: int, workers: int = 1) -> dict[str, Any]:
    """Return how uvicorn is run: what it logs, how much it takes, how it ends."""
    lines = {"()": "equipoise.service.guard.JsonLines"}
    handler = {"class": "logging.StreamHandler", "formatter": "lines", "stream": "ext://sys.stderr"}
    quiet = {"handlers": ["err"], "level": "INFO", "propagate": False}
    return {
        "app": "equipoise.service.app:from_environment",
        "factory": True,
        "host": host,
        "port": port,
        "workers": workers,
        "access_log": False,
        "server_header": False,
        "http": "equipoise.service.protocol:LimitedProtocol",
        "timeout_keep_alive": 20,
        "timeout_graceful_shutdown": 5,
        # where a worker takes longer to start than the usual 5 s it would never come up
        "timeout_worker_healthcheck": 60,
        "limit_concurrency": 2000,
        "log_config": {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"lines": lines},
            "handlers": {"err": handler},
            "loggers": {"uvicorn": quiet, "equipoise.service": quiet},
        },
    }
