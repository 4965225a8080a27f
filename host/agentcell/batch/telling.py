"""Who watches a batch is told: of each result once it is on the disk, and of its state whenever that changes."""

import time
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any

import anyio

from agentcell.batch.tally import Snapshot, Tally
from agentcell_protocol.result import SessionResult

TICK_SECONDS = 1.0
"""Between two snapshots where nothing changes but the time."""

REST_SECONDS = 0.1
"""Between two snapshots at least: nobody sees more, and each costs as much as there are cells."""

TELL_SECONDS = 1.0
"""For a callback to take what it gets, once everything is to end: a reader may have stopped reading."""

OnChange = Callable[[Snapshot], Awaitable[object] | object]
OnResult = Callable[[SessionResult], Awaitable[object] | object]


class Telling:
    """Calls the callbacks, and waits for what they return. What one raises goes to `on_failure`; then all is silent."""

    def __init__(
        self,
        tally: Tally,
        on_change: OnChange | None,
        on_result: OnResult | None,
        on_failure: Callable[[BaseException], object],
    ) -> None:
        self._tally = tally
        self._on_change = on_change
        self._on_result = on_result
        self._on_failure = on_failure
        self._has_failed = False
        self._is_in_a_hurry = False
        self._waits: set[anyio.CancelScope] = set()
        self._changed = anyio.Event()

    def stir(self) -> None:
        """Something has changed."""
        self._changed.set()

    async def watch(self) -> None:
        """Tell of the batch's state, whenever something changed and every second."""
        while self._on_change is not None:
            self._changed = anyio.Event()
            await self._call(self._on_change, self._tally.snapshot(time.time()))
            await anyio.sleep(REST_SECONDS)
            with anyio.move_on_after(TICK_SECONDS - REST_SECONDS):
                await self._changed.wait()

    async def result(self, result: SessionResult) -> None:
        """Tell of a result."""
        if self._on_result is not None:
            await self._call(self._on_result, result)

    def hurry(self) -> None:
        """From now on wait for nobody longer than a moment."""
        self._is_in_a_hurry = True
        for scope in self._waits:
            _limit(scope)

    async def _call(self, callback: Callable[[Any], Awaitable[object] | object], value: object) -> None:
        if self._has_failed:
            return
        try:
            answer = callback(value)
            if isawaitable(answer):
                await self._wait(answer)
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException as failure:  # noqa: BLE001 - foreign code; raised again once everything has ended
            self._has_failed = True
            self._on_failure(failure)

    async def _wait(self, answer: Awaitable[object]) -> None:
        with anyio.CancelScope() as scope:
            self._waits.add(scope)
            try:
                if self._is_in_a_hurry:
                    _limit(scope)
                await answer
            finally:
                self._waits.discard(scope)


def _limit(scope: anyio.CancelScope) -> None:
    scope.deadline = min(scope.deadline, anyio.current_time() + TELL_SECONDS)
