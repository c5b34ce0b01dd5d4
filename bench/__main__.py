"""Run benchmarks by name: ``python -m bench``, ``python -m bench history --rows 10000000``."""

import sys

from tools.by_name import run_by_name

import bench

sys.exit(run_by_name(bench, sys.argv[1:]))
