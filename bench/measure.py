"""Time and memory of one task, in a process of its own."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Measurement", "file_system", "measure"]


@dataclass(frozen=True)
class Measurement:
    """The best wall-clock and CPU seconds of some runs, the memory at its peak, the result."""

    seconds: float
    cpu: float
    megabytes: float
    result: object


def measure(task: Callable[..., Callable[[], object]], *args: object, runs: int = 3) -> Measurement:
    """Prepare a task in a fresh process, run it a few times, report the best.

    ``task(*args)`` imports and opens what it needs, unmeasured, and returns what to time.
    """
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_measured, (task, args, runs))


def _measured(
    task: Callable[..., Callable[[], object]], args: tuple[object, ...], runs: int
) -> Measurement:
    run = task(*args)
    times = []
    for _ in range(runs):
        wall, cpu = time.perf_counter(), time.process_time()
        result = run()
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    seconds, cpu = min(times)
    return Measurement(seconds, cpu, _peak_megabytes(), result)


def file_system(directory: str) -> str:
    """Return the type of the file system that a directory is on, ``ext4`` or ``tmpfs`` for example.

    On one in memory a flush to disk costs nothing.
    """
    path = Path(directory).resolve()
    types = {}
    for line in Path("/proc/mounts").read_text().splitlines():
        _, place, kind, *_ = line.split()
        types[Path(place)] = kind  # of several on one place the last one counts
    return next(types[place] for place in (path, *path.parents) if place in types)


def _peak_megabytes() -> float:
    # Unlike getrusage this does not count what the parent held before the process was its own.
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmHWM in /proc/self/status: this benchmark needs Linux")
