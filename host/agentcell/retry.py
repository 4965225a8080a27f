"""Whether to try again, and when. Pure: the clock and chance come in."""

from dataclasses import dataclass

from agentcell_protocol.errors import SessionError

MOST_DOUBLINGS = 30
"""Of a delay: what was doubled more often is longer than any longest, and in the end than a number can say."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently; seconds. `longest_wait` is the most that the API may ask for."""

    max_attempts: int = 3
    first_delay: float = 1.0
    longest_delay: float = 60.0
    longest_wait: float = 600.0


def delay_before_next(
    error: SessionError | None, attempts: int, policy: RetryPolicy, *, now: float, chance: float
) -> float | None:
    """The seconds to wait before another attempt after `attempts` of them, or None when there is to be none.

    `now` is in Unix seconds, `chance` from 0 to 1. The delay is any part of what doubles with each attempt, so that
    what failed together does not come back together. What the API asked for is waited for before that.
    """
    if error is None or not error.retryable or attempts >= policy.max_attempts:
        return None
    asked = wait_asked_for(error, now)
    return None if asked > policy.longest_wait else asked + chance * _backoff(attempts, policy)


def wait_asked_for(error: SessionError, now: float) -> float:
    """The seconds from `now` (Unix seconds) for which the API wants to be left alone; 0 when it did not say."""
    resets_at = error.details.get("resets_at")
    until_reset = float(resets_at) - now if isinstance(resets_at, int | float) else 0.0
    return max(error.retry_after_s or 0.0, until_reset, 0.0)


def _backoff(attempts: int, policy: RetryPolicy) -> float:
    doublings = min(max(attempts - 1, 0), MOST_DOUBLINGS)
    return min(policy.first_delay * 2.0**doublings, policy.longest_delay)
