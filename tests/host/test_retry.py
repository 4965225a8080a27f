"""Another attempt is made when it may end better, and not too soon."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcell.retry import RetryPolicy, delay_before_next, wait_asked_for
from agentcell_protocol.errors import Category, SessionError, session_error

POLICY = RetryPolicy(max_attempts=3)
CRASHED = session_error(Category.CRASHED, "it died", signal="SIGKILL")
NOW = 1_000_000.0


def delay(error: SessionError | None, attempts: int = 1, *, chance: float = 1.0) -> float | None:
    return delay_before_next(error, attempts, POLICY, now=NOW, chance=chance)


def limited(retry_after_s: float | None = None, **details: Any) -> SessionError:
    return session_error(Category.RATE_LIMIT, "wait", retry_after_s=retry_after_s, **details)


def test_a_success_is_not_tried_again() -> None:
    assert delay(None) is None


@pytest.mark.parametrize(
    "error",
    [
        session_error(Category.AUTHENTICATION, "no key"),
        session_error(Category.MEMORY_LIMIT, "too much"),
        session_error(Category.CANCELLED, "no more", signal="SIGINT"),
        session_error(Category.TIMEOUT, "too long", limit="wall"),
        session_error(Category.BAD_REQUEST, "what?"),
    ],
)
def test_what_would_only_happen_again_is_not_tried_again(error: SessionError) -> None:
    assert delay(error) is None


def test_the_delay_doubles_and_attempts_are_capped() -> None:
    assert [delay(CRASHED, attempts) for attempts in (1, 2, 3)] == [1.0, 2.0, None]


def test_the_delay_is_any_part_of_that_by_chance() -> None:
    assert [delay(CRASHED, 2, chance=chance) for chance in (0.0, 0.25, 1.0)] == [0.0, 0.5, 2.0]


def test_the_delay_has_a_longest_however_many_attempts_there_are() -> None:
    policy = RetryPolicy(max_attempts=1_000_000)
    assert delay_before_next(CRASHED, 999_999, policy, now=NOW, chance=1.0) == 60.0


def test_a_session_that_did_not_start_is_tried_again() -> None:
    assert delay(session_error(Category.TIMEOUT, "too slow", limit="startup")) == 1.0


@pytest.mark.parametrize(
    ("error", "asked"),
    [
        (limited(), 0.0),
        (limited(30.0), 30.0),
        (limited(resets_at=NOW + 45), 45.0),
        (limited(30.0, resets_at=NOW + 45), 45.0),
        (limited(50.0, resets_at=NOW + 45), 50.0),
        (limited(resets_at=NOW - 45), 0.0),
        (limited(-3.0), 0.0),
        (limited(resets_at="soon"), 0.0),
        (limited(resets_at=None), 0.0),
    ],
)
def test_what_the_api_asks_for_is_waited_for_and_then_chance_has_its_part(error: SessionError, asked: float) -> None:
    assert wait_asked_for(error, NOW) == asked
    assert [delay(error, chance=chance) for chance in (0.0, 1.0)] == [asked, asked + 1.0]


@pytest.mark.parametrize("error", [limited(600.5), limited(resets_at=NOW + 3600)])
def test_what_the_api_asks_for_is_not_waited_for_all_day(error: SessionError) -> None:
    assert delay(error) is None


@given(
    attempts=st.integers(0, 10_000),
    chance=st.floats(0, 1),
    retry_after_s=st.none() | st.floats(allow_nan=False),
    resets_at=st.none() | st.integers() | st.floats(allow_nan=False),
)
def test_whatever_is_asked_for_a_delay_lies_between_that_and_the_longest(
    attempts: int, chance: float, retry_after_s: float | None, resets_at: float | None
) -> None:
    error = limited(retry_after_s, resets_at=resets_at)
    policy = RetryPolicy(max_attempts=10_001)
    waited = delay_before_next(error, attempts, policy, now=NOW, chance=chance)
    asked = wait_asked_for(error, NOW)
    assert waited is None if asked > policy.longest_wait else asked <= (waited or 0.0) <= asked + policy.longest_delay
