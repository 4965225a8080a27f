"""`python -P -m agentcell_worker.forkserver --host PID`: a process that has everything loaded and forks the cells.

Its stdin is the host's control socket (see `agentcell_protocol.forking`). It has one thread and no event loop, never
reads a request, and waits for nobody. When its host is gone it ends all cells, and itself.
"""

import gc
import os
import signal
import socket
import sys
import time
from contextlib import ExitStack, suppress
from functools import partial
from importlib import import_module
from math import inf
from selectors import EVENT_READ, PollSelector

from agentcell_protocol import cell
from agentcell_protocol.forking import MESSAGE_BYTES, ORDER_DESCRIPTORS, receive_with, send_report
from agentcell_protocol.sdk import sdk_version
from agentcell_worker import forked
from agentcell_worker.agents.registry import AGENT_CONFIGS
from agentcell_worker.cells import Cell, Cells
from agentcell_worker.forked import CellMain, Order

LOADED_LATE = (
    "anyio._backends._asyncio",
    "anyio._core._subprocesses",
    "claude_agent_sdk._internal.query",
    "claude_agent_sdk._internal.session_resume",
    "claude_agent_sdk._internal.transport.subprocess_cli",
    "opentelemetry.propagate",
)
"""What the SDK and anyio import when they are used; each cell would pay for it again."""

DEFINITIONS = "agentcell_worker.agents.definitions"
"""What a request with `agents_dir` needs."""

STDIN = 0

END_SECONDS = 15.0
"""From the end of the host to our own, whatever is left: only a process stuck in the kernel takes so long."""


def main() -> None:
    """Serve cells that run the worker."""
    gc.disable()  # what is loaded stays: to look through it again and again takes a tenth of the time
    serve(load())


def load() -> CellMain:
    """The worker's main, with all that it will import imported."""
    from agentcell_worker.main import main as worker_main  # noqa: PLC0415 - a server of other cells does not need it

    sdk_version()  # which each cell says, and to look it up takes a while
    for name in (*(agent.flow for agent in AGENT_CONFIGS.values()), DEFINITIONS, *LOADED_LATE):
        with suppress(ImportError):  # the cell that needs it misses it again, and can say so
            import_module(name)
    return partial(worker_main, start="fork")


def serve(cell_main: CellMain) -> None:
    """Fork a cell that does `cell_main` for each order, until the host is gone."""
    host = _host_pid(sys.argv)
    cell.become_subreaper()
    gc.collect()
    gc.freeze()  # the collector would write to what the cells share
    gc.enable()
    with ExitStack() as lifetime:
        control = lifetime.enter_context(socket.socket(fileno=os.dup(STDIN)))
        _release_stdin()
        order = _Server(control, host, lifetime).run()
    if order is not None:
        forked.run(order, cell_main)
    os._exit(0)


class _Server:
    """Waits for orders, deaths and the end of the host, all at once."""

    def __init__(self, control: socket.socket, host: int, lifetime: ExitStack) -> None:
        self._control = control
        self._cells = Cells(self._forget)
        lifetime.callback(self._cells.close)
        self._is_ending = False
        self._give_up_at = inf
        self._order: Order | None = None
        # poll, because a fork shares what epoll knows
        self._selector = lifetime.enter_context(PollSelector())
        self._selector.register(control, EVENT_READ, self._take_order)
        self._watch_signals(lifetime)
        self._watch_host(host, lifetime)

    def run(self) -> Order | None:
        """Serve until nothing is left to be done; in a fork, its order."""
        while not self._is_ending or (self._cells and time.monotonic() < self._give_up_at):
            for key, _ in self._selector.select(self._cells.timeout()):
                key.data()
                if self._order is not None:
                    return self._order
            self._cells.step()
        self._cells.end_rest()
        return None

    def _watch_signals(self, lifetime: ExitStack) -> None:
        reads, writes = socket.socketpair()
        for end in (reads, writes):
            lifetime.enter_context(end)
            end.setblocking(False)
        signal.set_wakeup_fd(writes.fileno(), warn_on_full_buffer=False)
        self._selector.register(reads, EVENT_READ, partial(self._hear_signals, reads))
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)  # it wakes the loop
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

    def _hear_signals(self, reads: socket.socket) -> None:
        if signal.SIGTERM in reads.recv(MESSAGE_BYTES):
            self._end()

    def _watch_host(self, host: int, lifetime: ExitStack) -> None:
        """Its death, too: what it forked may hold the other end of the control socket for long."""
        try:
            pidfd = os.pidfd_open(host)
        except ProcessLookupError:
            self._end()
            return
        lifetime.callback(os.close, pidfd)
        if os.getppid() != host:
            self._end()
            return
        self._selector.register(pidfd, EVENT_READ, self._end)

    def _take_order(self) -> None:
        if self._is_ending:
            return
        try:
            marker, fds = receive_with(self._control, ORDER_DESCRIPTORS)
        except BlockingIOError:
            return
        except ConnectionError:
            marker, fds = b"", []
        if len(fds) == ORDER_DESCRIPTORS:
            self._start(marker.decode(), Order(*fds))
            return
        for fd in fds:  # there was no room for all of them: the host sees the report socket end
            os.close(fd)
        if not marker:
            self._end()

    def _start(self, marker: str, order: Order) -> None:
        report = socket.socket(fileno=order.report)
        if _is_withdrawn(report):
            report.close()
            order.close()
            return
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            pid = os.fork()
        except OSError as problem:
            send_report(report, {"failed": problem.errno or 0, "message": f"fork: {problem.strerror}"})
            report.close()
        else:
            if pid == 0:
                report.detach()
                self._order = order
                return
            self._listen(self._cells.add(pid, marker, report))
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        order.close()

    def _listen(self, born: Cell) -> None:
        def hear() -> None:
            if not self._cells.listen(born):
                self._selector.unregister(born.report)

        self._selector.register(born.report, EVENT_READ, hear)

    def _forget(self, report: socket.socket) -> None:
        with suppress(KeyError):  # the host has closed its end before
            self._selector.unregister(report)

    def _end(self) -> None:
        """The host is gone."""
        if not self._is_ending:
            self._is_ending = True
            self._give_up_at = time.monotonic() + END_SECONDS
            self._selector.unregister(self._control)
            self._cells.end()


def _host_pid(argv: list[str]) -> int:
    _, name, pid = argv
    if name != "--host":
        raise SystemExit("usage: --host PID")
    return int(pid)


def _release_stdin() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, STDIN)
    os.close(null)


def _is_withdrawn(report: socket.socket) -> bool:
    """Whether the host has said that it does not want the cell any more, or is gone."""
    try:
        report.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    return True


if __name__ == "__main__":
    main()
