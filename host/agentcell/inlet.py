"""Lines in: whole ones as they come, whoever is slow, and a word when one does not end."""

import os
from collections.abc import Awaitable, Callable, Iterable
from math import inf

import anyio
from anyio.lowlevel import checkpoint

from agentcell_protocol.framing import LineFramer, Overlong

CHUNK_BYTES = 256 * 1024
"""In one read: a pipe gives less."""

UNFINISHED_SECONDS = 5.0
"""From a line's beginning to saying that its end is missing: a program that writes lines takes milliseconds."""

BUSY_SECONDS = 0.005
"""Of taking lines at a stretch: there may be tens of thousands in a chunk, and others have something to do, too."""


async def hear(
    fd: int,
    take: Callable[[bytes | Overlong], object],
    on_unfinished: Callable[[], object],
    *,
    take_last: Callable[[bytes | Overlong], object] | None = None,
    has_room: Callable[[], Awaitable[object]] = checkpoint,
    seconds: float = UNFINISHED_SECONDS,
) -> None:
    """Have each line of `fd` taken, until it ends or breaks; the last one needs no line end.

    Without one it goes to `take_last`, if that is given. `on_unfinished` is called once for each line that has begun
    and does not end within so many seconds. `has_room` returns when more may be taken.
    """
    framer = LineFramer()
    deadline = inf
    while True:
        await has_room()
        with anyio.CancelScope(deadline=deadline) as waiting:
            chunk = await _read(fd)
        if waiting.cancelled_caught:
            on_unfinished()
            deadline = inf
            continue
        had_begun = framer.has_begun
        lines = framer.push(chunk) if chunk else framer.finish()
        if not (framer.has_begun and had_begun) or b"\n" in chunk:
            deadline = anyio.current_time() + seconds if framer.has_begun else inf
        take_these = take if chunk or take_last is None else take_last
        await _take_all(lines, take_these, has_room)
        if not chunk:
            return


async def _take_all(
    lines: Iterable[bytes | Overlong],
    take: Callable[[bytes | Overlong], object],
    has_room: Callable[[], Awaitable[object]],
) -> None:
    rest_at = anyio.current_time() + BUSY_SECONDS
    for line in lines:
        take(line)
        if anyio.current_time() >= rest_at:
            await checkpoint()
            await has_room()
            rest_at = anyio.current_time() + BUSY_SECONDS


async def _read(fd: int) -> bytes:
    """Wait for the next bytes; empty at the end."""
    while True:
        try:
            await anyio.wait_readable(fd)
        except PermissionError:  # a file, which epoll refuses: there is nothing to wait for
            await checkpoint()
        try:
            return os.read(fd, CHUNK_BYTES)
        except BlockingIOError:  # whoever shares the stream was quicker
            continue
        except OSError:
            return b""
