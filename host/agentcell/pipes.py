"""The host's ends of a cell's pipes: nonblocking, bounded, and never waiting on after the cell's death."""

import fcntl
import os
import socket
from contextlib import suppress
from io import FileIO

import anyio
from anyio.lowlevel import checkpoint

READ_BYTES = 256 * 1024
"""In one read: long lines come in few pieces."""

CHANNEL_BYTES = 256 * 1024
"""Asked for as a channel's send buffer: as much as is read at once."""

DEFAULT_CAPACITY = 4 * CHANNEL_BYTES
"""Bytes that neither a channel, of which the kernel doubles the buffer, nor a pipe of unknown size exceeds."""


def channel() -> tuple[FileIO, FileIO]:
    """A one-way stream, the reading and the writing end, that only who holds an end can write to.

    Anybody of the same user, a tool among them, can open another process's pipe through /proc and write into it; a
    socket nobody can.
    """
    reads, writes = socket.socketpair()
    reads.shutdown(socket.SHUT_WR)
    writes.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, CHANNEL_BYTES)
    return FileIO(reads.detach(), "rb"), FileIO(writes.detach(), "wb")


class PipeReader:
    """Reads until the end of the stream, or until `finish` was called and what is in the pipe is read.

    A writer that lives on in some detached process cannot hold it up: what a dead worker wrote is in the
    pipe by then, so no more than the pipe can hold is read.
    """

    def __init__(self, pipe: FileIO) -> None:
        os.set_blocking(pipe.fileno(), False)
        self._pipe = pipe
        self._fd = pipe.fileno()
        self._left: int | None = None
        self._waiting: anyio.CancelScope | None = None

    async def read(self) -> bytes:
        """The next bytes; empty at the end."""
        await checkpoint()
        while self._left is None or self._left > 0:
            try:
                chunk = os.read(self._fd, READ_BYTES)
            except BlockingIOError:
                if self._left is not None:
                    return b""
                await self._wait()
            except OSError:
                return b""
            else:
                self._left = None if self._left is None else self._left - len(chunk)
                return chunk
        return b""

    def finish(self) -> None:
        """Nothing more will be written by the one this is read for."""
        self._left = _capacity(self._fd)
        if self._waiting is not None:
            self._waiting.cancel()

    def close(self) -> None:
        """Close it; nobody may be reading."""
        _close(self._pipe)

    async def _wait(self) -> None:
        with anyio.CancelScope() as self._waiting:
            await anyio.wait_readable(self._fd)
        self._waiting = None


class PipeWriter:
    """Writes without blocking the loop; open until `close`, so that the reader can watch for its end."""

    def __init__(self, pipe: FileIO) -> None:
        os.set_blocking(pipe.fileno(), False)
        self._pipe = pipe
        self._fd = pipe.fileno()

    def write_now(self, data: bytes | memoryview) -> memoryview:
        """Write what there is room for; what is left of it, nothing if nobody reads any more."""
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._fd, left) :]
        except BlockingIOError:
            return left
        except OSError:
            return left[:0]
        return left

    async def write(self, data: bytes | memoryview) -> None:
        """Write all of it, or as much as the reader lives to take."""
        with suppress(OSError):
            while data := self.write_now(data):
                await anyio.wait_writable(self._fd)

    def close(self) -> None:
        """Close it; nobody may be writing."""
        _close(self._pipe)


def _capacity(fd: int) -> int:
    if not hasattr(fcntl, "F_GETPIPE_SZ"):
        return DEFAULT_CAPACITY
    try:
        return fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ)
    except OSError:
        return DEFAULT_CAPACITY


def _close(pipe: FileIO) -> None:
    if not pipe.closed:
        anyio.notify_closing(pipe.fileno())
        pipe.close()
