"""What an attempt says while it lasts: some events in a line, and the cell waits for a listener that is behind."""

from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

import anyio
from anyio.abc import ByteSendStream

from agentcell.executors.wire import said
from agentcell_protocol.codec import encode

ROOM_BYTES = 64 * 1024
"""Of events in one line, but for the last of them; as many wait while a line is being taken."""

GATHER_SECONDS = 0.1
"""For more events to come before a line is written: nobody reads faster, and each line has its price."""


class Voice:
    """Of one attempt; `run` writes what was told until `finish`. What nobody takes any more is dropped."""

    def __init__(self, marker: str, stream: ByteSendStream) -> None:
        self._marker = marker
        self._stream = stream
        self._events: list[bytes] = []
        self._bytes = 0
        self._is_finished = False
        self._told = anyio.Event()
        self._full = anyio.Event()
        self._taken = anyio.Event()
        self._over = anyio.Event()

    def tell(self, event: dict[str, Any]) -> Awaitable[None] | None:
        """Say this, too; to be awaited when there is more than a line's worth."""
        if self._over.is_set():
            return None
        self._events.append(encode(event)[:-1])
        self._bytes += len(self._events[-1])
        self._told.set()
        if self._bytes < ROOM_BYTES:
            return None
        self._full.set()
        return self._room()

    async def finish(self) -> None:
        """Wait until all is said, or nobody listens."""
        self._is_finished = True
        self._told.set()
        self._full.set()
        await self._over.wait()

    async def run(self) -> None:
        """Write what is told."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while not (self._is_finished and not self._events):
                await self._told.wait()
                with anyio.move_on_after(GATHER_SECONDS):
                    await self._full.wait()
                if events := self._take():
                    await self._stream.send(said(self._marker, events))
        self._over.set()
        self._taken.set()

    def _take(self) -> list[bytes]:
        events, self._events = self._events, []
        self._bytes = 0
        self._taken.set()
        self._taken = anyio.Event()
        if not self._is_finished:
            self._told, self._full = anyio.Event(), anyio.Event()
        return events

    async def _room(self) -> None:
        while self._bytes >= ROOM_BYTES and not self._over.is_set():
            await self._taken.wait()
