"""Audits: sans-I/O state machines that follow one ask/tell protocol."""
