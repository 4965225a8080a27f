"""Starting a cell. However it was started, what comes back is a `Child`."""

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from io import FileIO
from subprocess import PIPE, Popen
from typing import IO, Literal, cast

import anyio

from agentcell.pipes import PipeReader, PipeWriter

WORKER = (sys.executable, "-P", "-m", "agentcell_worker")
"""The bare cell; -P keeps the files of the directory it starts in from being imported."""

POLL_SECONDS = 0.05
"""Between two looks at a child where the kernel gives no descriptor for a process."""

DEATH_SECONDS = 1.0
"""From a SIGKILL to giving up on a worker whose end nobody waited for."""

Start = Literal["fork", "cold"]

Spawn = Callable[[Mapping[str, str], str], "Child"]
"""Starts a cell with an environment in a directory. Raises OSError."""


class Child:
    """A cell's worker from its start to its end: its pid, our ends of its pipes, and its death.

    `poll` gives what the kernel said of its end (an exit code, or minus the number of the signal that killed it),
    None while it lives; the pid stays the worker's own until then.
    """

    def __init__(
        self,
        pid: int,
        poll: Callable[[], int | None],
        *,
        start: Start,
        stdin: FileIO,
        stdout: FileIO,
        stderr: FileIO,
    ) -> None:
        self.pid = pid
        self.start = start
        self.stdin = PipeWriter(stdin)
        self.stdout = PipeReader(stdout)
        self.stderr = PipeReader(stderr)
        self._poll = poll
        self._pidfd = _open_pidfd(pid)

    @property
    def status(self) -> int | None:
        """How it ended; None while it lives."""
        return self._poll()

    async def exited(self) -> int:
        """Wait for its death, whoever else holds its pipes, and reap it; its status."""
        while (status := self.status) is None:
            if self._pidfd is None:
                await anyio.sleep(POLL_SECONDS)
            else:
                await anyio.wait_readable(self._pidfd)
        return status

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it lives."""
        if self.status is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def close(self) -> None:
        """Give back every descriptor, and the worker to nobody: one that still lives is killed and reaped."""
        self._see_dead()
        for pipe in (self.stdin, self.stdout, self.stderr):
            pipe.close()
        if self._pidfd is not None:
            anyio.notify_closing(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None

    def _see_dead(self) -> None:
        """Blocks only where a clean-up was broken off, and then for moments."""
        self.send(signal.SIGKILL)
        give_up_at = time.monotonic() + DEATH_SECONDS
        while self.status is None and time.monotonic() < give_up_at:
            time.sleep(DEATH_SECONDS / 100)


def start_cold(environment: Mapping[str, str], directory: str, *, command: Sequence[str] = WORKER) -> Child:
    """Start `command` as a fresh process, in a session of its own. Raises OSError."""
    process = Popen(
        command,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        bufsize=0,
        cwd=directory,
        env=dict(environment),
        close_fds=True,
        start_new_session=True,
    )
    return Child(
        process.pid,
        process.poll,
        start="cold",
        stdin=_raw(process.stdin),
        stdout=_raw(process.stdout),
        stderr=_raw(process.stderr),
    )


def _raw(stream: IO[bytes] | None) -> FileIO:
    """What Popen gives for a pipe without buffering."""
    return cast("FileIO", stream)


def _open_pidfd(pid: int) -> int | None:
    with suppress(AttributeError, OSError):
        return os.pidfd_open(pid)
    return None
