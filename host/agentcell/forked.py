"""A cell that a fork server started, as the host sees it: through its report socket, whoever else is alive."""

import errno
import os
import select
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO

import anyio

from agentcell.spawn import UNSEEN, Child, Status
from agentcell_protocol import cell
from agentcell_protocol.forking import HURRY, Report, receive_report

SWEEP_SECONDS = cell.TERM_SECONDS + cell.KILL_SECONDS + 1.0
"""From a cell's death to giving up on the server's word that nothing of it is left."""

REPORT_SECONDS = 2.0
"""From a cell's death to giving up on a server that does not tell of it: somebody has stopped it, and all is to be
gone within 5 s."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a worker and the children it had waited for took; the memory is the largest single process's."""

    max_rss_kb: int
    cpu_seconds: float


class ForkedChild(Child):
    """A child of the fork server.

    It may live longer than the server: then its death is still seen, but not how it died. Signals that come before
    its pid is known are sent as soon as it is.
    """

    start = "fork"

    def __init__(
        self, report: socket.socket, explain: Callable[[], str], *, stdin: FileIO, stdout: FileIO, stderr: FileIO
    ) -> None:
        super().__init__(stdin=stdin, stdout=stdout, stderr=stderr)
        self.spent: Spent | None = None
        self._report = report
        self._either = select.epoll(2)  # the report and, once it is known, the pidfd: one wait takes no task for each
        self._either.register(report, select.EPOLLIN)
        self._explain = explain
        self._pid: int | None = None
        self._pidfd: int | None = None
        self._status: Status | None = None
        self._pending: list[signal.Signals] = []
        self._swept = 0
        self._is_clear = False
        self._has_ended = False

    @property
    def pid(self) -> int | None:
        """None until the cell has reported it."""
        self._hear()
        return self._pid

    @property
    def status(self) -> Status | None:
        """How it ended; None while it lives."""
        self._hear()
        if self._status is None and self._has_ended and (self._pidfd is None or _has_died(self._pidfd)):
            self._status = UNSEEN
        return self._status

    async def exited(self) -> Status:
        """Wait for its death, whoever else holds its pipes."""
        while (status := self.status) is None:
            if self._pidfd is not None and _has_died(self._pidfd):
                await self._hear_of_death()
            else:
                await anyio.wait_readable(self._either.fileno())
        return status

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it lives."""
        if self.status is not None:
            return
        if self._pid is None:
            self._pending.append(number)
        else:
            self._send(self._pid, number)

    @property
    def is_swept(self) -> bool:
        """Whether nothing more is to be heard of it."""
        return self._has_ended or self.status == UNSEEN

    @property
    def is_clear(self) -> bool:
        """Whether the server has seen for certain that nothing of it is left below the server."""
        return self._is_clear

    async def swept(self) -> int:
        """Wait until the server has ended what the cell left, or is lost; how many processes that were."""
        with anyio.move_on_after(SWEEP_SECONDS):
            while not self.is_swept:
                await anyio.wait_readable(self._report)
        return self._swept

    def hurry(self) -> None:
        """Have the server kill it and what it left; one that is not yet forked never will be."""
        with suppress(OSError):
            self._report.send(HURRY, socket.MSG_DONTWAIT)

    def close(self) -> None:
        """Give back every descriptor; one that still lives is killed, by the server if there is one."""
        if self.status is None:
            self.send(signal.SIGKILL)
            self.hurry()
        super().close()
        anyio.notify_closing(self._either.fileno())
        self._either.close()
        anyio.notify_closing(self._report)
        self._report.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None

    async def _hear_of_death(self) -> None:
        with anyio.move_on_after(REPORT_SECONDS) as waiting:
            while self.status is None and not self._has_ended:
                await anyio.wait_readable(self._report)
        if waiting.cancelled_caught:
            self._status = UNSEEN

    def _hear(self) -> None:
        """Take what was reported by now."""
        while not self._has_ended:
            try:
                report, descriptors = receive_report(self._report)
            except BlockingIOError:
                return
            if report is None:
                self._end()
            else:
                self._take(report, descriptors)

    def _take(self, report: Report, descriptors: list[int]) -> None:
        match report:
            case {"pid": int(pid)}:
                self._pid = pid
                if descriptors:  # there may have been none left for it
                    self._pidfd = descriptors[0]
                    self._either.register(self._pidfd, select.EPOLLIN)
                for number in self._pending:
                    self._send(pid, number)
            case {"failed": int(number), "message": str(message)}:
                self.failure = OSError(number, message)
            case {"status": int(status), "max_rss_kb": int(memory), "cpu_seconds": float(seconds)}:
                self._status, self.spent = status, Spent(memory, seconds)
            case {"swept": int(count), "is_clear": bool(is_clear)}:
                self._swept, self._is_clear = count, is_clear

    def _send(self, pid: int, number: signal.Signals) -> None:
        with suppress(OSError):
            if self._pidfd is not None:
                signal.pidfd_send_signal(self._pidfd, number)
            elif not self._has_ended:  # the server has not told of its death: the pid is its own
                os.kill(pid, number)

    def _end(self) -> None:
        self._has_ended = True
        self._either.unregister(self._report)
        if self._pid is None and self._status is None and self.failure is None:
            self.failure = OSError(errno.EPIPE, self._explain())


def _has_died(pidfd: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))
