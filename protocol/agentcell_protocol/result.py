"""The result: the last line of a cell, and what a host returns."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

from pydantic import model_validator

from agentcell_protocol.cell import Start
from agentcell_protocol.errors import RequestError, SessionError
from agentcell_protocol.masking import masked
from agentcell_protocol.members import MAX_NAME
from agentcell_protocol.model import Frozen
from agentcell_protocol.version import PROTOCOL

Status = Literal["complete", "continue", "error"]

SECONDS_DIGITS = 3
"""Of what took seconds: nothing here is measured more finely."""

COST_DIGITS = 9
"""Of a cost in dollars: a token costs a millionth, and what is added up gets digits of its own."""


class Usage(Frozen):
    """Tokens, added up over everything a session (or all attempts at it) sent."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in Usage.model_fields})


class Notice(Frozen):
    """A warning: `code` is for programs, `message` for people."""

    code: str
    message: str


class Denial(Frozen):
    """A tool call that was not permitted."""

    tool_name: str
    tool_use_id: str


class Attempt(Frozen):
    """One cell that tried to run the session. `execution_time` is in seconds, `signal` a name such as SIGKILL."""

    number: int
    mode: Literal["fresh", "resumed"] = "fresh"
    status: Status
    error: SessionError | None = None
    usage: Usage = Usage()
    cost_usd: float | None = None
    session_id: str | None = None
    exit_code: int | None = None
    signal: str | None = None
    execution_time: float = 0.0


class SessionResult(Frozen):
    """How a session ended. `error` is null exactly when `status` is not `error`; then `response` is its message.

    `execution_time` and `working_time` (without the waits on rate limits and overload) are in seconds,
    `cost_usd` is null when unknown, `peak_memory_mb` is the resident size of the whole tree.
    """

    status: Status
    response: str
    session_name: str | None
    type: Literal["result"] = "result"
    protocol: int = PROTOCOL
    id: str | None = None
    agent_type: str | None = None
    error: SessionError | None = None
    session_id: str | None = None
    model: str | None = None
    usage: Usage = Usage()
    cost_usd: float | None = None
    num_turns: int = 0
    stop_reason: str | None = None
    execution_time: float = 0.0
    working_time: float = 0.0
    tool_calls: int = 0
    permission_denials: list[Denial] = []
    warnings: list[Notice] = []
    flow: Any = None
    structured_output: Any = None
    swept_processes: int = 0
    auth_source: str | None = None
    transcript: str | None = None
    # what only a host knows
    attempts: list[Attempt] = []
    exit_code: int | None = None
    signal: str | None = None
    violated_limits: list[str] = []
    peak_memory_mb: float | None = None
    stderr_tail: str | None = None
    start: Start | None = None

    @model_validator(mode="after")
    def _error_is_there_when_it_must(self) -> Self:
        if (self.error is None) == (self.status == "error"):
            raise ValueError(f"status is {self.status!r} and error is {self.error!r}")
        return self

    def as_error(self, error: SessionError) -> "SessionResult":
        """The same session, ended by `error`; what it had said stays as the error's `partial_response`."""
        if error.partial_response is None and self.status != "error":
            error = error.model_copy(update={"partial_response": self.response or None})
        return self.model_copy(update={"status": "error", "response": error.message, "error": error})

    def noting(self, *notices: Notice) -> "SessionResult":
        """The result with these warnings, too."""
        return self.model_copy(update={"warnings": [*self.warnings, *notices]})

    def masked(self, mask: Callable[[str], str]) -> "SessionResult":
        """The result with `mask` applied to what is said about the session; what the session itself said stays."""
        error = self.error and _masked(self.error, mask)
        told = {
            "error": error,
            "response": error.message if error else self.response,
            "warnings": [one.model_copy(update={"message": mask(one.message)}) for one in self.warnings],
            "attempts": [
                one.model_copy(update={"error": one.error and _masked(one.error, mask)}) for one in self.attempts
            ],
        }
        return self.model_copy(update=told)

    def to_message(self, *, hosted: bool = True) -> dict[str, Any]:
        """The members in the order of the wire; `hosted=False` leaves out what only a host knows."""
        return self.model_dump(exclude=None if hosted else set(HOST_MEMBERS))


def _masked(error: SessionError, mask: Callable[[str], str]) -> SessionError:
    told = {"message": error.message, "hint": error.hint, "details": error.details}
    return error.model_copy(update=masked(told, mask))


HOST_MEMBERS = (
    "attempts",
    "exit_code",
    "signal",
    "violated_limits",
    "peak_memory_mb",
    "stderr_tail",
    "start",
)
"""The members that a bare cell does not send."""


def failed(error: SessionError, **members: Any) -> SessionResult:
    """The result of a session that ended with `error`; `members` are the others that are known."""
    return SessionResult(status="error", response=error.message, error=error, **{"session_name": None, **members})


def refused(error: RequestError, message: Mapping[str, Any]) -> SessionResult:
    """The result of a request that is refused, which costs nothing; it says whose, as far as its `message` does."""
    return failed(error.as_session_error(), **names_in(message), cost_usd=0.0)


def names_in(message: Mapping[str, Any]) -> dict[str, str]:
    """What a request that may not be one says of itself, as the members that come back in its result.

    What is longer than any name is none, and is not repeated.
    """
    return {name: value for name in NAMING if isinstance(value := message.get(name), str) and len(value) <= MAX_NAME}


NAMING = ("session_name", "id", "agent_type")
"""The members of a request that come back in its result."""
