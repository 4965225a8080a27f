"""The lifeline: how a worker learns that its host is gone."""

import os
from contextlib import suppress

import anyio

READ_BYTES = 64 * 1024
"""Of what comes after the request line, which is thrown away."""


async def wait_for_end(reads: int, *, parent: int | None) -> None:
    """Return when the request's stream has ended or the process `parent` has died; what still comes is dropped."""
    async with anyio.create_task_group() as tasks:
        if parent is not None:
            tasks.start_soon(_wait_for_parent, parent, tasks.cancel_scope)
        await _wait_for_eof(reads)
        tasks.cancel_scope.cancel()


async def _wait_for_eof(reads: int) -> None:
    while True:
        with suppress(PermissionError):  # epoll refuses regular files and /dev/null, which are always readable
            await anyio.wait_readable(reads)
        if not os.read(reads, READ_BYTES):
            return


async def _wait_for_parent(parent: int, scope: anyio.CancelScope) -> None:
    """Not every write end of a pipe closes with the process that made it, so the parent is watched as well."""
    if not hasattr(os, "pidfd_open"):
        return
    try:
        pidfd = os.pidfd_open(parent)
    except OSError:
        return
    try:
        await anyio.wait_readable(pidfd)
    finally:
        os.close(pidfd)
    scope.cancel()
