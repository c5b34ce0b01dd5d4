"""A small ledger of every released edition of the statistics, as its program left it.

Nothing is released yet, so there is none. ``python -m tests.conformance.editions`` writes the one
of the present edition. Once that is released its ledger is never made again: a later program must
recognise it, read it, verify its chain, books and money, and go on after an upgrade.
"""
