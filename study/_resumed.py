"""Runs that a study makes in turn over its points, and takes up again where it was stopped."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

Run = dict[str, float]


def add_options(parser: argparse.ArgumentParser, runs: int) -> None:
    parser.add_argument("--runs", type=int, default=runs, help="of every point")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of CPU, then stop")
    parser.add_argument("--keep", type=Path, help="file of runs made so far, to go on from")


def collect(
    options: argparse.Namespace, points: Sequence[str], one: Callable[[str, int], Run]
) -> dict[str, list[Run]]:
    """Return the runs of every point; all points have as many, however early the study stops."""
    runs: dict[str, list[Run]] = {point: [] for point in points}
    if options.keep is not None and options.keep.exists():
        for line in options.keep.read_text(encoding="utf-8").splitlines():
            point, run = json.loads(line)
            runs[point].append(run)
    while min(map(len, runs.values())) < options.runs and time.process_time() < options.seconds:
        for point in points:
            if len(runs[point]) == min(map(len, runs.values())):
                runs[point].append(one(point, len(runs[point])))
                if options.keep is not None:
                    with options.keep.open("a", encoding="utf-8") as file:
                        file.write(json.dumps([point, runs[point][-1]]) + "\n")
    return runs


def made_by(options: argparse.Namespace, runs: Mapping[str, Sequence[Run]]) -> str:
    """Return the command that repeats what was run, however early it stopped."""
    fewest = min(len(made) for made in runs.values())
    return f"Made by `python -m study {options.name} --runs {fewest}`."


def mean(runs: Sequence[Run], key: str) -> float:
    """Return the mean of an entry over the runs."""
    return float(np.mean([run[key] for run in runs]))
