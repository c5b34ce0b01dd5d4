"""Events of a ledger in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from equipoise.display import Row
from equipoise.ledger.settings import Settings
from equipoise.messages.audit_words import ACTION_TEXT, OUTCOME_WORDS, PROPOSAL_TEXT


def describe_proposal(command: str, arguments: Mapping[str, Any], settings: Settings) -> str:
    """Return in plain words what was proposed."""
    action = PROPOSAL_TEXT[command]
    details = "; ".join(describe_event(command, arguments, settings))
    return f"{action}: {details}" if details else action


def log_rows(events: Iterable[Mapping[str, Any]], settings: Settings) -> list[Row]:
    """Return who did what: a row per event, in plain words."""
    rows: list[Row] = []
    for event in events:
        event_type = event["type"]
        data = event["data"]
        row = {
            "event": event["seq"],
            "time": event["time"][:19],  # without fractions of a second
            "actor": event["actor"],
            "deed": _describe_action(event_type, data),
            "about": "; ".join(describe_event(event_type, data, settings)),
        }
        rows.append(row)
    return rows


def _describe_action(event_type: str, data: Mapping[str, Any]) -> str:
    if event_type == "verdict" and data["finding"] is None:  # a correction undid it
        return "took back the verdict"
    return ACTION_TEXT[event_type]


def describe_event(event_type: str, data: Mapping[str, Any], settings: Settings) -> list[str]:
    """Return what an event, or a proposal of one, is about: the person, details, the reason.

    Parameters
    ----------
    event_type
        The type of an event, or the name of a proposed command.
    data
        The event's data, or the command's arguments.
    settings
        Of the audit; they know how money is written.
    """
    parts = []
    if "person" in data:
        parts.append(f"person {data['person']:,}")
    describe_details = _DETAILS.get(event_type)
    if describe_details is not None:
        parts += describe_details(data, settings)
    if data.get("why"):
        parts.append(data["why"])
    return parts


def _correction(data: Mapping[str, Any], settings: Settings) -> list[str]:
    return [OUTCOME_WORDS[data["outcome"]]]


def _budget(data: Mapping[str, Any], settings: Settings) -> list[str]:
    budget = data.get("budget")
    return ["no cap" if budget is None else settings.money(budget)]


def _limits(data: Mapping[str, Any], settings: Settings) -> list[str]:
    limits = {"all": data["max_in_flight"], **data["max_in_flight_groups"]}
    # The limit of all is None where only single groups have one.
    limit_texts = [f"{limit} of {group}" for group, limit in limits.items() if limit]
    return [", ".join(limit_texts) or "no limits"]


def _random_accepts(data: Mapping[str, Any], settings: Settings) -> list[str]:
    return [
        f"{group} {good:,} good, {bad:,} bad, {unknown:,} unknown"
        for group, (good, bad, unknown) in data["random_accepts"].items()
    ]


def _proposal(data: Mapping[str, Any], settings: Settings) -> list[str]:
    return [describe_proposal(data["command"], data["arguments"], settings)]


def _verdict(data: Mapping[str, Any], settings: Settings) -> list[str]:
    parts = [data["finding"]["verdict"] if data["finding"] else "in progress again"]
    if data["supersedes"] is not None:
        parts.append(f"in place of event {data['supersedes']:,}")
    return parts


# What is said of events of a type besides the person and the reason.
_DETAILS: Mapping[str, Callable[[Mapping[str, Any], Settings], list[str]]] = {
    "corrected": _correction,
    "budget": _budget,
    "limits": _limits,
    "random_accepts": _random_accepts,
    "proposed": _proposal,
    "verdict": _verdict,
}
