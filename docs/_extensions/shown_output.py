"""Run the shell blocks of tutorials while the site is built, and show what they print.

The sources hold commands only: an output in the site is never older than the program. A block of
figures whose name ends in ``-output`` is for readers of the source, who do not see what commands
print. The site leaves it out.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from tests.acceptance.documents import run_shell_blocks, with_outputs

OUTPUT_FOR_THE_SOURCE = re.compile(
    r"^<!-- figures: [\w-]+-output -->\n.*?^<!-- end of figures -->\n", re.DOTALL | re.MULTILINE
)


def setup(app: Sphinx) -> dict[str, bool]:
    """Look at every source when it is read."""
    app.connect("source-read", _show)
    return {"parallel_read_safe": True}


def _show(app: Sphinx, page: str, source: list[str]) -> None:
    if not page.startswith("start/") or "```bash\n" not in source[0]:
        return
    here = Path(app.srcdir) / page
    with tempfile.TemporaryDirectory() as folder:
        for script in here.parent.glob("*.py"):
            shutil.copy(script, folder)
        done = run_shell_blocks(source[0], Path(folder))
    if done.failure:
        raise ExtensionError(f"{page}: {done.failure}")
    source[0] = with_outputs(OUTPUT_FOR_THE_SOURCE.sub("", source[0]), done.outputs)
