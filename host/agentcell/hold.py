"""Holding a directory: as long as this process lives, and no longer, whatever ends it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """Within, nobody else can hold the directory, in this process neither.

    Raises BlockingIOError when somebody does, and another OSError when it is gone or its file system knows no locks.
    """
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            os.stat(directory)  # noqa: PTH116 - raises when it was removed before it was held
            yield
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)  # a forked process that has the descriptor, too, holds nothing any more
    finally:
        os.close(fd)
