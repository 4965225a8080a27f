"""A cell from its fork to its main: it takes its own descriptors, environment and directory, and nothing else."""

import locale
import os
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from agentcell_protocol import cell
from agentcell_protocol.forking import Surroundings, read_surroundings, send_report

CellMain = Callable[[], int]
"""What a cell does, from the request on its stdin to its exit code."""

STANDARD_STREAMS = 3

FAILED = 1
"""Exit code of a cell that could not be prepared, or whose main raised."""


@dataclass(frozen=True, slots=True)
class Order:
    """What one start message brought, by descriptor: the cell's pipes, its report socket and its surroundings."""

    stdin: int
    stdout: int
    stderr: int
    report: int
    surroundings: int

    def close(self) -> None:
        """Give all back but the report socket."""
        for fd in (self.stdin, self.stdout, self.stderr, self.surroundings):
            os.close(fd)


def run(order: Order, cell_main: CellMain) -> NoReturn:
    """Be the cell, in a process that was just forked with all signals blocked."""
    if not _prepare(order):
        os._exit(FAILED)
    code = _code_of(cell_main)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def _prepare(order: Order) -> bool:
    """Take over what the order gives; says whether that could be done, after reporting it."""
    os.setsid()
    with socket.socket(fileno=order.report) as report:
        _report_life(report)
        try:
            surroundings = read_surroundings(order.surroundings)
            _take_descriptors((order.stdin, order.stdout, order.stderr), report.fileno())
            os.chdir(surroundings.directory)
        except OSError as problem:
            send_report(report, {"failed": problem.errno or 0, "message": problem.strerror or str(problem)})
            return False
    _take_environment(surroundings)
    del sys.argv[1:]
    cell.become_subreaper()
    _take_signals()
    return True


def _report_life(report: socket.socket) -> None:
    """With a descriptor of this process, which stays its own when the pid is somebody else's."""
    pidfd = os.pidfd_open(os.getpid())
    send_report(report, {"pid": os.getpid()}, [pidfd])
    os.close(pidfd)


def _take_descriptors(streams: Sequence[int], kept: int) -> None:
    """Make `streams` the standard streams and close everything else but `kept`, other cells' pipes above all."""
    for target, fd in enumerate(streams):
        os.dup2(fd, target)
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - among them is the one that lists them
        if (fd := int(name)) >= STANDARD_STREAMS and fd != kept:
            with suppress(OSError):
                os.close(fd)


def _take_environment(surroundings: Surroundings) -> None:
    """Make it the whole environment, also for what was read from the server's before."""
    os.environb.clear()
    os.environb.update(surroundings.environment)
    time.tzset()
    tempfile.tempdir = None
    with suppress(locale.Error):
        locale.setlocale(locale.LC_CTYPE, "")


def _take_signals() -> None:
    """As a fresh Python has them, and unblocked."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _code_of(cell_main: CellMain) -> int:
    try:
        return cell_main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else FAILED if ended.code else 0
    except BaseException:  # noqa: BLE001 - the outermost frame of the cell; what it came from is another process's
        traceback.print_exc()
        return FAILED
