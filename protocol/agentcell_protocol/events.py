"""The events a cell writes before its result. They are plain dicts: validating each would cost more than
writing it."""

from typing import Any, Literal

from typing_extensions import TypedDict

from agentcell_protocol.cell import Start
from agentcell_protocol.result import Status


class Hello(TypedDict):
    """The first line. `start` is how the cell came to be; `cli` the CLI's path or null."""

    type: Literal["hello"]
    protocol: int
    pid: int
    agentcell: str
    sdk: str
    cli: str | None
    start: Start


class SessionStarted(TypedDict):
    """The CLI has begun; from here on the session can be resumed by its id."""

    type: Literal["session_started"]
    session_id: str
    model: str | None


class Text(TypedDict):
    """A whole block of the model's text."""

    type: Literal["text"]
    text: str


class TextDelta(TypedDict):
    """A piece of a block as it streams; only with `events: full`. Empty for a piece of what is not text."""

    type: Literal["text_delta"]
    text: str


class ToolUse(TypedDict):
    """`input` is shortened unless `events: full`."""

    type: Literal["tool_use"]
    id: str
    name: str
    input: dict[str, Any]


class ToolResult(TypedDict):
    """`bytes` is the size of what the tool gave back."""

    type: Literal["tool_result"]
    id: str
    is_error: bool
    bytes: int


class ApiRetry(TypedDict):
    """The CLI will ask the API again after `delay_s` seconds; `http_status` is null without an answer."""

    type: Literal["api_retry"]
    attempt: int
    max_retries: int
    delay_s: float
    http_status: int | None
    error: str | None


class RateLimit(TypedDict):
    """`resets_at` is in Unix seconds."""

    type: Literal["rate_limit"]
    status: str
    resets_at: int | None


class PermissionDenied(TypedDict):
    """A tool call that was not permitted; the session goes on."""

    type: Literal["permission_denied"]
    tool_name: str
    tool_use_id: str


class UsageSoFar(TypedDict):
    """Running totals."""

    type: Literal["usage"]
    input_tokens: int
    output_tokens: int
    cache_creation_input_tokens: int
    cache_read_input_tokens: int


class Warned(TypedDict):
    """Something odd that did not end the session; the result lists it too."""

    type: Literal["warning"]
    code: str
    message: str


class Check(TypedDict):
    """A flow does something itself, such as running tests, which may be silent for long; `name` says what."""

    type: Literal["check"]
    name: str
    state: Literal["started", "ended"]


class SessionEnded(TypedDict):
    """One session of a flow was answered, or failed; what follows is the flow's own work, or its next session."""

    type: Literal["session_ended"]
    session_id: str | None
    status: Status


class Outcome(TypedDict):
    """The result so far, as soon as it is known, before clean-up: `result` has the result's members."""

    type: Literal["outcome"]
    result: dict[str, Any]


Event = (
    Hello
    | SessionStarted
    | Text
    | TextDelta
    | ToolUse
    | ToolResult
    | ApiRetry
    | RateLimit
    | PermissionDenied
    | UsageSoFar
    | Warned
    | Check
    | SessionEnded
    | Outcome
)

Detail = Literal["none", "summary", "full"]

FULL_ONLY = frozenset({"text_delta"})
"""Event types that `summary` leaves out."""


def is_wanted(event_type: str, detail: Detail) -> bool:
    """Whether a reader that asked for `detail` gets events of this type."""
    return detail == "full" or (detail == "summary" and event_type not in FULL_ONLY)
