"""Bring a ledger's schema up to date."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection

__all__ = ["upgrade"]


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Run the migrations that this database lacks, on an open connection."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
