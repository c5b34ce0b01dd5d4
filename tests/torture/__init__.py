"""Kills, forgeries and fuzzing at any size: ``python -m tests.torture``; small in the tests."""
