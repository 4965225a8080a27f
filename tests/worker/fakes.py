"""A client without a CLI."""

from collections.abc import AsyncIterator, Iterable
from typing import Any, Self

from claude_agent_sdk import ClaudeAgentOptions


class FakeClient:
    """Gives its messages in answer to a prompt. What is an exception is raised."""

    def __init__(self, messages: Iterable[Any], options: ClaudeAgentOptions | None = None) -> None:
        self.options = options or ClaudeAgentOptions()
        self._messages = list(messages)
        self._prompts: list[dict[str, Any]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def query(self, prompt: AsyncIterator[dict[str, Any]]) -> None:
        """Take a prompt."""
        self._prompts += [message async for message in prompt]

    async def receive_response(self) -> AsyncIterator[Any]:
        """The messages up to a result."""
        while self._messages:
            message = self._messages.pop(0)
            if isinstance(message, Exception):
                raise message
            yield message
            if type(message).__name__ == "ResultMessage":
                return
