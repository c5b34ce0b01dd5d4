"""A database's password is in no message, whatever is wrong with its address."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import pytest
import sqlalchemy as sql

from equipoise.errors import EquipoiseError
from equipoise.history import History
from equipoise.ledger import list_audits
from equipoise.service.settings import load_settings
from equipoise.service.tokens import TokenStore

ADDRESSES = (
    "postgresql://anna:s3cr%zz3t@127.0.0.1:1/audits",
    "postgresql://anna:s3cr3t word@127.0.0.1:1/audits",
    "postgresql://anna:a@s3cr3t@127.0.0.1:1/audits",
    "postgresql://anna:s3cr/3t@127.0.0.1:1/audits",
    "postgresql://anna:s3cr3t@127.0.0.1:port/audits",
    "postgresql://127.0.0.1:s3cr3t",
    "postgresql://anna@127.0.0.1:1/audits?pass%77ord=s3cr3t",
    "postgresql://anna@127.0.0.1:1/audits?password=s3cr%zz3t",
    "postgresql://anna@127.0.0.1:1/audits?sslpass%77ord=s3cr3t",
    "postgresql://anna:s3cr3t@127.0.0.1:1/audits?no_such_parameter=1",
    "postgresql+psycopg://anna:s3cr3t@127.0.0.1:1/audits",
    "oracle://anna:s3cr3t@127.0.0.1:1/audits",
    "postgresql:/anna:s3cr3t@127.0.0.1/audits",
    "host=127.0.0.1 password=s3cr3t",
)


def read_table(url: str) -> object:
    """Read a table of a database."""
    return History.read(url, table="loans", group="race", decision="approved", outcome="repaid")


@pytest.mark.parametrize("url", ADDRESSES)
@pytest.mark.parametrize("open_address", [list_audits, TokenStore, read_table])
def test_no_message_has_the_password(url: str, open_address: Callable[[str], object]) -> None:
    with pytest.raises(EquipoiseError) as caught:
        open_address(url)
    assert "s3cr" not in str(caught.value)
    # nor has an error behind it, which a log would show
    cause = caught.value.__cause__
    while cause is not None:
        assert "s3cr" not in "".join(traceback.format_exception_only(cause))
        cause = cause.__cause__


@pytest.mark.parametrize("url", ADDRESSES)
def test_settings_of_a_service_keep_the_password(url: str) -> None:
    message = ""
    try:
        load_settings(ledger=url)
    except EquipoiseError as error:
        message = str(error)
    assert "s3cr" not in message


def test_an_engine_of_the_caller_keeps_its_password() -> None:
    engine = sql.create_engine(
        "postgresql+psycopg://anna:s3cr3t@127.0.0.1:1/audits?sslpassword=s3cr3t"
    )
    with pytest.raises(EquipoiseError, match="cannot read the database") as caught:
        History.read(engine, table="loans", group="race", decision="approved", outcome="repaid")
    assert "s3cr" not in str(caught.value)


def test_an_address_that_drivers_misread_is_refused_with_the_remedy() -> None:
    with pytest.raises(EquipoiseError, match="@ is %40"):
        list_audits("postgresql://anna:a@b@127.0.0.1/audits")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://anna:a%40b@127.0.0.1:1/audits?connect_timeout=1",
        "postgresql://[::1]:1/audits",
        "postgresql://127.0.0.1:1,127.0.0.1:2/audits",
        "postgresql:///audits?host=/no/such/folder",
    ],
)
def test_addresses_of_every_kind_reach_the_driver(url: str) -> None:
    with pytest.raises(EquipoiseError, match="nothing was stored; repeating the call is safe"):
        list_audits(url)
