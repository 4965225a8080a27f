"""How far a session has come, told from its events alone."""

from collections.abc import Mapping
from typing import Any

from agentcell_protocol.result import Denial, Notice, Usage
from agentcell_protocol.text import Text

WAITING_STATUSES = frozenset({429, 529})
"""HTTP statuses after which the wait is not work: rate limits and overload."""


class Progress:
    """A fold over the events of one session, good enough for a result when the session is cut off."""

    def __init__(self) -> None:
        self.session_id: str | None = None
        self.model: str | None = None
        self.usage = Usage()
        self.tool_calls = 0
        self.denials: list[Denial] = []
        self.notices: list[Notice] = []
        self.waited_seconds = 0.0
        self._text = Text()
        self._wait: tuple[float, float] | None = None

    @property
    def text(self) -> str:
        """What the session has said, a block that is still streaming included."""
        return str(self._text)

    def note(self, event: Mapping[str, Any], now: float) -> None:
        """Take one event into account; `now` is in seconds of a monotonic clock."""
        self.settle(now)
        match event["type"]:
            case "session_started":
                self.session_id, self.model = event["session_id"], event["model"]
            case "text":
                self._text.add_block(event["text"])
            case "text_delta":
                self._text.add_piece(event["text"])
            case "tool_use":
                self.tool_calls += 1
            case "usage":
                self.usage = Usage(**{name: event[name] for name in Usage.model_fields})
            case "permission_denied":
                self.denials.append(Denial(tool_name=event["tool_name"], tool_use_id=event["tool_use_id"]))
            case "warning":
                self.notices.append(Notice(code=event["code"], message=event["message"]))
            case "api_retry" if event["http_status"] in WAITING_STATUSES:
                self._wait = (now, event["delay_s"])

    def settle(self, now: float) -> None:
        """Count the wait that was announced last, as far as it has passed."""
        if self._wait is not None:
            began, announced = self._wait
            self.waited_seconds += min(announced, max(0.0, now - began))
            self._wait = None
