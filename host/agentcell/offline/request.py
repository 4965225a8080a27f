"""A request to the offline model, as it was asked."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

SESSION_HEADER = "x-claude-code-session-id"
AGENT_HEADER = "x-claude-code-agent-id"

SECRET_HEADERS = frozenset({"x-api-key", "authorization", "proxy-authorization", "cookie"})
MASK = "***"

REMINDER = "<system-reminder>"
"""Begins the text that the CLI itself puts into a user's message."""

Kind = Literal["turn", "title", "search", "other"]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What was asked of the endpoint.

    `kind` is `turn` for a step of a conversation, `title` and `search` for what the CLI asks beside it, `other`
    for everything that is not sent to the messages API. `turn` counts the steps of a conversation from 1;
    `agent_id` is that of a subagent. The values of secret headers are masked, `body` is empty if there was none.
    """

    method: str
    path: str
    kind: Kind
    session_id: str | None
    agent_id: str | None
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    turn: int | None = None

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body.get("messages", []))

    @property
    def system(self) -> str:
        """The system prompt, its blocks joined by line ends."""
        return _text(self.body.get("system", ""))

    @property
    def prompt(self) -> str:
        """Everything the user said so far, joined by line ends, without the reminders of the CLI."""
        said = (_text(message.get("content", "")) for message in self.messages if message.get("role") == "user")
        return "\n".join(text for text in said if text)

    @property
    def is_streamed(self) -> bool:
        return self.body.get("stream") is True


def read_request(
    method: str, path: str, headers: Mapping[str, str], body: Mapping[str, Any], *, is_message: bool
) -> ModelRequest:
    """The request with these lower-case headers; `is_message` says that it was sent to the messages API."""
    return ModelRequest(
        method=method,
        path=path,
        kind=_kind(body) if is_message else "other",
        session_id=_session_id(headers, body),
        agent_id=headers.get(AGENT_HEADER),
        headers={name: MASK if name in SECRET_HEADERS else value for name, value in headers.items()},
        body=body,
    )


def _kind(body: Mapping[str, Any]) -> Kind:
    """What the CLI asks beside a conversation brings only tools that the API itself runs, or no tools and the
    format of the answer; the schema of a session's own answer comes as a tool."""
    tools = body.get("tools") or []
    if tools and all(tool.get("type", "custom") != "custom" for tool in tools):
        return "search"
    if not tools and (body.get("output_config") or {}).get("format"):
        return "title"
    return "turn"


def _session_id(headers: Mapping[str, str], body: Mapping[str, Any]) -> str | None:
    try:
        return str(json.loads(body["metadata"]["user_id"])["session_id"])
    except (KeyError, TypeError, ValueError):
        return headers.get(SESSION_HEADER)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = [block["text"] for block in content if block.get("type") == "text"]
    return "\n".join(text for text in texts if not text.startswith(REMINDER))
