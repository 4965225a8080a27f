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

MAX_LISTED = 5
"""Files, or issues, that are shown of each list: all of them are in the result."""

TOLD_ELSEWHERE = frozenset({"error", "session_ids", "coverage_percent", "coverage_percent_before"})
"""Members of a flow that do not have a line of their own."""

MAX_FINDING = 500
"""Characters of a line about what a flow made; a reason that a check gives has as many."""

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
    return _cut(one_line(f"{event.get('name')}  {telling}"), MAX_TOOL_LINE)


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


def flow_lines(flow: object) -> list[str]:
    """What a flow made and found out: its files, numbers and issues, a few of each; nothing without a flow."""
    if not isinstance(flow, Mapping):
        return []
    found = [line for name, value in flow.items() for line in _findings(name, value)]
    if (percent := flow.get("coverage_percent")) is not None:
        before = flow.get("coverage_percent_before")
        found.append(f"coverage: {percent} %" if before is None else f"coverage: {before} % → {percent} %")
    return [_cut(one_line(line), MAX_FINDING) for line in found]


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


def _findings(name: str, value: object) -> list[str]:
    """The lines for one member of a flow; none for what is told elsewhere, or is of no kind that fits on a line."""
    title = name.replace("_", " ")
    match value:
        case {"issues": [*issues]}:
            more = len(issues) - MAX_LISTED
            return [*(f"issue: {issue}" for issue in issues[:MAX_LISTED]), *[f"and {more} more issues"] * (more > 0)]
        case _ if name in TOLD_ELSEWHERE or not value or isinstance(value, bool):
            return []
        case [str(), *_] as listed:
            more = len(listed) - MAX_LISTED
            return [f"{title}: {', '.join(map(str, listed[:MAX_LISTED]))}" + f" and {more} more" * (more > 0)]
        case str() | int() | float():
            return [f"{title}: {value}"]
    return []


def _cut(line: str, most: int) -> str:
    return line if len(line) <= most else line[: most - 1] + "…"


def _tokens(usage: Usage) -> str:
    read = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens
    return f"{read:,} tokens in, {usage.output_tokens:,} out"
