"""What attacks on ledgers have counted, added up over runs: docs/evidence/ledger.md shows it."""

from __future__ import annotations

import json
from pathlib import Path

from equipoise.ledger import state_cache

__all__ = ["add", "cache_often", "counted"]

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "ledger.md"
SUMS = PAGE.with_suffix(".json")
INTRODUCTION = """# Attacks on the ledger

<!-- generated: do not edit -->

Each run of an attack adds to these sums (`docs/evidence/ledger.json`), until its total is reached.
They began anew when the cache beside the chain came. The programs of these attacks store it every
20 events, not every 2,000. Before that 10,000 kills lost nothing, 97,097 changes were all
found, and 1,000 verifications gave no false alarm.
"""
WORDS = {
    "ledger_kill": "Three programs ask and tell; one, two or all of them are killed (kill -9) and "
    "others take their place, or PostgreSQL's own processes are. Every hundred kills the ledger is "
    "compared with what each program noted as acknowledged, and verified.",
    "ledger_verify": "A ledger and an export of it are verified while two programs ask, tell, "
    "correct and withdraw.",
    "ledger_tamper": "A cell or a row of a database is changed behind the ledger's back, "
    "every table and column in turn, or any bit, byte or line of an export; the head is known.",
}

CACHED_EVERY = 20  # events

CLOSING = """## The cache beside the chain

`EQUIPOISE_TESTS=full pytest tests/conformance/test_ledger_cache.py` took 190 CPU seconds.
At 92e8ad8 there was no cache.

- 300 random audits with pending, withdrawn, late and corrected outcomes had the same verdicts,
  money and people with and without the cache, in blocks and one by one.
- 1,000 rows of the cache were damaged at random. All were ignored.
- 1,000 states were changed at random and bound again. None gave another verdict, and `verify` named
  every one that differed.
- 1,000 people were asked about on forged states. No event came of it that the rules refuse.
"""

Sums = dict[str, dict[str, dict[str, int]]]


def counted(attack: str, where: str, what: str) -> int:
    """Return what runs so far have counted."""
    return _read().get(attack, {}).get(where, {}).get(what, 0)


def cache_often() -> None:
    """Let programs that are forked from here store the state beside the chain every few events."""
    state_cache.EVENTS_BEFORE_CACHING = CACHED_EVERY


def add(attack: str, where: str, **counts: int) -> None:
    """Add a run's counts and write the page anew."""
    sums = _read()
    row = sums.setdefault(attack, {}).setdefault(where, {})
    for what, count in counts.items():
        row[what] = row.get(what, 0) + count
    SUMS.write_text(json.dumps(sums, indent=1, sort_keys=True) + "\n")
    PAGE.write_text(_page(sums))


def _read() -> Sums:
    found: Sums = json.loads(SUMS.read_text()) if SUMS.exists() else {}
    return found


def _page(sums: Sums) -> str:
    lines = [INTRODUCTION]
    for attack in sorted(sums):
        rows = sums[attack]
        names = list(dict.fromkeys(name for row in rows.values() for name in row))
        totals = {name: sum(row.get(name, 0) for row in rows.values()) for name in names}
        lines += [f"## `python -m tests.torture {attack}`\n", WORDS[attack] + "\n"]
        lines.append("| | " + " | ".join(name.replace("_", " ") for name in names) + " |")
        lines.append("|---" + "|---:" * len(names) + "|")
        for where, row in {**rows, "**all**": totals}.items():
            cells = [f"{row[name]:,}" if name in row else "–" for name in names]
            lines.append(f"| {where} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join([*lines, CLOSING])
