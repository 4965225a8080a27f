"""Starting a cell. However it was started, what comes back is a `Child`."""

import os
import signal
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from io import FileIO
from subprocess import PIPE, Popen
from typing import IO, ClassVar, Final, Literal, cast

import anyio

from agentcell.pipes import PipeReader, PipeWriter, channel
from agentcell_protocol.cell import Start

WORKER = (sys.executable, "-P", "-m", "agentcell_worker")
"""The bare cell; -P keeps the files of the directory it starts in from being imported."""

POLL_SECONDS = 0.05
"""Between two looks at a child where the kernel gives no descriptor for a process."""

DEATH_SECONDS = 1.0
"""From a SIGKILL to giving up on a worker whose end nobody waited for."""

UNSEEN: Final = "unseen"
"""The status of a worker that ended and nobody was told how: its fork server was lost, or somebody else reaped it."""

Status = int | Literal["unseen"]
"""What the kernel said of a worker's end: its exit code, or minus the number of the signal that killed it."""

Spawn = Callable[[Mapping[str, str], str], "Child"]
"""Starts a cell with an environment in a directory, without waiting for it. Raises OSError."""


class Child(ABC):
    """A cell's worker from its start to its end: its pid, our ends of its pipes, and its death.

    The pid stays the worker's own until it has a `status`. `failure` is why it could not be started, when that was
    found out afterwards; it has ended then.
    """

    start: ClassVar[Start]

    def __init__(self, *, stdin: FileIO, stdout: FileIO, stderr: FileIO) -> None:
        self.stdin = PipeWriter(stdin)
        self.stdout = PipeReader(stdout)
        self.stderr = PipeReader(stderr)
        self.failure: OSError | None = None

    @property
    @abstractmethod
    def pid(self) -> int | None:
        """None as long as it is not known."""

    @property
    @abstractmethod
    def status(self) -> Status | None:
        """How it ended; None while it lives."""

    @abstractmethod
    async def exited(self) -> Status:
        """Wait for its death, whoever else holds its pipes; its status."""

    @abstractmethod
    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it lives."""

    @property
    def is_swept(self) -> bool:
        """Whether `swept` will return at once."""
        return True

    async def swept(self) -> int:
        """Wait until whoever started it has ended what it left, if that is somebody; how many processes that were."""
        return 0

    @property
    def is_clear(self) -> bool:
        """Whether nothing that descends from it can be left, by the word of the kernel."""
        return False

    def hurry(self) -> None:  # noqa: B027 - nothing is a fine way to do it
        """Have whoever started it kill it and what it left, if that is somebody."""

    def close(self) -> None:
        """Give back every descriptor, and the worker to nobody: one that still lives is killed."""
        for pipe in (self.stdin, self.stdout, self.stderr):
            pipe.close()


class ColdChild(Child):
    """A child of this process."""

    start = "cold"

    def __init__(self, process: "Popen[bytes]", stdout: FileIO) -> None:
        super().__init__(stdin=_raw(process.stdin), stdout=stdout, stderr=_raw(process.stderr))
        self._process = process
        self._status: Status | None = None
        self._pidfd = _open_pidfd(process.pid)

    @property
    def pid(self) -> int:
        """Known from the start."""
        return self._process.pid

    @property
    def status(self) -> Status | None:
        """How it ended; None while it lives. Reaps it."""
        if self._status is None:
            self._status = _reaped(self.pid)
            self._process.returncode = 0 if self._status == UNSEEN else self._status
        return self._status

    async def exited(self) -> Status:
        """Wait for its death and reap it."""
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
                if self._pidfd is None:
                    os.kill(self.pid, number)
                else:
                    signal.pidfd_send_signal(self._pidfd, number)  # who else reaps may have freed the pid by now

    def close(self) -> None:
        """Give back every descriptor; one that still lives is killed and reaped."""
        self._see_dead()
        super().close()
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
    stdout, theirs = channel()
    with theirs, ExitStack() as undo:
        undo.enter_context(stdout)
        process = Popen(
            command,
            stdin=PIPE,
            stdout=theirs,
            stderr=PIPE,
            bufsize=0,
            cwd=directory,
            env=dict(environment),
            close_fds=True,
            start_new_session=True,
        )
        undo.pop_all()
    return ColdChild(process, stdout)


def _raw(stream: IO[bytes] | None) -> FileIO:
    """What Popen gives for a pipe without buffering."""
    return cast("FileIO", stream)


def _reaped(pid: int) -> Status | None:
    """The status of a child that has ended; of one that somebody else has reaped, Popen would say 0."""
    try:
        dead, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return UNSEEN
    return os.waitstatus_to_exitcode(status) if dead else None


def _open_pidfd(pid: int) -> int | None:
    with suppress(AttributeError, OSError):
        return os.pidfd_open(pid)
    return None
