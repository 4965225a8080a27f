"""Telling silence from work: a session is idle when nothing is heard of it and no tool of it runs."""

from collections.abc import Mapping
from math import inf
from typing import Any

import anyio

TELLING = frozenset({"session_started", "session_ended", "outcome", "tool_use", "tool_result", "api_retry"})
"""Types of events after which something else is expected than before; any other only ends a silence."""


class Silence:
    """Hears a session's events; `ends_at` is when its silence will have lasted `seconds`, if it goes on.

    Nothing is silence before a session has started or after it has ended, nor while its listener takes its time: from
    `hear` until `resume`. A wait that the session announced, before it asks the API again, is none either.
    """

    def __init__(self, seconds: float) -> None:
        self.ends_at = inf
        self._seconds = seconds
        self._running: set[str] = set()
        self._announced = 0.0
        self._is_suspended = False
        self._is_under_way = False

    def resume(self, now: float) -> None:
        """From `now` on, in seconds of any one clock, what was heard is followed by silence."""
        if not self._is_suspended:
            return
        self._is_suspended = False
        is_expected = not self._is_under_way or self._running
        self.ends_at = inf if is_expected else now + self._announced + self._seconds

    def hear(self, event: Mapping[str, Any]) -> None:
        """Take an event; there is no silence until `resume`."""
        self.ends_at, self._announced, self._is_suspended = inf, 0.0, True
        if (kind := event.get("type")) in TELLING:
            self._note(str(kind), event)

    def _note(self, kind: str, event: Mapping[str, Any]) -> None:
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
                self._announced = _seconds(event.get("delay_s"))


async def until_idle(silence: Silence, seconds: float) -> None:
    """Return once the silence has lasted so long."""
    while (left := silence.ends_at - anyio.current_time()) > 0:  # noqa: ASYNC110 - a clock
        await anyio.sleep(min(left, seconds))  # silence that begins meanwhile ends later than this


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
