"""The socket of a keeper, in a directory for its user alone."""

import os
import socket
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from anyio.abc import TaskGroup

Serve = Callable[[socket.socket], Coroutine[Any, Any, None]]

NAME = "attempts"

PREFIX = "agentcell-keeper-"

MOST_PATH_BYTES = 107
"""Of a socket's path, by the kernel's structure for it."""

RANDOM_BYTES = 8
"""That a fresh directory has in its name behind the prefix."""

NEAR = "/tmp"  # noqa: S108 - a fresh directory is made there, for this user alone

BACKLOG = 4096
"""Connections that wait to be taken, as many as the kernel lets: a keeper that stood still for a while refuses none."""

BREATH_SECONDS = 0.1
"""Until the next try where there was no descriptor left for a connection."""


@contextmanager
def listening() -> Iterator[tuple[socket.socket, str]]:
    """A socket that connections can be made to, and its path; both are gone afterwards. Raises OSError."""
    with TemporaryDirectory(prefix=PREFIX, dir=_root(), ignore_cleanup_errors=True) as directory:
        address = os.path.join(directory, NAME)  # noqa: PTH118 - a text is what the wire takes
        with socket.socket(socket.AF_UNIX) as listener:
            listener.setblocking(False)
            listener.bind(address)
            listener.listen(BACKLOG)
            yield listener, address


async def accept(listener: socket.socket, tasks: TaskGroup, serve: Serve) -> None:
    """Have each connection served in a task of its own, for ever."""
    while True:
        await anyio.wait_readable(listener)
        connection = None
        try:
            connection, _ = listener.accept()
        except BlockingIOError:  # who wanted one is gone again
            continue
        except OSError:  # of a limit on descriptors: others give theirs back
            await anyio.sleep(BREATH_SECONDS)
            continue
        connection.setblocking(False)
        tasks.start_soon(serve, connection)


def _root() -> str:
    """Where the path of a socket is short enough."""
    root = tempfile.gettempdir()
    size = len(os.fsencode(os.path.join(root, PREFIX, NAME))) + RANDOM_BYTES  # noqa: PTH118 - as above
    return root if size <= MOST_PATH_BYTES else NEAR
