"""Run attacks by name: ``python -m tests.torture ledger_kill --rounds 1``."""

import sys

from tools.by_name import run_by_name

from tests import torture

sys.exit(run_by_name(torture, sys.argv[1:]))
