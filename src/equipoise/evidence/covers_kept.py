"""The covers that are kept for the next audit of the same question, and how to forget them."""

from __future__ import annotations

from equipoise.evidence import null_cells, row_answers, shared_gains, wrong_answers


def forget_covers() -> None:
    """Forget covers that no audit uses, for the sake of memory; audits keep theirs."""
    for kept in (
        row_answers._fair_covers,
        row_answers._unfair_covers,
        wrong_answers.fair_covers,
        wrong_answers.unfair_covers,
        shared_gains._past_rows,
    ):
        kept.cache_clear()
    null_cells._LATEST_PARTS.clear()
