"""A small ledger of every released edition of the statistics, as its program left it.

``edition-1.db`` is the first. ``python -m tests.conformance.editions`` writes that of the present
edition. Once it is released its ledger is never made again: a later program must recognise it,
read it, verify its chain, books and money, and go on after an upgrade.
"""
