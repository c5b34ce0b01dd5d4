"""The arguments of reading are the same wherever they are written down."""

from __future__ import annotations

import inspect
from dataclasses import fields

import equipoise as eq
from equipoise.history.options import DEFAULTS, ReadOptions
from equipoise.history.saved_readings import ENTRIES


def test_history_read_takes_what_the_options_hold() -> None:
    parameters = inspect.signature(eq.History.read).parameters
    taken = {name: p.default for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
    del taken["random_state"]  # another name of seed
    assert taken == dict(DEFAULTS)
    annotations = {name: parameters[name].annotation for name in taken}
    assert annotations == {field.name: field.type for field in fields(ReadOptions)}


def test_every_argument_has_an_entry_in_a_saved_reading() -> None:
    assert list(ENTRIES.values()) == list(DEFAULTS)
    options = ReadOptions(group="race", decision="ok", outcome="paid")
    assert list(options.all_arguments()) == list(DEFAULTS)
