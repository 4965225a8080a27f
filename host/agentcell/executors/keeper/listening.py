"""The socket of a keeper, in a directory for its user alone."""

import os
import socket
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup

from agentcell.hold import held
from agentcell.scratch import remove

Serve = Callable[[socket.socket], Coroutine[Any, Any, None]]

NAME = "attempts"
"""Of the socket in its directory."""

PREFIX = "agentcell-keeper-"
"""Of the directories' names: by it those of keepers that were killed are found."""

MOST_PATH_BYTES = 107
"""Of a socket's path, by the kernel's structure for it."""

RANDOM_BYTES = 8
"""That a fresh directory has in its name behind the prefix."""

NEAR = "/tmp"  # noqa: S108 - a fresh directory is made there, for this user alone
"""Where the directory is made when TMPDIR has too long a path for a socket below it."""

BACKLOG = 4096
"""Connections that wait to be taken, as many as the kernel lets: a keeper that stood still for a while refuses none."""

TRIES = 5
"""To make a directory that nobody takes for a dead keeper's, between its making and its being held."""

BREATH_SECONDS = 0.1
"""Until the next try where no descriptor was left for a connection: attempts end and give theirs back meanwhile."""


@contextmanager
def listening() -> Iterator[tuple[socket.socket, str]]:
    """A socket that connections can be made to, and its path; both are gone afterwards. Raises OSError."""
    with _directory() as directory:
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
        try:
            connection, _ = listener.accept()
        except BlockingIOError:  # who wanted one is gone again
            continue
        except OSError:  # of a limit on descriptors: others give theirs back
            await anyio.sleep(BREATH_SECONDS)
            continue
        connection.setblocking(False)
        tasks.start_soon(serve, connection)


def remove_left(directory: Path) -> None:
    """Remove the directory of a keeper that has died; that of one that lives is held, and left alone. Blocks."""
    with suppress(OSError), held(directory):
        remove(directory)


@contextmanager
def _directory() -> Iterator[Path]:
    """A fresh one, after those of keepers that were killed are removed. Raises OSError."""
    root = _root()
    for left in Path(root).glob(f"{PREFIX}*"):
        remove_left(left)
    with ExitStack() as holding:
        directory = _held(root, holding)
        try:
            yield directory
        finally:
            remove(directory)


def _held(root: str, holding: ExitStack) -> Path:
    for _ in range(TRIES):
        directory = Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))
        try:
            holding.enter_context(held(directory))
        except (BlockingIOError, FileNotFoundError):  # another keeper that starts has found it unheld
            continue
        except OSError:  # without locks it may be left behind
            pass
        return directory
    raise BlockingIOError(f"{root} is swept by others all the time")


def _root() -> str:
    """Where the path of a socket is short enough."""
    root = tempfile.gettempdir()
    size = len(os.fsencode(os.path.join(root, PREFIX, NAME))) + RANDOM_BYTES  # noqa: PTH118 - as above
    return root if size <= MOST_PATH_BYTES else NEAR
