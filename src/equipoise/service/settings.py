"""Settings of the service, read from the environment.

Every field can be set by a variable: ``EQUIPOISE_LEDGER``, ``EQUIPOISE_BODY_LIMIT`` and so on.
An argument takes precedence over the environment.
"""

from __future__ import annotations

import secrets
from ipaddress import IPv4Network, IPv6Network
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from equipoise.errors import InvalidInput
from equipoise.ledger.database import kind_and_path
from equipoise.service.tokens import Role

Network = IPv4Network | IPv6Network


def _split_list(value: Any) -> Any:
    """Return the parts of a text such as ``10.0.0.5/32, 10.0.0.6/32``; other values as they are."""
    if not isinstance(value, str):
        return value
    return value.replace(" ", "").strip(",").split(",")


def _split_pairs(value: Any) -> Any:
    """Return a text such as ``team=auditor, board=regulator`` as a dictionary; else the value."""
    if not isinstance(value, str):
        return value
    pairs = {}
    for part in value.split(","):
        if part.strip():
            group, _, role = part.partition("=")
            pairs[group.strip()] = role.strip()
    return pairs


class ServiceSettings(BaseSettings):
    """What one server runs with.

    Attributes
    ----------
    ledger, tokens
        Databases: a file (SQLite) or ``postgresql://…``; the tokens' beside the ledger's if empty.
    secret_key
        Signs the cookies of browsers. It is drawn at every start if it is not given, which ends all
        sessions. Several servers of one ledger need the same key.
    https
        The browser reaches the server by https, so cookies may insist on it.
    demo
        Let simulated people arrive at a demonstration audit.
    body_limit, upload_limit
        Most bytes of a request, and of an uploaded table.
    body_seconds
        How long a request may take to arrive; an upload thirty times as long.
    wait_seconds
        How long a write waits for other writers of the database.
    read_memory, read_seconds
        Most bytes of memory, and seconds of processor time, for reading an uploaded table, making a
        plan or trying a new audit.
    audit_memory
        Most bytes that it may take to make a new audit.
    open_memory
        Bytes that open audits may hold together; beyond, those used least recently are let go.
    forwarded_from
        Addresses and networks, separated by commas, that may say for whom they forward a request.
    proxy_peers, proxy_secret, proxy_roles
        Sign-on by a trusted proxy: networks that it connects from, as in ``10.0.0.5/32``, separated
        by commas; what it sends in ``X-Equipoise-Proxy-Secret``; and which group has which role,
        as in ``audit-team=auditor, supervisors=regulator``.
    proxy_actor, proxy_groups
        The headers in which the proxy names a person and the person's groups.
    """

    model_config = SettingsConfigDict(env_prefix="EQUIPOISE_", frozen=True, extra="forbid")

    ledger: Annotated[str, Field(min_length=1)]
    tokens: str = ""
    secret_key: SecretStr = Field(
        default_factory=lambda: SecretStr(secrets.token_urlsafe(32)), min_length=16
    )
    https: bool = False
    demo: bool = False
    body_limit: Annotated[int, Field(gt=0)] = 4 << 20
    upload_limit: Annotated[int, Field(gt=0)] = 256 << 20
    body_seconds: Annotated[float, Field(gt=0)] = 20.0
    wait_seconds: Annotated[float, Field(gt=0)] = 10.0
    read_memory: Annotated[int, Field(ge=256 << 20)] = 1 << 30
    read_seconds: Annotated[int, Field(gt=0)] = 120
    audit_memory: Annotated[int, Field(gt=0)] = 1 << 30
    open_memory: Annotated[int, Field(gt=0)] = 1 << 30
    forwarded_from: str = "127.0.0.1"
    proxy_peers: Annotated[tuple[Network, ...], NoDecode, BeforeValidator(_split_list)] = ()
    proxy_secret: SecretStr = SecretStr("")
    proxy_roles: Annotated[dict[str, Role], NoDecode, BeforeValidator(_split_pairs)] = {}
    proxy_actor: str = "X-Forwarded-Email"
    proxy_groups: str = "X-Forwarded-Groups"

    @model_validator(mode="after")
    def _require_consistent(self) -> ServiceSettings:
        """Refuse a ledger in memory, and a sign-on by proxy of which a part is missing."""
        # A database in memory is one connection's; the server has several.
        if kind_and_path(self.ledger) == ("sqlite", None):
            rule = "a service needs a ledger that several connections share: a file"
            raise ValueError(f"EQUIPOISE_LEDGER: {rule}")
        proxy_parts = [bool(self.proxy_peers), bool(self.proxy_secret), bool(self.proxy_roles)]
        if any(proxy_parts) and not all(proxy_parts):
            raise ValueError("proxy_peers, proxy_secret and proxy_roles are needed together")
        if all(proxy_parts) and len(self.proxy_secret.get_secret_value()) < 16:
            raise ValueError("proxy_secret must have at least 16 characters")
        return self

    @property
    def token_store(self) -> str:
        """Where tokens are kept: ``tokens``, or beside the ledger if that is empty.

        Beside a file this is another file; in PostgreSQL it is the ledger's own database.
        """
        if self.tokens:
            return self.tokens
        return self.ledger if self.ledger.startswith("postgres") else f"{self.ledger}.tokens"


def load_settings(**overrides: Any) -> ServiceSettings:
    """Return settings from arguments and the environment; arguments go first.

    Raises
    ------
    InvalidInput
        If a setting breaks a rule. The message names the environment variable and the rule.

    Examples
    --------
    >>> load_settings(ledger="audits.db").token_store
    'audits.db.tokens'
    """
    try:
        return ServiceSettings(**overrides)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]  # the next one shows once it is mended
        rule = problem["msg"].removeprefix("Value error, ")
        if not problem["loc"]:  # a rule about several settings
            raise InvalidInput(rule) from None
        field_path = "_".join(str(part) for part in problem["loc"])
        raise InvalidInput(f"EQUIPOISE_{field_path.upper()}: {rule}") from None
