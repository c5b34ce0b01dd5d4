"""A small ledger of every edition of the statistics, as the program of that edition left it.

``python -m tests.conformance.editions`` adds the present one. Once an edition is released its
ledger is never made again: a later program must recognise it, read it, verify its chain, books and
money, and go on after an upgrade.
"""
