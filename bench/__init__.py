"""Benchmarks: speed and memory, a file each. ``python -m bench`` runs all, ``… NAME`` one."""
