"""The standard streams, whatever a program was started with."""

import os
from contextlib import suppress

STDIN, STDOUT, STDERR = 0, 1, 2


def hold_standard_streams() -> None:
    """Open what was closed on /dev/null: no pipe of a cell may get the number of a standard stream."""
    for fd in (STDIN, STDOUT, STDERR):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def own_terminal(descriptor: int) -> int:
    """For a terminal, a descriptor through which no write ever waits, and that nobody shares; others as they are."""
    with suppress(OSError):
        return os.open(os.ttyname(descriptor), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    return descriptor
