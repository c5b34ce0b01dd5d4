"""The command line: ``equipoise check``, ``equipoise demo`` and the rest, one file each."""

from equipoise.cli.app import app

__all__ = ["app"]
