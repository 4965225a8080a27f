"""What can go wrong with a session, as data, and the mistakes a caller can make, as exceptions.

ValueError
├── RequestError    the request is not one the protocol knows
└── WireError       a line is not a message: not JSON, or not an object
"""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from agentcell_protocol.model import Frozen


class Category(StrEnum):
    """Why a session ended with status `error`."""

    # the API
    AUTHENTICATION = "authentication"
    BILLING = "billing"
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    SERVER_ERROR = "server_error"
    NETWORK = "network"
    INVALID_REQUEST = "invalid_request"
    MODEL_NOT_FOUND = "model_not_found"
    CONTEXT_OVERFLOW = "context_overflow"
    # the session
    MAX_TURNS = "max_turns"
    MAX_BUDGET = "max_budget"
    MAX_OUTPUT_TOKENS = "max_output_tokens"
    NO_RESULT = "no_result"
    EMPTY_RESPONSE = "empty_response"
    STRUCTURED_OUTPUT = "structured_output"
    REFUSAL = "refusal"
    UNKNOWN_SESSION = "unknown_session"
    DELIVERABLE = "deliverable"
    # the CLI
    CLI_NOT_FOUND = "cli_not_found"
    CLI_FAILED = "cli_failed"
    PERMISSION_MODE = "permission_mode"
    # the host
    TIMEOUT = "timeout"
    MEMORY_LIMIT = "memory_limit"
    LIMIT_EXCEEDED = "limit_exceeded"
    CRASHED = "crashed"
    SPAWN_FAILED = "spawn_failed"
    HOST_LOST = "host_lost"
    PROTOCOL = "protocol"
    CANCELLED = "cancelled"
    # the request, and ourselves
    BAD_REQUEST = "bad_request"
    INTERNAL = "internal"


RETRYABLE = frozenset(
    {
        Category.RATE_LIMIT,
        Category.OVERLOADED,
        Category.SERVER_ERROR,
        Category.NETWORK,
        Category.NO_RESULT,
        Category.CLI_FAILED,
        Category.CRASHED,
        Category.SPAWN_FAILED,
        Category.HOST_LOST,
    }
)
"""Categories of which another attempt may end better whatever the details are."""

RETRYABLE_LIMITS = frozenset({"startup", "idle"})
"""The values of `details.limit` with which a timeout may be retried; a wall limit would only be met again."""


class SessionError(Frozen):
    """The `error` of a result.

    `retry_after_s` is in seconds. `partial_response` is the text the session had given until then.
    `details` holds what the category measures: `limit` of a timeout, `member` of a bad request, `signal`
    of a cancelled session, and so on.
    """

    category: Annotated[Category, Field(strict=False)]
    message: str
    retryable: bool = False
    hint: str | None = None
    http_status: int | None = None
    retry_after_s: float | None = None
    partial_response: str | None = None
    details: dict[str, Any] = {}

    def __str__(self) -> str:
        """The message and what to do about it, for people."""
        return self.message if self.hint is None or self.hint in self.message else f"{self.message}; {self.hint}"


def is_retryable(category: Category, details: dict[str, Any]) -> bool:
    """Whether another attempt at the same request may end better."""
    if category is Category.TIMEOUT:
        return details.get("limit") in RETRYABLE_LIMITS
    return category in RETRYABLE


def session_error(
    category: Category,
    message: str,
    *,
    hint: str | None = None,
    http_status: int | None = None,
    retry_after_s: float | None = None,
    partial_response: str | None = None,
    **details: Any,
) -> SessionError:
    """A `SessionError` whose `retryable` follows from its category and details."""
    return SessionError(
        category=category,
        message=message,
        retryable=is_retryable(category, details),
        hint=hint,
        http_status=http_status,
        retry_after_s=retry_after_s,
        partial_response=partial_response,
        details=details,
    )


def internal_error(unexpected: BaseException) -> SessionError:
    """The error of a mistake in agentcell; an exception that came alone in a group is named itself."""
    while isinstance(unexpected, BaseExceptionGroup) and len(unexpected.exceptions) == 1:
        unexpected = unexpected.exceptions[0]
    return session_error(
        Category.INTERNAL,
        f"{type(unexpected).__name__}: {unexpected}",
        hint="this is a mistake in agentcell; the traceback is on stderr",
    )


class RequestError(ValueError):
    """A request that the protocol refuses.

    `member` is the name of the member at fault (None when the request as a whole is), `reason` what is
    wrong with it, `remedy` what to do.
    """

    def __init__(self, member: str | None, reason: str, remedy: str) -> None:
        self.member = member
        self.reason = reason
        self.remedy = remedy
        subject = "the request" if member is None else member
        super().__init__(f"{subject}: {reason}; {remedy}")

    def __reduce__(self) -> tuple[type["RequestError"], tuple[str | None, str, str]]:
        """Pickled by its fields, so that it crosses a process pool."""
        return type(self), (self.member, self.reason, self.remedy)

    def as_session_error(self) -> SessionError:
        """The same, as the `error` of a result."""
        return session_error(Category.BAD_REQUEST, str(self), hint=self.remedy, member=self.member, reason=self.reason)

    @classmethod
    def from_session_error(cls, error: SessionError) -> "RequestError":
        """The exception that a `bad_request` result carries, whoever refused the request."""
        member, reason = error.details.get("member"), error.details.get("reason")
        return cls(
            member if isinstance(member, str) else None,
            reason if isinstance(reason, str) else error.message,
            error.hint or "see docs/protocol.md",
        )


class WireError(ValueError):
    """Bytes that are no message: not JSON, nested too deep, or not an object.

    `is_cut` says that the line ends before its JSON does.
    """

    def __init__(self, text: str, *, is_cut: bool = False) -> None:
        super().__init__(text)
        self.is_cut = is_cut
