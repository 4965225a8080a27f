"""Tidying up a place that many sessions share: now and then is enough."""

import time
from math import inf
from pathlib import Path

PERIOD_SECONDS = 60.0
"""Between two times in one place: to look through all that lies there may take longer than a cell."""


class Tidying:
    """Knows where this process has tidied up in the last `PERIOD_SECONDS`."""

    def __init__(self) -> None:
        self._done: dict[Path, float] = {}

    def is_due(self, place: Path) -> bool:
        """Whether it is to be done there now; then it counts as done."""
        now = time.monotonic()
        if now - self._done.get(place, -inf) < PERIOD_SECONDS:
            return False
        recent = {known: at for known, at in self._done.items() if now - at < PERIOD_SECONDS}
        self._done = {**recent, place: now}
        return True
