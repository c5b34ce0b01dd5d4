"""What programs that do jobs of the service have in common: a process for every job, with limits.

Such a program has its libraries loaded and waits. For every job it gets a socket, by its standard
input, and forks a process, which reads the job from the socket and writes the answer to it, both in
JSON. So a job can only stop that process. No answer, or half of one, means that the limits were
reached. All of it ends together with the server.
"""

from __future__ import annotations

import errno
import gc
import json
import os
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

Job = Mapping[str, Any]

MAX_ANSWER_BYTES = 64 << 20  # that the service is ready to read
ADDRESS_SPACE_HEADROOM = 3 << 30  # bytes that engines reserve without using them


def serve_jobs(do_job: Callable[[Job], Any]) -> None:
    """Do the jobs that the service sends until it ends.

    Nothing here may start a thread, because a process with threads cannot be forked safely.
    """
    gc.freeze()  # else every process would copy what it only looks through for garbage
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the processes that end
    with socket.socket(fileno=sys.stdin.fileno()) as control:
        while True:
            _, descriptors, _, _ = socket.recv_fds(control, 1, 1)
            if not descriptors:  # the server has ended, and so does whatever is done for it
                os.killpg(0, signal.SIGKILL)
            with socket.socket(fileno=descriptors[0]) as channel:
                if os.fork() == 0:
                    _do_in_this_process(do_job, channel)


def _do_in_this_process(do_job: Callable[[Job], Any], channel: socket.socket) -> NoReturn:
    """Do the job that a socket brings, send the answer, and end this process."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        with open(os.devnull, "r+") as nothing:  # no job may take the place of another one
            for stream in (sys.stdin, sys.stdout):
                os.dup2(nothing.fileno(), stream.fileno())
        job = json.loads(_read_all(channel))
        # The limit of processor time ends most jobs before. The alarm is for those that wait.
        signal.alarm(2 * job["seconds"])
        limit_resources(job["memory"], job["seconds"])
        answer = json.dumps(_answer(do_job, job), default=str).encode()
        if len(answer) <= MAX_ANSWER_BYTES:
            channel.sendall(answer)
    finally:
        os._exit(0)  # what was loaded before the fork is not this process's to tidy up


def _answer(do_job: Callable[[Job], Any], job: Job) -> Any:
    """Return what comes of a job; a mistake of the program is an answer, too little memory is not.

    Raises
    ------
    MemoryError
        If the job reached its limit.
    """
    try:
        return do_job(job)
    except MemoryError:
        raise
    except OSError as error:
        if error.errno == errno.ENOMEM:
            raise MemoryError from None
        return {"failed": traceback.format_exc()}
    except Exception:
        return {"failed": traceback.format_exc()}


def _read_all(channel: socket.socket) -> bytes:
    with channel.makefile("rb") as stream:
        return stream.read()


def limit_resources(memory: int, seconds: int) -> None:
    """Limit this process to so many bytes of memory and seconds of processor time."""
    for resource_kind, limit in (
        (resource.RLIMIT_AS, memory + ADDRESS_SPACE_HEADROOM),
        (resource.RLIMIT_DATA, 2 * memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, 2 * memory),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(resource_kind, (limit, limit))


def peak_memory() -> int:
    """Return the most bytes that this process has held at once."""
    # Unlike getrusage this does not count what the parent held before the process was its own.
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) << 10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10
