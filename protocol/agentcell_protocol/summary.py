"""What a reader who asked for a summary gets of long things."""

from collections.abc import Mapping
from typing import Any

SUMMARY_CHARACTERS = 200
"""Of each string in a tool's input."""

SUMMARY_ITEMS = 20
"""Of each list or object in a tool's input."""

SUMMARY_DEPTH = 4
"""Levels of a tool's input."""

CUT = "…"


def summarized(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """The event as `events: summary` has it: the input of a tool is shortened."""
    return {**event, "input": shorten(event.get("input"))} if event.get("type") == "tool_use" else event


def shorten(value: Any, depth: int = 0) -> Any:
    """A tool's input for a reader who wants to see what happens, not everything that passes."""
    match value:
        case str() if len(value) > SUMMARY_CHARACTERS:
            return value[:SUMMARY_CHARACTERS] + CUT
        case dict() | list() if depth >= SUMMARY_DEPTH and value:
            return CUT
        case dict():
            return {key: shorten(item, depth + 1) for key, item in list(value.items())[:SUMMARY_ITEMS]}
        case list():
            return [shorten(item, depth + 1) for item in value[:SUMMARY_ITEMS]]
        case _:
            return value
