"""``equipoise serve``: live audits over HTTP and in the browser."""

from __future__ import annotations

import importlib.util
import shlex
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.cli import options as shared
from equipoise.errors import InvalidInput, MissingExtra

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

TokenStorage = Annotated[
    str,
    typer.Option(
        "--tokens",
        help="Where tokens are kept. Default: beside the ledger.",
        metavar="FILE|URL",
        envvar="EQUIPOISE_TOKENS",
        show_default=False,
    ),
]
Host = Annotated[str, typer.Option("--host", help="Address to listen at.")]
Port = Annotated[int, typer.Option("--port", min=1, max=65535)]
Https = Annotated[
    bool,
    typer.Option(
        "--https/--no-https",
        help="Browsers use https through a proxy. Cookies are then sent by https only.",
        envvar="EQUIPOISE_HTTPS",
    ),
]
Demonstration = Annotated[
    bool,
    typer.Option(
        "--demo/--no-demo",
        help="Add three demonstration audits of simulated people: one in progress, one that waits "
        "for approval, and one that has ended.",
        envvar="EQUIPOISE_DEMO",
    ),
]


@app.command()
def serve(
    ledger: shared.Ledger = shared.DEFAULT_LEDGER,
    host: Host = "127.0.0.1",
    port: Port = 8100,
    tokens: TokenStorage = "",
    https: Https = False,
    demo: Demonstration = False,
) -> None:
    """Serve the audits of a ledger: an API for programs, a dashboard for people.

    At the start it prints a link that logs you in for a day. After you have made the first token by
    hand (equipoise token new) it prints no more links, even if all tokens have expired. Environment
    variables set everything else, for example EQUIPOISE_SECRET_KEY and EQUIPOISE_BODY_LIMIT.
    """
    require_extra()
    import uvicorn

    from equipoise.database_url import display_url
    from equipoise.service import create_app, load_settings

    if demo:
        _require_no_other_audits(ledger)
    settings = load_settings(ledger=ledger, tokens=tokens, https=https, demo=demo)
    place = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    typer.echo(f"serving {display_url(ledger)} at http://{host}:{port}")
    if hint := _login_hint(settings, f"http://{place}:{port}/login"):
        typer.echo(hint)
    uvicorn.run(create_app(settings), host=host, port=port, **SERVER)


def require_extra() -> None:
    """Refuse where the service's packages are missing."""
    for package in PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise MissingExtra(package, extra="serve", purpose="the service and its dashboard")


def _require_no_other_audits(ledger: str) -> None:
    """Refuse to put demonstration audits, which never end, beside audits of people."""
    from equipoise.database_url import display_url
    from equipoise.errors import few_of
    from equipoise.ledger.store import Store
    from equipoise.service.demonstration import NAME_PREFIX

    # The demonstration makes its ledger if there is none.
    with closing(Store(ledger, create=True)) as store:
        names = [row.name for row in store.audits()]
    other_names = [name for name in names if not name.startswith(NAME_PREFIX)]
    if other_names:
        raise InvalidInput(
            f"The ledger {display_url(ledger)} holds other audits: {few_of(other_names)}. The "
            "demonstration would write its own audits beside them. Give it another ledger, for "
            "example: equipoise serve --demo --ledger demonstration.db"
        )


def _login_hint(settings: ServiceSettings, login_page: str) -> str:
    """Return how to log in: a link before any token was made by hand, later the command.

    A link opens every audit, and what a server prints ends up in logs. So it is for the first start
    only: once somebody manages tokens by hand, expired or revoked ones stay without effect. The
    hint is empty if a token opens the dashboard, or if a proxy signs people on.
    """
    from equipoise.database_url import display_url
    from equipoise.ledger.inputs import system_user
    from equipoise.service import TokenStore
    from equipoise.service.tokens import READERS, Role

    if settings.proxy_peers:
        return ""
    store = TokenStore(settings.token_store)
    try:
        made_by_hand = [token for token in store.all() if not token.is_login_link]
        if not made_by_hand:
            user = system_user()
            hint = f"log in, today: {login_page}#token={store.new_login_link(user)}"
            if settings.demo:  # where a proposal waits for a second person
                approver_token = store.new_login_link(user, Role.APPROVER)
                hint += f"\nas an approver: {login_page}#token={approver_token}"
            return hint
    finally:
        store.close()
    current_time = datetime.now(UTC)
    if any(token.lives(current_time) and token.role in READERS for token in made_by_hand):
        return ""
    ledger = shlex.quote(display_url(settings.ledger))
    command = f"equipoise token new NAME --role auditor --ledger {ledger}"
    return f"no valid token opens the dashboard; make one: {command}"
