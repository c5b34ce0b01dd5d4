"""A full disk: nothing is acknowledged that is not stored, and work goes on once there is space."""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from equipoise.errors import LedgerError
from equipoise.ledger import LiveAudit
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld

WORLD = CellWorld.from_shares({"A": (0.45, 0.15, 0.40, 0.5), "B": (0.15, 0.15, 0.70, 0.3)})


class NoMount(Exception):
    """A small file system cannot be mounted here."""


@dataclass(frozen=True)
class DiskResult:
    """What a full disk did."""

    acknowledged: int
    refused: int
    stored: int
    message: str
    after: int

    def __str__(self) -> str:
        return (
            f"{self.acknowledged:,} asks acknowledged, {self.stored:,} stored when the disk was "
            f"full, {self.refused} refused ({self.message}); {self.after:,} more once there was "
            "space, and everything verifies"
        )


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--megabytes", type=int, default=8)


def run(options: argparse.Namespace) -> str:
    try:
        return str(fill_disk(options.megabytes))
    except NoMount as error:
        return f"skipped: {error}"


def fill_disk(megabytes: int) -> DiskResult:
    """Ask on a tiny disk until it is full, look, free some space, go on."""
    with tiny_disk(megabytes) as directory:
        live = LiveAudit.create(
            str(directory / "ledger.db"),
            "full",
            WORLD.past(None, 0),
            Question(gamma=0.1, epsilon=0.2),
            Costs(feature=5, label=100),
            audit="rs",
            options={"tau": 1_000_000},
        )
        ballast = directory / "ballast"
        ballast.write_bytes(b"\0" * (megabytes - 3) * 1_000_000)
        acknowledged, messages = set[str](), list[str]()
        number = 0
        while len(messages) < 3:
            number += 1
            try:
                acknowledged.add(live.ask(f"p{number}", "AB"[number % 2], 0).person)
            except LedgerError as error:
                messages.append(str(error))
        stored = {row.person for row in live.people()}
        assert acknowledged <= stored, "an acknowledged ask is not stored"
        ballast.unlink()
        again = [f"p{i}" for i in range(1, number + 200)]
        replies = live.ask_many([(name, "AB"[int(name[1:]) % 2], 0) for name in again])
        assert not any(reply.problem for reply in replies)
        live.verify()
        live.close_ledger()
        return DiskResult(
            acknowledged=len(acknowledged),
            refused=len(messages),
            stored=len(stored),
            message=messages[0].partition(" for the ledger")[0],
            after=sum(not reply.repeated for reply in replies),
        )


@contextmanager
def tiny_disk(megabytes: int) -> Iterator[Path]:
    """Mount a file system of so many megabytes in memory."""
    with tempfile.TemporaryDirectory() as directory:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", directory]
        try:
            done = subprocess.run(mount, capture_output=True, text=True)
        except OSError as error:
            raise NoMount(str(error)) from error
        if done.returncode:
            raise NoMount(done.stderr.strip() or "mount failed")
        try:
            yield Path(directory)
        finally:
            subprocess.run(["umount", "--lazy", directory], check=True)
