"""Room for another cell on a node: cells start when so much memory is free, a few at a time, each after a look."""

import platform
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from errno import ENOMEM

import anyio

from agentcell import memory
from agentcell.gate import Gate
from agentcell.stop import Stop

PATIENCE_SECONDS = 600.0
"""For memory to become free: the sessions that have it take minutes, and another node may have some."""


class NoHeadroomError(OSError):
    """Too little memory was free for too long; its `errno` is ENOMEM."""


class Headroom:
    """Lets cells start while `min_free_mb` (0: whatever there is) of memory are free, `at_once` at a time."""

    def __init__(
        self,
        min_free_mb: float,
        *,
        at_once: int | None = None,
        free_mb: Callable[[], float] = memory.free_mb,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._min_free_mb = min_free_mb
        self._gate = Gate(at_once)
        self._free_mb = free_mb
        self._patience_seconds = patience_seconds

    @asynccontextmanager
    async def entered(self, stop: Stop) -> AsyncIterator[Callable[[], object] | None]:
        """Within, there is room for one more, or there was a `stop` before.

        It gives what is to be told that the cell has started, if somebody waits for that. Raises NoHeadroomError.
        """
        if not self._min_free_mb:
            yield None
            return
        give_up_at = anyio.current_time() + self._patience_seconds
        async with self._gate.turn(stop) as turn:
            await self._wait(stop, give_up_at)
            yield turn.end

    async def watch(self, on_scarce: Callable[[], object]) -> None:
        """Say for ever whenever so little is free that a cell has to end."""
        await memory.watch(self._free_mb, self._min_free_mb, on_scarce)

    async def _wait(self, stop: Stop, give_up_at: float) -> None:
        while stop.reason is None and not memory.has_room(self._free_mb(), self._min_free_mb):
            if anyio.current_time() >= give_up_at:
                where = f"less than {self._min_free_mb:g} MB of memory were free on {platform.node()}"
                raise NoHeadroomError(ENOMEM, f"{where} for {self._patience_seconds:g} s")
            with anyio.move_on_after(memory.LOOK_SECONDS):
                await stop.requested.wait()
