"""The attempts of a node that are under way, by their markers, and how they are ended from outside."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio

from agentcell.reap import GRACE_SECONDS
from agentcell.stop import HOST_LOST, MEMORY, Stop
from agentcell_protocol.cell import KILL_SECONDS

FORCED_SECONDS = 2 * KILL_SECONDS + 1.0
"""From the second word to the end: the worker is killed, then what it left, each in `KILL_SECONDS`."""

MOST_EARLY = 10_000
"""Markers that something was said of and that were not there: of most of them the attempt had just ended."""


@dataclass(eq=False, slots=True)
class Attempt:
    """One of them: `began` is when its cell got leave to start (the loop's seconds), None before."""

    stop: Stop
    began: float | None = None
    ended: anyio.Event = field(default_factory=anyio.Event)

    def force(self) -> None:
        """Have it end at once."""
        while not self.stop.forced.is_set():
            self.stop.cancel(HOST_LOST)


class Attempts:
    """Those under way. What is said of one before it is there counts as soon as it is: lines overtake each other."""

    def __init__(self) -> None:
        self._under_way: dict[str, Attempt] = {}
        self._early: dict[str, Stop] = {}
        self._is_closed = False

    def has(self, marker: str) -> bool:
        """Whether this one is under way."""
        return marker in self._under_way

    @contextmanager
    def beginning(self, marker: str) -> Iterator[Attempt]:
        """One that is under way for as long as the context lasts; it may be cancelled before it has begun."""
        attempt = Attempt(self._early.pop(marker, Stop()))
        if self._is_closed:
            attempt.force()
        self._under_way[marker] = attempt
        try:
            yield attempt
        finally:
            del self._under_way[marker]
            attempt.ended.set()

    def cancel(self, marker: str, reason: str) -> None:
        """Cancel it: the first time politely, the second time at once."""
        attempt = self._under_way.get(marker)
        (self._early_stop(marker) if attempt is None else attempt.stop).cancel(reason)

    async def settle(self, markers: Collection[str]) -> None:
        """End those with these markers at once, also one that is only coming; bounded."""
        attempts = [self._under_way[marker] for marker in markers if marker in self._under_way]
        for attempt in attempts:
            attempt.force()
        for marker in set(markers) - self._under_way.keys():
            self._early_stop(marker).cancel(HOST_LOST)
        with anyio.move_on_after(FORCED_SECONDS):
            await _all_ended(attempts)

    async def end(self, hurried: anyio.Event) -> None:
        """End all, and whatever still comes; politely at first, unless `hurried`, and bounded."""
        self._is_closed = True
        await see_off(self._under_way.values(), hurried)

    def make_room(self) -> None:
        """Have the youngest cell end, if none is about to for that reason."""
        attempts = self._under_way.values()
        if any(attempt.stop.reason == MEMORY for attempt in attempts):
            return
        running = [attempt for attempt in attempts if attempt.began is not None and attempt.stop.reason is None]
        if running:
            max(running, key=lambda attempt: attempt.began or 0.0).stop.cancel(MEMORY)

    def _early_stop(self, marker: str) -> Stop:
        if marker not in self._early and len(self._early) >= MOST_EARLY:
            del self._early[next(iter(self._early))]
        return self._early.setdefault(marker, Stop())


async def see_off(attempts: Collection[Attempt], hurried: anyio.Event | None = None) -> None:
    """End these, which nobody wants any more: politely, at once when that takes long or is `hurried`; bounded."""
    attempts = list(attempts)
    for attempt in attempts:
        if attempt.stop.reason is None:
            attempt.stop.cancel(HOST_LOST)
    with anyio.move_on_after(GRACE_SECONDS) as grace:
        async with anyio.create_task_group() as tasks:
            if hurried is not None:
                tasks.start_soon(_end_early, hurried, grace)
            await _all_ended(attempts)
            tasks.cancel_scope.cancel()
    for attempt in attempts:
        if not attempt.ended.is_set():
            attempt.force()
    with anyio.move_on_after(FORCED_SECONDS):
        await _all_ended(attempts)


async def _all_ended(attempts: Collection[Attempt]) -> None:
    for attempt in attempts:
        await attempt.ended.wait()


async def _end_early(hurried: anyio.Event, scope: anyio.CancelScope) -> None:
    await hurried.wait()
    scope.cancel()
