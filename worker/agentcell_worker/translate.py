"""The SDK's messages as the events of the wire. Pure; messages are told apart by the name of their class."""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from agentcell_protocol.result import COST_DIGITS
from agentcell_worker.outcome import TurnEnd

SYNTHETIC = "<synthetic>"
"""The model of a message that the CLI wrote itself, to report a failure in prose."""

SERVING = frozenset({"connected", "disabled"})
"""Statuses of an MCP server that is as its configuration has it; the CLI waits for those that are still starting."""

TERMINAL_TASK_STATUSES = frozenset({"completed", "failed", "stopped", "killed"})

MAX_COUNT = 2**53
"""The largest number that every reader of JSON takes for itself; the CLI counts nothing as far."""

COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")

Event = dict[str, Any]


def events_of(message: Any) -> list[Event]:
    """The events that tell of a message; none for what the wire has no event for."""
    translate = _BY_CLASS.get(type(message).__name__)
    return translate(message) if translate else []


def turn_end_of(message: Any) -> TurnEnd | None:
    """What a result message says, None for any other message."""
    if type(message).__name__ != "ResultMessage":
        return None
    return TurnEnd(
        subtype=_text(message.subtype) or "",
        is_error=bool(message.is_error),
        terminal_reason=_text(message.terminal_reason),
        http_status=_count(message.api_error_status) or None,
        stop_reason=_text(message.stop_reason),
        text=_text(message.result),
        structured_output=message.structured_output,
        num_turns=_count(message.num_turns),
        cost_usd=_cost(message.total_cost_usd),
        usage=counts_of(message.usage),
        session_id=_text(message.session_id),
        denials=tuple(_denials(message.permission_denials)),
        errors=tuple(str(error) for error in _items(message.errors)),
        answers=_answers(message),
    )


def texts_of(message: Any) -> list[str]:
    """The text blocks of an assistant message."""
    return [_text(block.text) or "" for block in message.content if type(block).__name__ == "TextBlock"]


def api_error_of(message: Any) -> str | None:
    """The CLI's name for the failed API call that an assistant message reports."""
    return _text(message.error)


def task_change_of(message: Any) -> tuple[str, str | None] | None:
    """The id of a background task that began or ended, with its description when it began."""
    match type(message).__name__:
        case "TaskStartedMessage":
            return str(message.task_id), str(message.description)
        case "TaskNotificationMessage" | "TaskUpdatedMessage" if str(message.status) in TERMINAL_TASK_STATUSES:
            return str(message.task_id), None
        case _:
            return None


def causes_a_turn(message: Any) -> bool:
    """Whether the end of a background task, as this message tells it, wakes the model; stopping one does not."""
    return type(message).__name__ == "TaskNotificationMessage" or str(message.status) in {"completed", "failed"}


def is_spoken(message: Any) -> bool:
    """Whether the model itself wrote it, on its own turn and not as somebody's subagent."""
    is_assistant = type(message).__name__ == "AssistantMessage"
    return is_assistant and message.model != SYNTHETIC and message.parent_tool_use_id is None


def counts_of(usage: object) -> dict[str, int]:
    """The four token counts of a usage object; what is missing counts as none."""
    counts = usage if isinstance(usage, Mapping) else {}
    return {name: _count(counts.get(name)) for name in COUNTS}


def _count(value: object) -> int:
    """A count, none where the CLI has put something else; so it is with the types of all that it says."""
    return value if isinstance(value, int) and 0 <= value <= MAX_COUNT else 0


def _amount(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) <= MAX_COUNT else None


def _cost(value: object) -> float | None:
    amount = _amount(value)
    return None if amount is None else round(amount, COST_DIGITS)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _answers(message: Any) -> tuple[str, ...]:
    ids = _items(message.user_message_uuids) or [message.user_message_uuid]
    return tuple(uuid for uuid in ids if isinstance(uuid, str))


def _denials(denials: Any) -> list[tuple[str, str]]:
    found = [denial for denial in _items(denials) if isinstance(denial, Mapping)]
    return [(str(denial.get("tool_name", "")), str(denial.get("tool_use_id", ""))) for denial in found]


def _system(message: Any) -> list[Event]:
    data = message.data
    match message.subtype:
        case "init":
            return [_session_started(data), *_servers_missed(data)]
        case "api_retry":
            return [_api_retry(data)]
        case "permission_denied":
            name, use = str(data.get("tool_name", "")), str(data.get("tool_use_id", ""))
            return [{"type": "permission_denied", "tool_name": name, "tool_use_id": use}]
        case _:
            return []


def _session_started(data: Mapping[str, Any]) -> Event:
    return {
        "type": "session_started",
        "session_id": _text(data.get("session_id")),
        "model": _text(data.get("model")),
    }


def _servers_missed(data: Mapping[str, Any]) -> list[Event]:
    """A warning for each MCP server that the session has to do without."""
    told = [server for server in _items(data.get("mcp_servers")) if isinstance(server, Mapping)]
    return [
        {
            "type": "warning",
            "code": "mcp_server",
            "message": f"the MCP server {server.get('name')} is not connected ({status})",
        }
        for server in told
        if (status := _text(server.get("status"))) is not None and status not in SERVING
    ]


def _api_retry(data: Mapping[str, Any]) -> Event:
    return {
        "type": "api_retry",
        "attempt": _count(data.get("attempt")),
        "max_retries": _count(data.get("max_retries")),
        "delay_s": (_amount(data.get("retry_delay_ms")) or 0) / 1000,
        "http_status": _count(data.get("error_status")) or None,
        "error": _text(data.get("error")),
    }


def _assistant(message: Any) -> list[Event]:
    events: list[Event] = []
    for block in message.content:
        match type(block).__name__:
            case "TextBlock" if is_spoken(message):
                events.append({"type": "text", "text": _text(block.text) or ""})
            case "ToolUseBlock" | "ServerToolUseBlock":
                events.append({"type": "tool_use", "id": block.id, "name": block.name, "input": block.input})
            case "ServerToolResultBlock":
                events.append(_tool_result(block.tool_use_id, [block.content]))
    return events


def _user(message: Any) -> list[Event]:
    blocks = message.content if isinstance(message.content, list) else []
    return [
        _tool_result(block.tool_use_id, block.content, is_error=bool(block.is_error))
        for block in blocks
        if type(block).__name__ == "ToolResultBlock"
    ]


def _tool_result(tool_use_id: str, content: Any, *, is_error: bool = False) -> Event:
    return {"type": "tool_result", "id": tool_use_id, "is_error": is_error, "bytes": _size(content)}


def _size(content: Any) -> int:
    match content:
        case None:
            return 0
        case str():
            return len(content.encode("utf-8", "surrogatepass"))
        case list():
            return sum(map(_part_size, content))
        case _:
            return _encoded(content)


def _part_size(part: Any) -> int:
    is_text = isinstance(part, Mapping) and part.get("type") == "text"
    return _size(part.get("text")) if is_text else _encoded(part)


def _encoded(part: Any) -> int:
    try:
        return len(orjson.dumps(part))
    except orjson.JSONEncodeError:
        return len(str(part))


def _stream(message: Any) -> list[Event]:
    """A piece of text; an empty one for a piece of anything else, so that its reader sees that the model works."""
    event = message.event if isinstance(message.event, Mapping) else {}
    if event.get("type") != "content_block_delta" or message.parent_tool_use_id is not None:
        return []
    match event.get("delta"):
        case {"type": "text_delta", "text": str(text)}:
            return [{"type": "text_delta", "text": text}]
        case _:
            return [{"type": "text_delta", "text": ""}]


def _rate_limit(message: Any) -> list[Event]:
    info = message.rate_limit_info
    return [{"type": "rate_limit", "status": _text(info.status) or "", "resets_at": _count(info.resets_at) or None}]


_BY_CLASS: dict[str, Callable[[Any], list[Event]]] = {
    "SystemMessage": _system,
    "AssistantMessage": _assistant,
    "UserMessage": _user,
    "StreamEvent": _stream,
    "RateLimitEvent": _rate_limit,
}
