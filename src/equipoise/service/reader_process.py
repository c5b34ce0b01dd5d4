"""The program that reads tables, as the service sees it: it takes a job and returns the answer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from equipoise.service.table_reader import ANSWER_NAME

READER_COMMAND = (sys.executable, "-P", str(Path(__file__).with_name("table_reader.py")))
# Linear algebra would start threads, with which the program could not fork.
READER_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


class ReaderProcess:
    """Runs ``table_reader.py``, from the first table on, and gives it one job after the other.

    It may be used by several threads. It is started again if it was killed.
    """

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._program: subprocess.Popen[bytes] | None = None
        self._is_closed = False

    def answer(self, job: Mapping[str, Any]) -> Any:
        """Return what the program answers to a job; None if it reached its limits."""
        with self._turn:
            if self._is_closed:
                return None
            program = self._running_program()
            assert program.stdin is not None
            assert program.stdout is not None
            try:
                program.stdin.write(json.dumps(job).encode() + b"\n")
                program.stdin.flush()
                # The line says only that the job has ended. Its answer is a file, of any size.
                program.stdout.readline()
                return json.loads(Path(job["folder"], ANSWER_NAME).read_bytes())
            except (OSError, ValueError):  # no answer, or half of one
                return None

    def close(self) -> None:
        """End the program, and the job that it does."""
        # Not in turn: the thread that waits for a job has the turn, and the job is to end now.
        self._is_closed = True
        if self._program is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._program.pid, signal.SIGKILL)
        with self._turn:
            self._forget_program()

    def _running_program(self) -> subprocess.Popen[bytes]:
        if self._program is not None and self._program.poll() is not None:
            self._forget_program()
        if self._program is None:
            self._program = subprocess.Popen(
                READER_COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **READER_ENVIRONMENT},
                start_new_session=True,  # so that a job is ended together with the program
            )
        return self._program

    def _forget_program(self) -> None:
        if self._program is None:
            return
        self._program.wait()
        for pipe in (self._program.stdin, self._program.stdout):
            assert pipe is not None
            with suppress(OSError):  # what was not sent yet
                pipe.close()
        self._program = None
