"""A scope for what a test starts: it is ended whatever becomes of the test, and no wait for it lasts for ever."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, AnyStr

if TYPE_CHECKING:
    import subprocess

BOUND_SECONDS = 60.0
"""For a process that takes a second or two."""


@contextmanager
def ending(process: "subprocess.Popen[AnyStr]", seconds: float = BOUND_SECONDS) -> Iterator["subprocess.Popen[AnyStr]"]:
    """The process, killed at the end if it still runs, and after `seconds`, so that no read from it takes longer."""
    clock = Timer(seconds, process.kill)
    with process:
        clock.start()
        try:
            yield process
        finally:
            clock.cancel()
            process.kill()
