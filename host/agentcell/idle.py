"""Telling silence from work: a session is idle when nothing is heard of it and no tool of it runs."""

from collections.abc import Mapping
from math import inf
from typing import Any

import anyio


class Silence:
    """Hears a session's events; `ends_at` is when its silence will have lasted `seconds`, if it goes on.

    Nothing is silence before a session has started or after it has ended, nor while its listener takes its time:
    `suspend` before that, `hear` after. A wait that the session announced, before it asks the API again, is none
    either.
    """

    def __init__(self, seconds: float) -> None:
        self.ends_at = inf
        self._seconds = seconds
        self._running: set[str] = set()
        self._is_under_way = False

    def suspend(self) -> None:
        """No silence until the next event."""
        self.ends_at = inf

    def hear(self, event: Mapping[str, Any], now: float) -> None:
        """Take an event that came `now`, in seconds of any one clock."""
        kind, announced = event.get("type"), 0.0
        match kind:
            case "session_started":
                self._is_under_way = True
                self._running.clear()  # a tool that a flow's session before this one has left behind says no more
            case "session_ended" | "outcome":
                self._is_under_way = False
            case "tool_use":
                self._running.add(str(event.get("id")))
            case "tool_result":
                self._running.discard(str(event.get("id")))
            case "api_retry":
                announced = _seconds(event.get("delay_s"))
        is_expected = not self._is_under_way or self._running
        self.ends_at = inf if is_expected else now + announced + self._seconds


async def until_idle(silence: Silence, seconds: float) -> None:
    """Return once the silence has lasted so long."""
    while (left := silence.ends_at - anyio.current_time()) > 0:  # noqa: ASYNC110 - a clock
        await anyio.sleep(min(left, seconds))  # silence that begins meanwhile ends later than this


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
