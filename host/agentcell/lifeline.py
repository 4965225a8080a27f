"""Noticing that the program that wanted a session is gone."""

import os
from contextlib import suppress

import anyio

from agentcell.stop import HOST_LOST, Stop

READ_BYTES = 64 * 1024
"""Of what comes after the request line, which is thrown away."""


async def watch_lifeline(fd: int, parent: int, stop: Stop) -> None:
    """Cancel the session when `fd` ends or the process `parent` dies, whichever is seen first.

    The parent's death is watched as well because what it forked may hold the other end of `fd` for long.
    """
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch_death, parent, tasks.cancel_scope)
        while await _has_more(fd):
            pass
        tasks.cancel_scope.cancel()
    stop.cancel(HOST_LOST)


async def _has_more(fd: int) -> bool:
    """Wait for the next bytes and drop them; False at the end."""
    try:
        await anyio.wait_readable(fd)
        return bool(os.read(fd, READ_BYTES))
    except OSError:  # a file, which epoll refuses and which has no more than it had; or a stream that broke
        return False


async def watch_death(pid: int, scope: anyio.CancelScope) -> None:
    """Cancel the scope when the process dies; never, where the kernel tells nothing of it."""
    with suppress(AttributeError, OSError):
        pidfd = os.pidfd_open(pid)
        try:
            await anyio.wait_readable(pidfd)
        finally:
            anyio.notify_closing(pidfd)
            os.close(pidfd)
        scope.cancel()
