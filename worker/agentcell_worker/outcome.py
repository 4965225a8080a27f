"""What ended, judged: success or the category of its failure. Pure, and never from prose."""

from dataclasses import dataclass, field
from typing import Any

from agentcell_protocol.credentials import HINT
from agentcell_protocol.errors import Category, SessionError, session_error
from agentcell_protocol.exitcodes import signal_name
from agentcell_protocol.result import Notice
from agentcell_protocol.text import PARTIAL_CHARACTERS


@dataclass(frozen=True)
class TurnEnd:
    """What the CLI said at the end of a turn. `answers` are the ids of the prompts it answered."""

    subtype: str
    is_error: bool
    num_turns: int
    terminal_reason: str | None = None
    http_status: int | None = None
    stop_reason: str | None = None
    text: str | None = None
    structured_output: Any = None
    cost_usd: float | None = None
    usage: dict[str, int] = field(default_factory=dict)
    session_id: str | None = None
    denials: tuple[tuple[str, str], ...] = ()
    errors: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Seen:
    """What the session showed before its turn ended.

    `response` is the text that would be the answer, `partial` everything it said, `api_error` the CLI's
    name for a failed API call. The `asked_` members are what the request asked for, `carried_cost_usd` is what a
    conversation that is resumed had cost before.
    """

    response: str = ""
    partial: str = ""
    tool_calls: int = 0
    api_error: str | None = None
    retry_after_s: float | None = None
    asked_structure: bool = False
    asked_max_turns: int | None = None
    asked_max_budget_usd: float | None = None
    asked_resume: str | None = None
    carried_cost_usd: float = 0.0
    has_started: bool = False


@dataclass(frozen=True)
class Verdict:
    """`error` is None for a success; `notices` say what was odd about it."""

    error: SessionError | None = None
    notices: tuple[Notice, ...] = ()


_BY_SUBTYPE = {
    "error_max_turns": Category.MAX_TURNS,
    "error_max_budget_usd": Category.MAX_BUDGET,
    "error_max_structured_output_retries": Category.STRUCTURED_OUTPUT,
}

_BY_TERMINAL_REASON = {
    "max_turns": Category.MAX_TURNS,
    "budget_exhausted": Category.MAX_BUDGET,
    "prompt_too_long": Category.CONTEXT_OVERFLOW,
    "blocking_limit": Category.CONTEXT_OVERFLOW,
    "image_error": Category.INVALID_REQUEST,
    "aborted_streaming": Category.CLI_FAILED,
    "aborted_tools": Category.CLI_FAILED,
}

_BY_STOP_REASON = {
    "refusal": Category.REFUSAL,
    "max_tokens": Category.MAX_OUTPUT_TOKENS,
    "model_context_window_exceeded": Category.CONTEXT_OVERFLOW,
}

_BY_API_ERROR = {
    "authentication_failed": Category.AUTHENTICATION,
    "billing_error": Category.BILLING,
    "rate_limit": Category.RATE_LIMIT,
    "overloaded": Category.OVERLOADED,
    "invalid_request": Category.INVALID_REQUEST,
    "model_not_found": Category.MODEL_NOT_FOUND,
    "max_output_tokens": Category.MAX_OUTPUT_TOKENS,
}

_BY_HTTP_STATUS = {
    401: Category.AUTHENTICATION,
    402: Category.BILLING,
    403: Category.AUTHENTICATION,
    429: Category.RATE_LIMIT,
    529: Category.OVERLOADED,
}

FATAL_STATUSES = frozenset({401, 403})
"""HTTP statuses that another try by the CLI cannot change; it would go on for minutes."""

_MESSAGES = {
    Category.AUTHENTICATION: "the API refused the credentials",
    Category.BILLING: "the API refused the request because of the account's billing",
    Category.RATE_LIMIT: "the API refused the request because of a rate limit",
    Category.OVERLOADED: "the API is overloaded",
    Category.SERVER_ERROR: "the API failed",
    Category.NETWORK: "the API gave no usable answer",
    Category.INVALID_REQUEST: "the API refused the request as invalid",
    Category.MODEL_NOT_FOUND: "the API does not know the model",
    Category.CONTEXT_OVERFLOW: "the conversation no longer fits the model's context",
    Category.MAX_OUTPUT_TOKENS: "the answer was cut at the limit of output tokens",
    Category.REFUSAL: "the model refused to answer",
    Category.STRUCTURED_OUTPUT: "the session ended without the structured output that was asked for",
    Category.EMPTY_RESPONSE: "the session ended without any text or tool call",
    Category.NO_RESULT: "the CLI ended without a result",
    Category.UNKNOWN_SESSION: "the session to resume is not known here",
    Category.CLI_FAILED: "the CLI reported a failure while it worked",
}

_HINTS = {
    Category.AUTHENTICATION: HINT,
    Category.MAX_TURNS: "raise max_turns, or resume the session",
    Category.MAX_BUDGET: "raise max_budget_usd, or resume the session",
    Category.UNKNOWN_SESSION: "resume needs the session's transcript in the CLI's config directory",
    Category.MODEL_NOT_FOUND: "check the request's model",
    Category.CONTEXT_OVERFLOW: "give the session less to read, or split the work",
    Category.MAX_OUTPUT_TOKENS: "ask for a shorter answer, or set CLAUDE_CODE_MAX_OUTPUT_TOKENS",
}


def judge(turn: TurnEnd, seen: Seen) -> Verdict:
    """Whether a turn that ended was a success, by what the CLI's typed fields say and what was seen."""
    category = _failure(turn, seen)
    if category is not None:
        return Verdict(error=_turn_error(category, turn, seen))
    if seen.asked_structure and turn.structured_output is None:
        return Verdict(error=failure(Category.STRUCTURED_OUTPUT, seen))
    has_said = bool(seen.response.strip()) or turn.structured_output is not None
    if not has_said and not seen.tool_calls:
        return Verdict(error=failure(Category.EMPTY_RESPONSE, seen, stop_reason=turn.stop_reason))
    return Verdict(notices=tuple(_oddities(turn, seen, has_said=has_said)))


def failure(category: Category, seen: Seen, *, http_status: int | None = None, **details: Any) -> SessionError:
    """The error of a category that explains itself, with what the session had said."""
    message = _MESSAGES[category] + (f" (HTTP {http_status})" if http_status else "")
    return session_error(
        category,
        message,
        hint=_HINTS.get(category),
        http_status=http_status,
        retry_after_s=seen.retry_after_s if category is Category.RATE_LIMIT else None,
        partial_response=partial_of(seen),
        **details,
    )


def cli_ended(exit_code: int | None, stderr_tail: str, seen: Seen) -> SessionError:
    """The error of a CLI that died before it gave a result; a negative exit code is a signal's number."""
    return session_error(
        Category.CLI_FAILED,
        f"the CLI {_how_it_ended(exit_code)}{_last_words(stderr_tail)}",
        partial_response=partial_of(seen),
        exit_code=exit_code,
        stderr_tail=stderr_tail,
    )


def partial_of(seen: Seen) -> str | None:
    """The end of what the session had said, as an error carries it: where it was when it failed."""
    return seen.partial[-PARTIAL_CHARACTERS:] or None


def api_category(name: str | None, http_status: int | None) -> Category:
    """The category of a failed API call, from the CLI's name for it and the HTTP status, either of them missing."""
    if http_status == 529:  # the CLI calls it a server_error
        return Category.OVERLOADED
    if name in _BY_API_ERROR:
        return _BY_API_ERROR[name]
    if http_status is None:
        return Category.NETWORK
    if http_status in _BY_HTTP_STATUS:
        return _BY_HTTP_STATUS[http_status]
    if http_status >= 500:
        return Category.SERVER_ERROR
    return Category.INVALID_REQUEST if http_status >= 400 else Category.NETWORK


def _failure(turn: TurnEnd, seen: Seen) -> Category | None:
    named = (
        _BY_SUBTYPE.get(turn.subtype)
        or _BY_TERMINAL_REASON.get(turn.terminal_reason or "")
        or _BY_STOP_REASON.get(turn.stop_reason or "")
    )
    if named is not None:
        return named
    if turn.is_error and (seen.api_error or turn.http_status or turn.terminal_reason == "api_error"):
        return api_category(seen.api_error, turn.http_status)
    if turn.is_error or turn.subtype != "success":
        is_unknown = seen.asked_resume is not None and not seen.has_started
        return Category.UNKNOWN_SESSION if is_unknown else Category.CLI_FAILED
    return None


def _turn_error(category: Category, turn: TurnEnd, seen: Seen) -> SessionError:
    details = {
        "subtype": turn.subtype,
        "terminal_reason": turn.terminal_reason,
        "stop_reason": turn.stop_reason,
        "cli_message": turn.text if turn.is_error else None,
        "errors": list(turn.errors) or None,
    }
    told: dict[str, Any] = {name: value for name, value in details.items() if value is not None}
    match category:
        case Category.MAX_TURNS:
            limit = seen.asked_max_turns or turn.num_turns
            message = f"the session reached its limit of {limit} turn{'' if limit == 1 else 's'}"
            told |= {"num_turns": turn.num_turns, "max_turns": seen.asked_max_turns}
        case Category.MAX_BUDGET:
            message = f"the session reached its budget of {_dollars(seen)}"
            told |= {"cost_usd": turn.cost_usd, "max_budget_usd": seen.asked_max_budget_usd}
        case _:
            error = failure(category, seen, http_status=turn.http_status, **told)
            reason = turn.terminal_reason or turn.subtype
            is_vague = category is Category.CLI_FAILED
            return error.model_copy(update={"message": f"{error.message} ({reason})"}) if is_vague else error
    return session_error(category, message, hint=_HINTS[category], partial_response=partial_of(seen), **told)


def _dollars(seen: Seen) -> str:
    return "dollars" if seen.asked_max_budget_usd is None else f"${seen.asked_max_budget_usd:g}"


def _oddities(turn: TurnEnd, seen: Seen, *, has_said: bool) -> list[Notice]:
    notices = []
    if not has_said:
        notices.append(Notice(code="no_text", message="tools were called, but the session ended without any text"))
    if turn.stop_reason == "tool_use" and not seen.tool_calls:
        notices.append(Notice(code="tool_stop", message="the model stopped for a tool that it did not call"))
    if turn.terminal_reason not in {None, "completed"}:
        notices.append(Notice(code="terminal_reason", message=f"the turn ended with {turn.terminal_reason}"))
    return notices


def _how_it_ended(exit_code: int | None) -> str:
    match exit_code:
        case None:
            return "stopped answering"
        case int() if exit_code < 0:
            return f"was ended by {signal_name(-exit_code)}"
        case _:
            return f"exited with code {exit_code}"


def _last_words(stderr_tail: str) -> str:
    lines = stderr_tail.strip().splitlines()
    return f": {lines[-1]}" if lines else ""
