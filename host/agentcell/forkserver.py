"""The host's half of the fork server: a process that has the SDK loaded and forks a cell in milliseconds."""

import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from io import FileIO
from signal import SIGCONT
from subprocess import Popen, TimeoutExpired

import anyio

from agentcell.forked import ForkedChild
from agentcell.pipes import channel
from agentcell.reap import in_thread
from agentcell.spawn import WORKER, Child, Spawn, start_cold
from agentcell_protocol.cell import MARKER, Start
from agentcell_protocol.forking import send_with, write_surroundings

SERVER = (sys.executable, "-X", "utf8", "-P", "-m", "agentcell_worker.forkserver")
"""UTF-8 whatever the cells' locale is: the interpreter is theirs, too."""

VARIABLES = ("HOME", "LANG", "PATH")
"""All that the server gets of the host's environment: enough to find what it imports."""

END_SECONDS = 8.0
"""From the word to end to SIGKILL: within 5 s it has ended all its cells; without any, at once."""

WORDS_BYTES = 8 * 1024
"""Of what the server said last, which explains why it was lost."""


class ForkServer:
    """Starts cells as forks of one process, which comes up with the first of them and again when it was lost.

    To be closed, which ends that process and whatever it had started.
    """

    def __init__(self, command: Sequence[str] = SERVER) -> None:
        self._command = command
        self._server: _Server | None = None

    @property
    def pid(self) -> int | None:
        """The server's; None when there is none."""
        return None if self._server is None else self._server.process.pid

    def spawn(self, environment: Mapping[str, str], directory: str) -> Child:
        """Start a cell; see `agentcell.spawn.Spawn`. Raises ValueError for what cannot be in an environment, too."""
        if self._server is not None and self._server.process.poll() is not None:
            self.close()
        try:
            return self._running().order(environment, directory)
        except ConnectionError:
            self.close()
            return self._running().order(environment, directory)

    def close(self) -> None:
        """End the server, all its cells first. Blocks: moments if it has none."""
        if self._server is not None:
            self._server.end()
            self._server = None

    def _running(self) -> "_Server":
        self._server = self._server or _Server(self._command)
        return self._server


class _Server:
    """One server process and our end of its control socket."""

    def __init__(self, command: Sequence[str]) -> None:
        self._words = os.memfd_create("agentcell-forkserver-stderr")
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, ExitStack() as undo:
            undo.callback(self._release)
            self.process = Popen(
                [*command, "--host", str(os.getpid())],
                stdin=theirs.fileno(),
                stdout=self._words,
                stderr=self._words,
                cwd="/",
                env={name: os.environ[name] for name in VARIABLES if name in os.environ},
                start_new_session=True,
            )
            undo.pop_all()

    def order(self, environment: Mapping[str, str], directory: str) -> Child:
        """Send the order for a cell."""
        with ExitStack() as ours, ExitStack() as theirs:
            surroundings = write_surroundings(environment, directory)
            theirs.callback(os.close, surroundings)
            stdin, stderr = (_pipe(ours, theirs, is_read_here=here) for here in (False, True))
            stdout, writes = channel()
            ours.enter_context(stdout)
            theirs.enter_context(writes)
            report, reporter = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            ours.enter_context(report)
            theirs.enter_context(reporter)
            sent = [stdin.theirs, writes.fileno(), stderr.theirs, reporter.fileno(), surroundings]
            marker = environment.get(MARKER, "-").encode()
            child = ForkedChild(report, self.explain, stdin=stdin.ours, stdout=stdout, stderr=stderr.ours)
            send_with(self._control, marker, sent)
            ours.pop_all()
            return child

    def explain(self) -> str:
        """Why it is lost, as far as it said so."""
        said = ""
        with suppress(OSError):
            size = os.fstat(self._words).st_size
            said = os.pread(self._words, WORDS_BYTES, max(0, size - WORDS_BYTES)).decode(errors="replace").strip()
        last = said.rpartition("\n")[2]
        return f"the fork server was lost: {last}" if last else "the fork server was lost"

    def end(self) -> None:
        """Have it end; kill it if it does not."""
        self._control.shutdown(socket.SHUT_RDWR)  # closing is not enough where a fork of ours holds it, too
        self.process.terminate()
        self.process.send_signal(SIGCONT)  # one that is stopped would not hear of it
        try:
            self.process.wait(END_SECONDS)
        except TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._release()

    def _release(self) -> None:
        self._control.close()
        os.close(self._words)
        self._words = -1


@dataclass(frozen=True, slots=True)
class _Pipe:
    ours: FileIO
    theirs: int


def _pipe(ours: ExitStack, theirs: ExitStack, *, is_read_here: bool) -> _Pipe:
    """A pipe whose ends are closed with the one stack or the other."""
    reads, writes = os.pipe()
    here, there = (reads, writes) if is_read_here else (writes, reads)
    theirs.callback(os.close, there)
    return _Pipe(ours.enter_context(FileIO(here, "rb" if is_read_here else "wb")), there)


@asynccontextmanager
async def starting(start: Start = "fork", *, command: Sequence[str] = WORKER) -> AsyncIterator[Spawn]:
    """What starts cells for as long as the context lasts: forks where that can be, otherwise fresh processes.

    Another `command` than our worker's cannot be forked.
    """
    if start == "cold" or command is not WORKER or not can_fork():
        yield partial(start_cold, command=command)
        return
    server = ForkServer()
    try:
        yield server.spawn
    finally:
        with anyio.CancelScope(shield=True):
            await end(server)


async def end(server: ForkServer) -> None:
    """Close it beside the loop; to be shielded."""
    if server.pid is not None:
        await in_thread(server.close)


def can_fork() -> bool:
    """Whether this system has what a fork server needs."""
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
        os.close(os.memfd_create("agentcell-probe"))
    except OSError:
        return False
    return True
