"""What a person at a terminal is shown: the text of lines, without where they go.

What a model or a tool wrote can hold escape sequences that drive the terminal; none of them gets through here.
"""

import re
from collections.abc import Mapping
from typing import Any

from agentcell_protocol.errors import SessionError
from agentcell_protocol.result import SessionResult, Usage

MAX_TOOL_LINE = 100
"""Characters of a tool call that are shown: a line of a usual terminal, and a bit."""

TELLING_INPUTS = ("command", "file_path", "notebook_path", "path", "pattern", "url", "query", "description", "prompt")
"""Members of a tool's input that say what it does, the most telling first."""

_ESCAPE_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC, DCS, SOS, PM, APC: title, clipboard, links
    r"|\x1b[ -/]*[0-~]"  # the short ones
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def without_escapes(text: str) -> str:
    """The text with line ends and tabs, but with nothing else that a terminal or a reader's eye obeys."""
    return _CONTROL.sub("", _ESCAPE_SEQUENCE.sub("", text))


def one_line(text: str) -> str:
    """The text on one line, with nothing that a terminal obeys."""
    return " ".join(without_escapes(text).split())


def tool_line(event: Mapping[str, Any]) -> str:
    """A `tool_use` event: the tool, and what of its input says most."""
    given = event.get("input", {})
    telling = next((given[name] for name in TELLING_INPUTS if isinstance(given.get(name), str)), "")
    line = one_line(f"{event.get('name')}  {telling}")
    return line if len(line) <= MAX_TOOL_LINE else line[: MAX_TOOL_LINE - 1] + "…"


def event_line(event: Mapping[str, Any]) -> str | None:
    """What happened meanwhile, for those who asked for it; None for events that are shown in another way."""
    match event:
        case {"type": "hello", "pid": pid, "start": start, "agentcell": version, "sdk": sdk}:
            line = f"cell {pid} ({start} start): agentcell {version}, SDK {sdk}"
        case {"type": "session_started", "session_id": session_id, "model": model}:
            line = f"session {session_id} with {model or 'the default model'}"
        case {"type": "api_retry", "delay_s": delay_s, "attempt": attempt, "max_retries": most}:
            reason = event.get("http_status") or event.get("error") or "no answer"
            line = f"the API failed ({reason}), asking again in {delay_s:.0f} s ({attempt} of {most})"
        case {"type": "rate_limit", "status": status}:
            line = f"rate limit: {status}"
        case {"type": "permission_denied", "tool_name": tool}:
            line = f"not permitted: {tool}"
        case {"type": "check", "name": name, "state": "started"}:
            line = f"check: {name}"
        case {"type": "tool_use"}:
            line = f"• {tool_line(event)}"
        case _:
            return None
    return one_line(line)


def warning_lines(result: SessionResult) -> list[str]:
    """Each of a result's warnings."""
    return [one_line(f"warning ({warning.code}): {warning.message}") for warning in result.warnings]


def error_lines(error: SessionError) -> list[str]:
    """Category and message, and the hint if there is one."""
    lines = [f"error ({error.category}): {without_escapes(error.message)}"]
    if error.hint and error.hint not in error.message:
        lines.append(f"hint: {without_escapes(error.hint)}")
    return lines


def closing_line(result: SessionResult) -> str:
    """Status, turns, tokens, cost and time."""
    turns = f"{result.num_turns} {'turn' if result.num_turns == 1 else 'turns'}"
    cost = "cost unknown" if result.cost_usd is None else f"${result.cost_usd:.4f}"
    return " · ".join((result.status, turns, _tokens(result.usage), cost, f"{result.execution_time:.1f} s"))


def _tokens(usage: Usage) -> str:
    read = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens
    return f"{read:,} tokens in, {usage.output_tokens:,} out"
