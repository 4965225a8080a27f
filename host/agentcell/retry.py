"""Whether to try again, and when. Pure: the clock and chance come in."""

from dataclasses import dataclass

from agentcell_protocol.errors import SessionError


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

    `now` is in Unix seconds, `chance` from 0 to 1: it spreads the delay, which doubles with each attempt, over its
    upper half. What the API asked for is always waited for.
    """
    if error is None or not error.retryable or attempts >= policy.max_attempts:
        return None
    asked = _asked_for(error, now)
    if asked > policy.longest_wait:
        return None
    backoff = min(policy.first_delay * 2.0 ** (attempts - 1), policy.longest_delay)
    return max(asked, backoff * (0.5 + chance / 2))


def _asked_for(error: SessionError, now: float) -> float:
    """The seconds that the API wants to be left alone."""
    resets_at = error.details.get("resets_at")
    until_reset = float(resets_at) - now if isinstance(resets_at, int | float) else 0.0
    return max(error.retry_after_s or 0.0, until_reset, 0.0)
