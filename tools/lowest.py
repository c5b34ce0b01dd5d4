"""Run the tests of reading data with the lowest versions that pyproject.toml allows.

Makes an environment of its own, with every requirement of the product and of its sources pinned to
its lower bound; a bound that does not work fails here.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACE = ROOT / ".cache" / "lowest"
SOURCES = ("postgres", "warehouse", "excel", "lake", "frames")
TOOLS = ("pytest", "hypothesis")  # of dev, which tests need
TESTS = (
    "tests/unit/history",
    "tests/unit/test_rates_unknown_outcomes.py",
    "tests/unit/test_random_accepts.py",
)
_LOWER = re.compile(r"^([A-Za-z0-9_.-]+)(\[[^\]]*\])?>=([0-9.]+)$")


def main() -> int:
    """Make the environment, run the tests there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *(line for extra in SOURCES for line in extras[extra])]
    needed += [line for line in extras["dev"] if line.split(">=")[0] in TOOLS]
    PLACE.mkdir(parents=True, exist_ok=True)
    pins = PLACE / "constraints.txt"
    pins.write_text("\n".join(sorted(set(lowest(needed)))) + "\n")
    python = PLACE / "venv" / "bin" / "python"
    _run(sys.executable, "-m", "venv", "--clear", str(PLACE / "venv"))
    product = f"{ROOT}[{','.join(SOURCES)}]"
    _run(str(python), "-m", "pip", "install", "-q", "-c", str(pins), "-e", product, *TOOLS)
    # what old packages think of each other is not our concern
    return subprocess.run(
        [python, "-m", "pytest", "-q", "-W", "ignore", *TESTS, *sys.argv[1:]], cwd=ROOT, check=False
    ).returncode


def lowest(requirements: Iterable[str]) -> Iterable[str]:
    """Yield the lowest version that each requirement allows, as a constraint."""
    for line in requirements:
        found = _LOWER.match(line.replace(" ", ""))
        if found is None:
            raise SystemExit(f"{line!r} must have a lower bound and nothing else: name>=1.2")
        yield f"{found[1]}=={found[3]}"


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


if __name__ == "__main__":
    sys.exit(main())
