"""Another attempt is made when it may end better, and not too soon."""

import pytest

from agentcell.retry import RetryPolicy, delay_before_next
from agentcell_protocol.errors import Category, SessionError, session_error

POLICY = RetryPolicy(max_attempts=3)
CRASHED = session_error(Category.CRASHED, "it died", signal="SIGKILL")
NOW = 1_000_000.0


def delay(error: SessionError | None, attempts: int = 1, *, chance: float = 1.0) -> float | None:
    return delay_before_next(error, attempts, POLICY, now=NOW, chance=chance)


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


def test_chance_spreads_the_delay_over_its_upper_half() -> None:
    assert [delay(CRASHED, 2, chance=chance) for chance in (0.0, 0.5, 1.0)] == [1.0, 1.5, 2.0]


def test_the_delay_has_a_longest() -> None:
    policy = RetryPolicy(max_attempts=50)
    assert delay_before_next(CRASHED, 40, policy, now=NOW, chance=1.0) == 60.0


def test_a_session_that_did_not_start_is_tried_again() -> None:
    assert delay(session_error(Category.TIMEOUT, "too slow", limit="startup")) == 1.0


def test_what_the_api_asks_for_is_waited_for() -> None:
    assert delay(session_error(Category.RATE_LIMIT, "wait", retry_after_s=30.0)) == 30.0
    assert delay(session_error(Category.RATE_LIMIT, "wait", resets_at=NOW + 45)) == 45.0


def test_what_the_api_asks_for_is_not_waited_for_all_day() -> None:
    assert delay(session_error(Category.RATE_LIMIT, "wait", retry_after_s=3600.0)) is None
