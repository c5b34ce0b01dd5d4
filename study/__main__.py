"""Run studies by name: ``python -m study boundary --runs 100``, or all without a name."""

import sys

from tools.by_name import run_by_name

import study

sys.exit(run_by_name(study, sys.argv[1:]))
