"""Make a virtual environment; on a Debian without ensurepip, install what it lacks first."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys


def main(target: str) -> int:
    """Create the environment at ``target`` unless one works there already."""
    if os.path.exists(os.path.join(target, "bin", "pip")):
        return 0
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            print("python3 has no 'ensurepip'. On Debian: sudo apt-get install python3-venv")
            return 2
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(["apt-get", "install", "-y", "-qq", "python3-venv"], check=True)
    return subprocess.run([sys.executable, "-m", "venv", target]).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
