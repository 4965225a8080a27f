"""Lines to a stream that its reader may leave at any time, or not read for a while."""

import os
import select
from collections.abc import Mapping
from functools import partial
from typing import Any

import anyio

from agentcell_protocol.codec import encode


class LineWriter:
    """Writes messages to a descriptor, whole and in order; once the reader is gone, nothing more."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._is_open = True

    async def write(self, message: Mapping[str, Any]) -> None:
        """Write a line without blocking the loop: a reader that does not read must not stop the clocks.

        A cancellation waits until the line that was begun is written.
        """
        if not self._is_open:
            return
        line = encode(message)
        if len(line) <= select.PIPE_BUF and self._is_writable():
            self._write(line)
        else:
            await anyio.to_thread.run_sync(partial(self._write, line), limiter=anyio.CapacityLimiter(1))

    def write_now(self, message: Mapping[str, Any]) -> None:
        """Write a line. Blocks until the reader has taken it."""
        self._write(encode(message))

    def _is_writable(self) -> bool:
        """Whether a line of up to PIPE_BUF bytes can be written without waiting."""
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        return bool(poll.poll(0))

    def _write(self, line: bytes) -> None:
        left = memoryview(line)
        while left and self._is_open:
            try:
                left = left[os.write(self._fd, left) :]
            except OSError:
                self._is_open = False
