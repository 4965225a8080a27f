"""Cells start a few at a time: a CLI that shares its start with forty others takes a minute for what takes a second."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from agentcell.stop import Stop


class Turn:
    """Leave to start; `end` gives it to the next one, once."""

    def __init__(self, room: anyio.Semaphore) -> None:
        self._room = room
        self._is_mine = False

    def begin_now(self) -> bool:
        """Take it if nobody waits for it; whether it is taken."""
        with suppress(anyio.WouldBlock):
            self._room.acquire_nowait()
            self._is_mine = True
        return self._is_mine

    async def begin(self) -> None:
        """Wait for it."""
        await self._room.acquire()
        self._is_mine = True

    def end(self) -> None:
        """The start is over, well or not."""
        if self._is_mine:
            self._is_mine = False
            self._room.release()


class Gate:
    """Lets `at_once` (the number of cores) cells start at a time. To be made in the loop it is used in."""

    def __init__(self, at_once: int | None = None) -> None:
        self._room = anyio.Semaphore(at_once or os.cpu_count() or 1)

    @asynccontextmanager
    async def turn(self, stop: Stop) -> AsyncIterator[Turn]:
        """Within, it may be started, or there was a `stop` before. What is not ended by then, is afterwards."""
        turn = Turn(self._room)
        try:
            await checkpoint_if_cancelled()
            if not turn.begin_now():
                await _wait(turn, stop)
            yield turn
        finally:
            turn.end()


async def _wait(turn: Turn, stop: Stop) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_give_up, stop, tasks.cancel_scope)
        await turn.begin()
        tasks.cancel_scope.cancel()


async def _give_up(stop: Stop, scope: anyio.CancelScope) -> None:
    await stop.requested.wait()
    scope.cancel()
