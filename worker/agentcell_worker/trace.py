"""What a session leaves behind beside its status, response and usage."""

from dataclasses import dataclass
from typing import Any

from agentcell_protocol.errors import SessionError
from agentcell_protocol.result import Denial, Notice


@dataclass(frozen=True)
class Trace:
    """How a session went. `error` is None for a success, `cost_usd` None when unknown.

    `must_end_now` says that the CLI still works and is to be ended rather than left to finish.
    `waited_seconds` were spent on rate limits and overload.
    """

    error: SessionError | None = None
    session_id: str | None = None
    model: str | None = None
    cost_usd: float | None = None
    num_turns: int = 0
    stop_reason: str | None = None
    tool_calls: int = 0
    permission_denials: tuple[Denial, ...] = ()
    warnings: tuple[Notice, ...] = ()
    structured_output: Any = None
    must_end_now: bool = False
    waited_seconds: float = 0.0
