"""The result of a session, put together from what is known when it ends."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agentcell_protocol.credentials import HINT
from agentcell_protocol.errors import Category, SessionError
from agentcell_protocol.request import SessionRequest
from agentcell_protocol.result import SECONDS_DIGITS, Notice, SessionResult, Status, Usage
from agentcell_worker.progress import Progress
from agentcell_worker.trace import Trace


@dataclass(frozen=True)
class Report:
    """What every result of a request has in common. `began` is in seconds of the monotonic clock.

    `mask` keeps secrets out of errors and warnings.
    """

    request: SessionRequest
    auth_source: str | None = None
    notices: tuple[Notice, ...] = ()
    mask: Callable[[str], str] = str
    began: float = field(default_factory=time.monotonic)

    def of(self, status: Status, response: str, usage: dict[str, int], trace: Trace) -> SessionResult:
        """The result of a session that ended by itself."""
        error = self._explained(trace.error)
        return SessionResult(
            status=status,
            response=error.message if error else response,
            error=error,
            session_id=trace.session_id,
            model=trace.model or self.request.model,
            usage=Usage(**usage),
            cost_usd=trace.cost_usd,
            num_turns=trace.num_turns,
            stop_reason=trace.stop_reason,
            tool_calls=trace.tool_calls,
            permission_denials=list(trace.permission_denials),
            warnings=[*self.notices, *trace.warnings],
            structured_output=trace.structured_output,
            **self._common(trace.waited_seconds),
        ).masked(self.mask)

    def failed(self, error: SessionError, *, session_id: str | None = None) -> SessionResult:
        """The result of a session that never began."""
        return self.cut(error, Progress(), session_id=session_id)

    def cut(self, error: SessionError, progress: Progress, *, session_id: str | None = None) -> SessionResult:
        """The result of a session that was cut off, as far as its events told."""
        progress.settle(time.monotonic())
        return SessionResult(
            status="error",
            response=error.message,
            error=error,
            session_id=progress.session_id or session_id or self.request.session_id or self.request.resume,
            model=progress.model or self.request.model,
            usage=progress.usage,
            tool_calls=progress.tool_calls,
            permission_denials=progress.denials,
            warnings=[*self.notices, *progress.notices],
            **self._common(progress.waited_seconds),
        ).masked(self.mask)

    def _explained(self, error: SessionError | None) -> SessionError | None:
        """Nobody refused credentials that were not there; the message, all that some read, says what to do."""
        if error is None or error.category is not Category.AUTHENTICATION or self.auth_source is not None:
            return error
        return error.model_copy(update={"message": f"there are no credentials for the API; {HINT}", "hint": HINT})

    def _common(self, waited: float) -> dict[str, Any]:
        elapsed = time.monotonic() - self.began
        return {
            "session_name": self.request.session_name,
            "id": self.request.identity,
            "agent_type": self.request.agent_type,
            "auth_source": self.auth_source,
            "execution_time": round(elapsed, SECONDS_DIGITS),
            "working_time": round(max(0.0, elapsed - waited), SECONDS_DIGITS),
        }
