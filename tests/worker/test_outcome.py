"""What ended is judged by typed fields alone."""

from typing import Any

import pytest

from agentcell_protocol.errors import Category
from agentcell_worker.outcome import Seen, TurnEnd, Verdict, api_category, cli_ended, judge

SAID = Seen(response="hello", partial="hello", has_started=True)


def turn(**members: Any) -> TurnEnd:
    """A turn that ended well unless the members say otherwise."""
    good = {"subtype": "success", "is_error": False, "num_turns": 1, "terminal_reason": "completed"}
    return TurnEnd(**{**good, "stop_reason": "end_turn", "text": "hello", **members})


def category(ended: TurnEnd, seen: Seen = SAID) -> Category | None:
    """Of the verdict."""
    error = judge(ended, seen).error
    return error.category if error else None


def test_an_answer_is_a_success() -> None:
    assert judge(turn(), SAID) == Verdict()


@pytest.mark.parametrize(
    "words", ["401", "billing", "API Error: 500", "rate limit", "permission denied", "Not logged in"]
)
def test_what_the_agent_says_decides_nothing(words: str) -> None:
    assert judge(turn(text=words), Seen(response=words, partial=words)) == Verdict()


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"subtype": "error_max_turns", "is_error": True}, Category.MAX_TURNS),
        ({"subtype": "error_max_budget_usd", "is_error": True}, Category.MAX_BUDGET),
        ({"terminal_reason": "budget_exhausted", "is_error": True}, Category.MAX_BUDGET),
        ({"subtype": "error_max_structured_output_retries", "is_error": True}, Category.STRUCTURED_OUTPUT),
        ({"terminal_reason": "prompt_too_long", "is_error": True}, Category.CONTEXT_OVERFLOW),
        ({"terminal_reason": "blocking_limit", "is_error": True}, Category.CONTEXT_OVERFLOW),
        ({"terminal_reason": "image_error", "is_error": True, "http_status": 413}, Category.INVALID_REQUEST),
        ({"terminal_reason": "aborted_tools", "is_error": True}, Category.CLI_FAILED),
        ({"stop_reason": "refusal"}, Category.REFUSAL),
        ({"stop_reason": "refusal", "is_error": True, "terminal_reason": "api_error"}, Category.REFUSAL),
        ({"stop_reason": "max_tokens"}, Category.MAX_OUTPUT_TOKENS),
        ({"stop_reason": "model_context_window_exceeded"}, Category.CONTEXT_OVERFLOW),
        ({"is_error": True, "terminal_reason": "api_error", "http_status": 529}, Category.OVERLOADED),
        ({"is_error": True, "terminal_reason": "api_error"}, Category.NETWORK),
        ({"subtype": "error_during_execution", "is_error": True}, Category.CLI_FAILED),
        ({"subtype": "error_of_tomorrow"}, Category.CLI_FAILED),
    ],
)
def test_typed_fields_name_the_category(members: dict[str, Any], expected: Category) -> None:
    assert category(turn(**members)) == expected


@pytest.mark.parametrize(
    ("name", "status", "expected"),
    [
        ("authentication_failed", 401, Category.AUTHENTICATION),
        ("authentication_failed", None, Category.AUTHENTICATION),
        ("billing_error", 400, Category.BILLING),
        ("rate_limit", 429, Category.RATE_LIMIT),
        ("server_error", 500, Category.SERVER_ERROR),
        ("server_error", 529, Category.OVERLOADED),
        ("server_error", None, Category.NETWORK),
        ("invalid_request", 400, Category.INVALID_REQUEST),
        ("model_not_found", 404, Category.MODEL_NOT_FOUND),
        ("max_output_tokens", None, Category.MAX_OUTPUT_TOKENS),
        ("unknown", 400, Category.INVALID_REQUEST),
        ("unknown", 402, Category.BILLING),
        ("unknown", 403, Category.AUTHENTICATION),
        ("unknown", 429, Category.RATE_LIMIT),
        ("unknown", 503, Category.SERVER_ERROR),
        ("unknown", 200, Category.NETWORK),
        (None, None, Category.NETWORK),
    ],
)
def test_a_failed_api_call_has_a_category(name: str | None, status: int | None, expected: Category) -> None:
    assert api_category(name, status) == expected


def test_limits_that_were_reached_say_what_was_reached() -> None:
    seen = Seen(partial="half", asked_max_turns=2, asked_max_budget_usd=0.5)
    turns = judge(turn(subtype="error_max_turns", is_error=True, num_turns=3, terminal_reason="max_turns"), seen).error
    money = judge(turn(subtype="error_max_budget_usd", is_error=True, cost_usd=0.6), seen).error
    assert turns is not None
    assert money is not None
    assert (turns.message, turns.partial_response) == ("the session reached its limit of 2 turns", "half")
    assert (turns.details["num_turns"], turns.details["max_turns"]) == (3, 2)
    assert money.message == "the session reached its budget of $0.5"
    assert (money.details["cost_usd"], money.details["max_budget_usd"]) == (0.6, 0.5)


def test_neither_text_nor_tool_is_an_empty_response() -> None:
    assert category(turn(text="", num_turns=0), Seen()) == Category.EMPTY_RESPONSE
    assert category(turn(text=" \n"), Seen(response=" \n")) == Category.EMPTY_RESPONSE


def test_structured_output_that_was_asked_for_must_be_there() -> None:
    asked = Seen(response="hello", asked_structure=True)
    assert category(turn(), asked) == Category.STRUCTURED_OUTPUT
    assert judge(turn(structured_output={}, text=""), Seen(asked_structure=True, tool_calls=1)) == Verdict()


@pytest.mark.parametrize(
    ("members", "seen", "code"),
    [
        ({"text": ""}, Seen(tool_calls=1), "no_text"),
        ({"stop_reason": "tool_use"}, SAID, "tool_stop"),
        ({"terminal_reason": "hook_stopped"}, SAID, "terminal_reason"),
    ],
)
def test_an_odd_success_is_a_success_with_a_notice(members: dict[str, Any], seen: Seen, code: str) -> None:
    verdict = judge(turn(**members), seen)
    assert (verdict.error, [notice.code for notice in verdict.notices]) == (None, [code])


def test_a_session_that_cannot_be_resumed_is_unknown() -> None:
    refused = turn(subtype="error_during_execution", is_error=True, terminal_reason=None, errors=("No conversation",))
    assert category(refused, Seen(asked_resume="x")) == Category.UNKNOWN_SESSION
    assert category(refused, Seen(asked_resume="x", has_started=True)) == Category.CLI_FAILED


def test_a_rate_limit_says_when_it_ends() -> None:
    limited = turn(is_error=True, terminal_reason="api_error", http_status=429)
    error = judge(limited, Seen(api_error="rate_limit", retry_after_s=30.0)).error
    assert error is not None
    assert (error.retry_after_s, error.retryable, error.http_status) == (30.0, True, 429)


@pytest.mark.parametrize(
    ("exit_code", "tail", "message"),
    [
        (1, "a\nb\n", "the CLI exited with code 1: b"),
        (0, "", "the CLI exited with code 0"),
        (-9, "", "the CLI was ended by SIGKILL"),
        (-99, "", "the CLI was ended by signal 99"),
        (None, "", "the CLI stopped answering"),
    ],
)
def test_the_end_of_the_cli_is_told(exit_code: int | None, tail: str, message: str) -> None:
    assert cli_ended(exit_code, tail, Seen()).message == message
