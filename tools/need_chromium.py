"""See to it that there is a Chromium for the tests that look at pages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys


def main() -> int:
    """Install Chromium where that is possible, say what to install where it is not."""
    if shutil.which("chromium"):
        return 0
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print("tests open pages in 'chromium'. On Debian: sudo apt-get install chromium")
        return 2
    subprocess.run(["apt-get", "update", "-qq"], check=True)
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"]
    return subprocess.run(command, env=quiet, stdout=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main())
