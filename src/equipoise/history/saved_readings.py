"""Readings that are kept in TOML files: where a table is, how it is read, and what was asked.

Such a file has an entry ``source`` and one for each argument of :meth:`equipoise.History.read` that
is not at its default. Its tables ``[question]`` and ``[costs]`` keep what was asked of the table
and what answers cost, for the next command.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from equipoise._output_files import refuse_overwriting, replace_file
from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.history.options import (
    EVERY_ROLE,
    MEANINGS,
    ROLES,
    VALUE_ARGUMENTS,
    ReadOptions,
    as_tuple,
    places_of,
    simplify_missing,
    unwrap_single,
    without_defaults,
)
from equipoise.history.presets import load_preset
from equipoise.history.values import key_of

SUFFIX = ".toml"
SOURCE_ENTRY = "source"
ENTRIES: Mapping[str, str] = {
    "group": "group",
    "within": "within",
    "decision": "decision",
    "outcome": "outcome",
    "positive": "positive",
    "negative": "negative",
    "missing_values": "missing_values",
    "missing_group": "missing_group",
    "merge_groups": "merge_groups",
    "max_groups": "max_groups",
    "denied_outcomes": "denied_outcomes",
    "undecided": "undecided",
    "unknown": "unknown",
    "cohort": "cohort",
    "random_accepts": "random_accepts",
    "random_accepts_against": "random_accepts_against",
    "decider": "decider",
    "min_cases": "min_cases",
    "id": "id",
    "repeated": "repeated",
    "date": "date",
    "since": "since",
    "until": "until",
    "seed": "seed",
    "table": "table",
    "query": "query",
    "encoding": "encoding",
    "outcomes": "outcomes",
    "on": "on",
    "latest": "latest",
    "preset": "preset",
}
"""Entry of a TOML file -> argument of ``History.read``. Entries of kept files never change."""
QUESTION_TABLE = "question"
QUESTION_ENTRIES = (
    "metric",
    "tolerance",
    "margin",
    "error_probability",
    "compare",
    "against",
    "direction",
    "leave_out",
)
"""Entries of ``[question]``; tolerance, margin and error probability are gamma, epsilon, delta."""
COSTS_TABLE = "costs"
COSTS_ENTRIES = ("feature", "label")
"""Entries of ``[costs]``, in whole units of the currency."""
# In the part of an address before its host: "user:password@".
PASSWORD = re.compile(r"(?<=://)([^/@]*):[^/@]*@")


def load_reading(source: object, arguments: Mapping[str, Any]) -> tuple[object, ReadOptions]:
    """Return a source and its options; a file of :func:`save_reading` has both.

    Arguments that are given beside such a file, and are not at their defaults, go before its
    entries. Values that mean 1 or 0 do so role by role, and missing values are added to those of
    the file.

    Raises
    ------
    BadData
        If the file cannot be read.
    InvalidInput
        If an argument is not what it must be.
    """
    source, levels = load_levels(source, arguments)
    together = merge_levels(levels)
    # The same options with what one of the three says of values, which may name columns.
    options_by_level = []
    for level in levels:
        said_of_values = {argument: level.get(argument, ()) for argument in VALUE_ARGUMENTS}
        options_by_level.append(ReadOptions(**{**together, **said_of_values}))
    return source, replace(options_by_level[-1], **_merge_values(options_by_level))


def load_levels(
    source: object, arguments: Mapping[str, Any]
) -> tuple[object, tuple[Mapping[str, Any], ...]]:
    """Return a source, and the arguments of the preset, of the saved file and of the caller.

    Raises
    ------
    BadData
        If a file cannot be read.
    UnknownName
        If it has an entry that is unknown.
    """
    explicit_arguments = without_defaults(arguments)
    saved: dict[str, Any] = {}
    places = places_of(source)
    if len(places) == 1 and places[0].endswith(SUFFIX):
        source, saved = _read_file(Path(places[0]))
    preset_name = explicit_arguments.get("preset", saved.get("preset"))
    preset = load_preset(preset_name)
    _require_known(f"the preset {preset_name!r}", preset, [*ENTRIES])
    return source, (preset, saved, explicit_arguments)


def merge_levels(levels: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the arguments of all levels, those of a later one in place of earlier ones."""
    together: dict[str, Any] = {}
    for level in levels:
        together |= level
    return together


def _merge_values(options_by_level: Sequence[ReadOptions]) -> dict[str, Any]:
    """Return what values mean, and which stand for none; a later level goes before earlier ones.

    It does so role by role: a caller who explains decisions keeps what a file says of outcomes.
    """
    meanings: dict[str, dict[str, Any]] = {argument: {} for argument in MEANINGS}
    missing: dict[str, Sequence[Any]] = {}
    for options in options_by_level:
        for role in ROLES:
            words = options.missing_words(role)
            # What an earlier level reads as none may be explained here, or the reverse.
            missing[role] = _without(missing.get(role), words.explained)
            for by_role in meanings.values():
                by_role[role] = _without(by_role.get(role), words.of_column)
        for argument in MEANINGS:
            meanings[argument].update(_by_role(getattr(options, argument)))
        # These are added up: a caller who adds a word for none keeps the codes of a preset.
        for slot in (EVERY_ROLE, *ROLES):
            said_here = options.missing_values_for(slot)
            earlier = _without(missing.get(slot), set(map(key_of, said_here)))
            missing[slot] = [*earlier, *said_here]
    return {**meanings, "missing_values": simplify_missing(missing)}


def _without(values: Any, keys: Collection[str]) -> list[Any]:
    return [value for value in as_tuple(values) if key_of(value) not in keys]


@dataclass(frozen=True)
class SavedQuestion:
    """What a kept file says about the question and the costs, by entry; empty without a file.

    ``stratum_columns`` are those that the file's table is read within.
    """

    question: Mapping[str, Any] = field(default_factory=dict)
    costs: Mapping[str, Any] = field(default_factory=dict)
    stratum_columns: tuple[str, ...] = ()


def load_question(source: object) -> SavedQuestion:
    """Return the question and the costs that a file of :func:`save_reading` keeps.

    Raises
    ------
    BadData
        If the file cannot be read.
    UnknownName
        If it has an entry that is unknown.
    """
    places = places_of(source)
    if len(places) != 1 or not places[0].endswith(SUFFIX):
        return SavedQuestion()
    entries = _load_entries(Path(places[0]))
    return SavedQuestion(
        question=entries.get(QUESTION_TABLE, {}),
        costs=entries.get(COSTS_TABLE, {}),
        stratum_columns=as_tuple(entries.get("within")),
    )


def save_reading(
    path: str | os.PathLike[str],
    source: object,
    arguments: Mapping[str, Any],
    saved_question: SavedQuestion | None = None,
) -> None:
    """Write a source and how it is read to a file, which can be given in place of both.

    Paths are kept relative to the file, so that it can move together with its table.
    ``saved_question`` adds the question and the costs.

    Raises
    ------
    InvalidInput
        If the file's name does not end in ``.toml``, if an address holds a password, if the file
        is a source of the reading itself, or if it cannot be written.
    """
    path = Path(path)
    if path.suffix != SUFFIX:
        raise InvalidInput(f"a reading is kept in a file ending in .toml; got {str(path)!r}")
    # A reading may be saved from a saved one; what is written names the table itself.
    source, options = load_reading(source, arguments)
    places = places_of(source)
    if any(map(PASSWORD.search, places)):
        raise InvalidInput(
            "an address with a password cannot be kept in a file; leave the password out and give "
            "it as the database's client finds it, as in PGPASSWORD or ~/.pgpass"
        )
    relative_places = [_relative_to(path.parent, place) for place in places]
    lines = [f"{SOURCE_ENTRY} = {_format_toml(unwrap_single(relative_places))}"]
    arguments_to_keep = options.given_arguments
    outcome_places = places_of(arguments_to_keep.get("outcomes"))
    if outcome_places and _is_file_path(outcome_places[0]):
        places += outcome_places
        arguments_to_keep["outcomes"] = _relative_to(path.parent, outcome_places[0])
    for entry, argument in ENTRIES.items():
        if argument in arguments_to_keep:
            lines.append(f"{entry} = {_format_toml(arguments_to_keep[argument])}")
    if saved_question is not None:
        lines += _table_lines(QUESTION_TABLE, QUESTION_ENTRIES, saved_question.question)
        lines += _table_lines(COSTS_TABLE, COSTS_ENTRIES, saved_question.costs)
    refuse_overwriting(path, places, "a source of past decisions")
    with replace_file(path) as file:
        file.write("\n".join([*lines, ""]))


def _table_lines(table: str, known_entries: Sequence[str], values: Mapping[str, Any]) -> list[str]:
    """Return the lines of a table of a TOML file; none if there is nothing to keep."""
    lines = []
    for entry in known_entries:
        value = values.get(entry)
        if value is not None and value != []:  # TOML has no null
            lines.append(f"{entry} = {_format_toml(value)}")
    return ["", f"[{table}]", *lines] if lines else []


def _load_entries(path: Path) -> dict[str, Any]:
    """Return the entries of a TOML file, all of them known."""
    try:
        entries = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise BadData(f"cannot read {str(path)!r}: {error}") from None
    _require_known(str(path), entries, [SOURCE_ENTRY, *ENTRIES, QUESTION_TABLE, COSTS_TABLE])
    for table, known_entries in ((QUESTION_TABLE, QUESTION_ENTRIES), (COSTS_TABLE, COSTS_ENTRIES)):
        values = entries.get(table, {})
        if not isinstance(values, Mapping):
            raise BadData(f"cannot read {str(path)!r}: {table!r} must be a table, [{table}]")
        _require_known(f"[{table}] of {str(path)!r}", values, known_entries)
    return entries


def _require_known(place: str, entries: Iterable[str], known_entries: Sequence[str]) -> None:
    for entry in entries:
        if entry not in known_entries:
            raise UnknownName(f"entry in {place}", entry, known_entries)


def _read_file(path: Path) -> tuple[list[str], dict[str, Any]]:
    """Return the places and the arguments that a TOML file holds."""
    entries = _load_entries(path)
    entries.pop(QUESTION_TABLE, None)
    entries.pop(COSTS_TABLE, None)
    saved_places = as_tuple(entries.pop(SOURCE_ENTRY, ()))
    places = [place if "://" in place else str(path.parent / place) for place in saved_places]
    # In a database the outcomes are the name of another table, which has no folder.
    outcomes = entries.get("outcomes")
    if isinstance(outcomes, str) and _is_file_path(outcomes):
        entries["outcomes"] = str(path.parent / outcomes)
    return places, {ENTRIES[entry]: value for entry, value in entries.items()}


def _is_file_path(place: str) -> bool:
    """Whether a place is a path, not an address or the name of a table in a database."""
    return "://" not in place and bool(Path(place).suffix)


def _relative_to(folder: Path, place: str) -> str:
    if "://" in place:
        return place
    # With slashes, so that the file can be read on another system.
    return Path(os.path.relpath(place, folder)).as_posix()


def _by_role(meaning: Any) -> Mapping[str, Any]:
    """Return values by role, as :class:`ReadOptions` keeps them after its checks."""
    assert isinstance(meaning, Mapping)
    return meaning


def _toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _format_toml(name)


def _format_toml(value: Any) -> str:
    if isinstance(value, Mapping):
        entries = (f"{_toml_key(name)} = {_format_toml(part)}" for name, part in value.items())
        return "{" + ", ".join(entries) + "}"
    # JSON's texts are TOML's, but for one control character.
    return json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")
