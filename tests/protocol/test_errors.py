"""Errors carry fields, and which of them may be retried is a table."""

import pickle

import pytest

from agentcell_protocol.errors import (
    Category,
    RequestError,
    SessionError,
    WireError,
    internal_error,
    is_retryable,
    session_error,
)

ALWAYS = {
    "rate_limit",
    "overloaded",
    "server_error",
    "network",
    "no_result",
    "cli_failed",
    "crashed",
    "spawn_failed",
    "host_lost",
}


@pytest.mark.parametrize("category", Category)
def test_a_category_is_retryable_when_the_table_says_so(category: Category) -> None:
    assert is_retryable(category, {}) == (category in ALWAYS)


@pytest.mark.parametrize(("limit", "may"), [("startup", True), ("idle", True), ("wall", False), (None, False)])
def test_a_timeout_is_retryable_unless_the_time_itself_was_the_limit(limit: str | None, may: bool) -> None:
    assert session_error(Category.TIMEOUT, "too long", limit=limit).retryable is may


def test_a_session_error_keeps_what_it_is_told() -> None:
    error = session_error(Category.RATE_LIMIT, "slow down", http_status=429, retry_after_s=3.0, header="x")
    assert error == SessionError(
        category=Category.RATE_LIMIT,
        message="slow down",
        retryable=True,
        http_status=429,
        retry_after_s=3.0,
        details={"header": "x"},
    )


def test_a_mistake_of_ours_is_named_out_of_the_groups_it_came_in() -> None:
    lone = ExceptionGroup("unhandled errors in a TaskGroup", [ExceptionGroup("again", [KeyError("a")])])
    assert internal_error(lone) == session_error(
        Category.INTERNAL, "KeyError: 'a'", hint="this is a mistake in agentcell; the traceback is on stderr"
    )
    assert internal_error(ExceptionGroup("two", [KeyError("a"), OSError("b")])).message == (
        "ExceptionGroup: two (2 sub-exceptions)"
    )


@pytest.mark.parametrize("member", ["max_turns", None])
def test_a_request_error_survives_its_way_through_a_result(member: str | None) -> None:
    error = RequestError(member, "0 is not allowed here", "give 1 or more")
    again = RequestError.from_session_error(SessionError.model_validate(error.as_session_error().model_dump()))
    assert fields(again) == fields(error)


def test_a_bad_request_of_a_foreign_worker_becomes_a_request_error_all_the_same() -> None:
    error = RequestError.from_session_error(session_error(Category.BAD_REQUEST, "no", member=3))
    assert fields(error) == (None, "no", "see docs/protocol.md", "the request: no; see docs/protocol.md")


def test_a_request_error_can_be_pickled() -> None:
    error = RequestError("model", "is empty", "give a value")
    assert fields(pickle.loads(pickle.dumps(error))) == fields(error)


@pytest.mark.parametrize(
    ("message", "hint", "told"),
    [("no", None, "no"), ("no", "mend it", "no; mend it"), ("no; mend it", "mend it", "no; mend it")],
)
def test_the_text_of_an_error_says_once_what_to_do(message: str, hint: str | None, told: str) -> None:
    assert str(session_error(Category.BILLING, message, hint=hint)) == told


def test_both_errors_are_value_errors() -> None:
    assert issubclass(RequestError, ValueError)
    assert issubclass(WireError, ValueError)


def fields(error: RequestError) -> tuple[str | None, str, str, str]:
    return error.member, error.reason, error.remedy, str(error)
