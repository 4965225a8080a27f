"""Lines to a stream that its reader may leave at any time, or not read for a while."""

import os
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

        A cancellation leaves a line that was begun to be finished by its thread.
        """
        await anyio.to_thread.run_sync(partial(self.write_now, message), limiter=anyio.CapacityLimiter(1))

    def write_now(self, message: Mapping[str, Any]) -> None:
        """Write a line. Blocks until the reader has taken it."""
        left = memoryview(encode(message))
        while left and self._is_open:
            try:
                left = left[os.write(self._fd, left) :]
            except OSError:
                self._is_open = False
