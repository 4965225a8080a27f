"""Lines out: whole and in order, kept for a reader that is slow, and no reason for a cell to wait for long."""

import os
import select
import stat
from collections import deque
from collections.abc import Mapping
from errno import EPIPE
from itertools import islice
from math import inf
from typing import Any

import anyio
from anyio.lowlevel import checkpoint

from agentcell_protocol.codec import encode

ROOM_BYTES = 256 * 1024
"""Of lines that wait for the reader: what is beyond it waits in the cells."""

MOST_BYTES = 64 * 1024 * 1024
"""Of lines that wait for the reader before nothing more is heard: two of the longest, or 100,000 refusals."""

BUSY_SECONDS = 0.005
"""Of writing at a stretch: to a reader that is quick others would never have their turn."""

LOOK_SECONDS = 1.0
"""Between two looks at a socket from which something could be read, and so nothing can be waited for."""

AGAIN_SECONDS = 0.01
"""Until a write is tried again for which there was no room, though it had been said so."""

WAIT_SECONDS = 1.0
"""For room for an event: a reader that is busy comes back by then, and a cell that waits longer is held up."""


class Outlet:
    """Keeps what was put until the reader takes it. `gone` is set, with a `failure`, when it never will.

    `moved_at` is when it has last taken something, in seconds of the loop's clock.
    """

    def __init__(self, fd: int) -> None:
        self.gone = anyio.Event()
        self.failure = ""
        self.moved_at = -inf
        self._fd = fd
        self._lines: deque[tuple[bytes, str | None]] = deque()
        self._bytes = 0
        self._is_stalled = False
        self._put = anyio.Event()
        self._taken = anyio.Event()

    def put(self, message: Mapping[str, Any], *, result_of: str | None = None) -> None:
        """Write it, as soon as it can be; `result_of` is the id of the run whose result it is."""
        if not self.gone.is_set():
            line = bytes(memoryview(encode(message)))  # a copy: the encoder leaves kilobytes behind each line
            self._lines.append((line, result_of))
            self._bytes += len(line)
            self._put.set()

    @property
    def has_room(self) -> bool:
        """Whether the reader keeps up."""
        return self._bytes < ROOM_BYTES

    @property
    def unread_results(self) -> list[str]:
        """The ids of the runs whose results the reader has not taken, or not wholly."""
        return [run_id for _, run_id in self._lines if run_id is not None]

    async def room(self) -> bool:
        """Wait for room, for a bounded time, and not at all while somebody has waited in vain; whether it is there."""
        if not self._is_stalled:
            with anyio.move_on_after(WAIT_SECONDS):
                while not self.has_room:
                    await self._taken.wait()
            self._is_stalled = not self.has_room
        return self.has_room

    async def not_full(self) -> None:
        """Wait while so much waits for the reader that nothing more should be asked."""
        while self._bytes >= MOST_BYTES:
            await self._taken.wait()

    async def drained(self) -> None:
        """Wait until everything is written, or never will be."""
        while self._lines:
            await self._taken.wait()

    async def run(self) -> None:
        """Write what is put, until the reader is gone."""
        try:
            while True:
                await self._write_all()
                self._put = anyio.Event()
                await self._put.wait()
        except OSError as failure:
            self._give_up(str(failure.strerror))

    async def watch(self) -> None:
        """See that the reader of a pipe or a socket goes, though there is nothing to be written."""
        mode = os.fstat(self._fd).st_mode
        while stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            await anyio.wait_readable(self._fd)  # nothing ever is, at a pipe: it returns when that breaks
            if self._look(select.POLLIN) & (select.POLLERR | select.POLLHUP):
                self._give_up(os.strerror(EPIPE))
                return
            await anyio.sleep(LOOK_SECONDS)

    async def _write_all(self) -> None:
        rest_at = anyio.current_time() + BUSY_SECONDS
        while self._lines:
            lines = self._next()
            await self._write(b"".join(lines))
            for line in lines:
                self._lines.popleft()
                self._bytes -= len(line)
            self._tell()
            if anyio.current_time() >= rest_at:
                await checkpoint()
                rest_at = anyio.current_time() + BUSY_SECONDS

    def _next(self) -> list[bytes]:
        """The lines that one write takes: those that fit into one, and one at least."""
        lines, size = [self._lines[0][0]], len(self._lines[0][0])
        for line, _ in islice(self._lines, 1, None):
            size += len(line)
            if size > select.PIPE_BUF:
                break
            lines.append(line)
        return lines

    async def _write(self, line: bytes) -> None:
        left = memoryview(line)
        while left:
            if not self._look(select.POLLOUT):
                await anyio.wait_writable(self._fd)
            try:
                left = left[os.write(self._fd, left[: select.PIPE_BUF]) :]  # so much blocks no pipe that has room
                self.moved_at = anyio.current_time()
            except BlockingIOError:  # whoever shares the stream was quicker, or a terminal has room for half a line end
                await anyio.sleep(AGAIN_SECONDS)

    def _look(self, events: int) -> int:
        poll = select.poll()
        poll.register(self._fd, events)
        return next((found for _, found in poll.poll(0)), 0)

    def _tell(self) -> None:
        """Wake those who wait for something to be taken."""
        self._is_stalled = self._is_stalled and not self.has_room
        self._taken.set()
        self._taken = anyio.Event()

    def _give_up(self, failure: str) -> None:
        self.failure = failure
        self.gone.set()
        self._lines.clear()
        self._bytes = 0
        self._tell()
