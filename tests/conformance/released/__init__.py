"""Ledgers as each released schema left them: ``python -m tests.conformance.released`` adds one.

``v1.db`` is a SQLite file, ``v1.sql`` the same in PostgreSQL, made by the program that wrote that
schema. They are never made again: a later program must open them, go on and verify them.
"""
