"""Events of a ledger in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from equipoise.display import Row
from equipoise.ledger.settings import Settings

ACTION_TEXT = {
    "created": "began the audit",
    "asked": "reported an arrival",
    "executed": "confirmed an override",
    "withdrawn": "reported a refusal",
    "revealed": "brought an outcome",
    "corrected": "corrected an outcome",
    "noted": "brought an outcome that nobody asked for",
    "conflict": "brought an outcome that contradicts the stored one",
    "overdue": "marked an outcome as overdue",
    "written_off": "gave up an outcome",
    "erased": "erased a person",
    "budget": "changed the budget",
    "limits": "changed the limits",
    "random_accepts": "brought a later file of the test programme",
    "paused": "paused the audit",
    "resumed": "resumed the audit",
    "concluded": "concluded the audit",
    "proposed": "proposed",
    "rejected": "rejected a proposal",
    "scrubbed": "removed the erased from the files",
    "upgraded": "went on under another edition of the statistics",
    "verdict": "reached the verdict",
}


PROPOSAL_TEXT = {
    "budget": "to change the budget",
    "concluded": "to conclude the audit",
    "corrected": "to correct an outcome",
    "erased": "to erase a person",
    "limits": "to change the limits",
    "random_accepts": "to take in a later file of the test programme",
    "resumed": "to resume the audit",
    "upgraded": "to go on under this program's statistics",
}


def describe_proposal(command: str, arguments: Mapping[str, Any], settings: Settings) -> str:
    """Return what somebody proposed, in plain words."""
    details = "; ".join(describe_event(command, arguments, settings))
    return f"{PROPOSAL_TEXT.get(command, command)}: {details}".removesuffix(": ")


def log_rows(events: Iterable[Mapping[str, Any]], settings: Settings) -> list[Row]:
    """Return who did what: a row per event, in plain words."""
    return [
        {
            "event": event["seq"],
            "time": event["time"][:19],
            "actor": event["actor"],
            "deed": _describe_action(event["type"], event["data"]),
            "about": "; ".join(describe_event(event["type"], event["data"], settings)),
        }
        for event in events
    ]


def _describe_action(event_type: str, data: Mapping[str, Any]) -> str:
    if event_type == "verdict" and data["finding"] is None:
        return "took back the verdict"
    return ACTION_TEXT.get(event_type, event_type.replace("_", " "))


def describe_event(event_type: str, data: Mapping[str, Any], settings: Settings) -> Iterator[str]:
    """Yield what an event, or a proposal of one, is about."""
    if "person" in data:
        yield f"person {data['person']:,}"
    if event_type == "corrected":
        yield "good" if data.get("outcome") else "bad"
    if event_type == "budget":
        yield "no cap" if data.get("budget") is None else settings.money(data["budget"])
    if event_type == "limits":
        limits = {"all": data["max_in_flight"], **data["max_in_flight_groups"]}
        yield (
            ", ".join(f"{limit} of {group}" for group, limit in limits.items() if limit)
            or "no limits"
        )
    if event_type == "random_accepts":
        for group, (good, bad, unknown) in data["random_accepts"].items():
            yield f"{group} {good:,} good, {bad:,} bad, {unknown:,} unknown"
    if event_type == "proposed":
        yield describe_proposal(data["command"], data["arguments"], settings)
    if event_type == "verdict":
        yield data["finding"]["verdict"] if data["finding"] else "in progress again"
        if data["supersedes"] is not None:
            yield f"in place of event {data['supersedes']:,}"
    if data.get("why"):
        yield data["why"]
