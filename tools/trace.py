"""Show the way of a file and of a person through the package: ``python tools/trace.py``.

For ``check`` on a CSV of a dozen rows, one ``ask`` and ``tell`` of an adaptive audit in memory, a
plan, and one ``ask`` in a ledger: how many of the package's files take part, how often control
passes from one file to another, and the files in the order in which they first take part. Imports
are done before. With ``PYTHONPATH`` set to the ``src`` of another revision, it shows that one.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import equipoise as eq

PACKAGE = str(Path(eq.__file__).parent)
ROWS = """group,approved,repaid
A,1,1\nA,1,1\nA,1,0\nA,0,\nA,0,\nA,0,
B,1,1\nB,1,0\nB,0,\nB,0,\nB,0,\nB,0,
"""


def main() -> None:
    """Trace each of them, and print a line and the files."""
    question = eq.Question("equal_opportunity", gamma=0.05, epsilon=0.1)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "loans.csv"
        table.write_text(ROWS)

        def read() -> eq.History:
            return eq.History.read(table, group="group", decision="approved", outcome="repaid")

        history = read()
        audit = eq.AdaptiveAudit(history, question, eq.Costs())

        def ask_and_tell() -> None:
            for group in ("A", "B"):
                audit.tell(audit.ask(group, 0), 1)

        ledger = f"sqlite:///{folder}/ledger.db"
        costs = eq.Costs()
        # A dozen rows decide nothing, and an audit on them has to be confirmed.
        live = eq.LiveAudit.create(ledger, "loans", history, question, costs, confirm=True)
        people = iter(range(1000))
        show("check on a CSV", lambda: eq.check(read(), question))
        show("ask and tell, in memory", ask_and_tell)
        show("ask, in a ledger", lambda: live.ask(f"p-{next(people)}", "A", 0))
        show("plan", lambda: eq.plan(history, question, eq.Costs()))


def show(what: str, do: Callable[[], object]) -> None:
    """Do it once unseen, so that imports are over, and once traced."""
    do()
    way: list[str] = []

    def enter(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(PACKAGE) and (not way or way[-1] != name):
            way.append(name)

    sys.setprofile(enter)
    try:
        do()
    finally:
        sys.setprofile(None)
    files = [str(Path(name).relative_to(PACKAGE)) for name in dict.fromkeys(way)]
    print(f"{what}: {len(files)} files, {len(way) - 1:,} changes of file")
    print("  " + ", ".join(files))


if __name__ == "__main__":
    main()
