"""A program that does jobs in limited processes, as the service sees it: it answers jobs."""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from equipoise._job_program import MAX_ANSWER_BYTES, Job

# Linear algebra would start threads, with which a program could not fork.
PROGRAM_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
RECEIVED_AT_ONCE = 1 << 20  # bytes
SECONDS_TO_END = 0.1  # from when a killed program's sockets close
Process = subprocess.Popen[bytes]


class JobFailed(Exception):
    """A mistake of the program that did a job; the text is its traceback."""


class JobProcess:
    """Runs a program that uses ``job_program.py``, from the first job on.

    It may be used by several threads, and does as many jobs at once. It is started again if it was
    killed, and ends by itself when this process does.

    Parameters
    ----------
    program
        The program's file.
    """

    def __init__(self, program: Path) -> None:
        # -P: Python must not look for modules in the folder of the file, whose names hide others.
        self._command = (sys.executable, "-P", str(program))
        self._lock = threading.Lock()
        self._running: Process | None = None
        self._control: socket.socket | None = None  # by which jobs are sent
        self._n_jobs = 0  # under way

    def answer(self, job: Job) -> Any:
        """Return what the program answers to a job; None if it reached its limits.

        Raises
        ------
        JobFailed
            If the program has a mistake.
        """
        text, program = self._exchange(job)
        # If the program itself was killed, and not its job, nothing is known about limits.
        if not text and program is self._running and _has_ended(program):
            text, _ = self._exchange(job)
        try:
            answer = json.loads(text)
        except ValueError:  # no answer, or half of one
            return None
        if isinstance(answer, dict) and "failed" in answer:
            raise JobFailed(answer["failed"])
        return answer

    def end_jobs(self) -> None:
        """End the jobs that are under way, together with the program."""
        with self._lock:
            if self._n_jobs:
                self._end()

    def close(self) -> None:
        """End the program; it is started again for the next job."""
        with self._lock:
            self._end()

    @property
    def pid(self) -> int | None:
        """The number of the program's process; None while it does not run."""
        return None if self._running is None else self._running.pid

    def _exchange(self, job: Job) -> tuple[bytes, Process]:
        """Return what a new process sends back, nothing if it was ended, and its program."""
        channel, program = self._begin_job()
        with channel:
            try:
                channel.sendall(json.dumps(job).encode())
                channel.shutdown(socket.SHUT_WR)
                return _receive_all(channel), program
            except OSError:  # the process has ended
                return b"", program
            finally:
                with self._lock:
                    self._n_jobs -= 1

    def _begin_job(self) -> tuple[socket.socket, Process]:
        """Return a socket that a new process of the program listens to, and the program."""
        ours, theirs = socket.socketpair()
        with self._lock, theirs:
            self._n_jobs += 1
            try:
                program, control = self._start_if_needed()
                socket.send_fds(control, [b"j"], [theirs.fileno()])
            except OSError:  # it has been killed just now
                self._end()
                program, control = self._start_if_needed()
                socket.send_fds(control, [b"j"], [theirs.fileno()])
        return ours, program

    def _start_if_needed(self) -> tuple[Process, socket.socket]:
        """Return the program and the socket by which it gets jobs."""
        if self._running is not None and self._running.poll() is not None:
            self._end()
        if self._running is None or self._control is None:
            self._control, theirs = socket.socketpair()
            with theirs:
                self._running = subprocess.Popen(
                    self._command,
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={**os.environ, **PROGRAM_ENVIRONMENT},
                    start_new_session=True,  # so that jobs are ended together with the program
                )
            atexit.register(self.close)
        return self._running, self._control

    def _end(self) -> None:
        """End the program and its jobs, and forget it."""
        if self._running is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._running.pid, signal.SIGKILL)
            self._running.wait()
            atexit.unregister(self.close)
        if self._control is not None:
            self._control.close()
        self._running = None
        self._control = None


def _has_ended(program: Process) -> bool:
    """Say whether a program has ended, or ends just now."""
    with suppress(subprocess.TimeoutExpired):
        program.wait(SECONDS_TO_END)
    return program.returncode is not None


def _receive_all(channel: socket.socket) -> bytes:
    """Return what a process sends until it ends, or nothing if it sends too much."""
    parts = []
    n_bytes = 0
    while part := channel.recv(RECEIVED_AT_ONCE):
        parts.append(part)
        n_bytes += len(part)
        if n_bytes > MAX_ANSWER_BYTES:
            return b""
    return b"".join(parts)
