"""Heavy integrations are collected by ``make matrix`` alone."""

import os

collect_ignore_glob = [] if os.environ.get("EQUIPOISE_TESTS") == "matrix" else ["test_*.py"]
