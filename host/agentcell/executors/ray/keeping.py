"""A node's keeper, as the process sees it that started it and holds its stdin. For threads: every method blocks."""

import json
import os
import select
import subprocess
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL
from threading import Event, Lock, Thread
from typing import IO, Any

from agentcell.environment import cell_environment
from agentcell.executors.keeper.listening import remove_left
from agentcell.executors.wire import END_SECONDS, READY, SETTLE, line
from agentcell_protocol.codec import decode

KEEPER = (sys.executable, "-P", "-m", "agentcell.executors.keeper")

SETTINGS = ("lease_seconds", "min_free_mb", "max_starts", "worker_command")
"""Of a bridge that are also the keeper's; the keeper has its own for those that are None."""

READY_SECONDS = 60.0
"""From the start to the socket: a second of imports, on a machine that starts many things."""

SETTLED_SECONDS = 60.0
"""From the question to the answer: killing takes a few seconds, and a node may be far behind."""

GONE_SECONDS = 5.0
"""From a kill, or the end of its stdout, to the end of the process."""


class Keeping:
    """Starts a keeper, by the `settings` of its bridge. Raises OSError, also when it is not there in time."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.address = ""
        self._pid: int | None = None
        self._process = subprocess.Popen(
            (*KEEPER, _argument(settings)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=cell_environment(os.environ),
        )
        self._writing, self._settling = Lock(), Lock()
        self._ready, self._over = Event(), Event()
        self._answers: deque[int] = deque()
        self._answered = Event()
        Thread(target=self._hear, daemon=True).start()
        if not self._ready.wait(READY_SECONDS) or self.is_over:
            self.close(0.0)
            raise OSError("the keeper of this node did not start")

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._over.is_set()

    def say(self, text: bytes) -> None:
        """Say it, if it is there to hear it."""
        with self._writing, suppress(OSError, ValueError):
            self._stdin.write(text)
            self._stdin.flush()

    def settle(self, markers: Sequence[str]) -> int:
        """Have it end what is left of these; how many processes were. Raises OSError when it does not say so."""
        with self._settling:
            self._answers.clear()
            self._answered.clear()
            self.say(line(SETTLE, markers=list(markers)))
            if not self._answered.wait(SETTLED_SECONDS) or not self._answers:
                self.close(0.0)  # what it may still say answers no other question
                raise OSError("the keeper of this node did not answer")
            return self._answers.popleft()

    def close(self, seconds: float = END_SECONDS) -> None:
        """End its stdin, wait so long for its end, and then kill it: its fork server and its cells see that."""
        with self._writing, suppress(OSError):
            self._stdin.close()
        if not self._over.wait(seconds) and self._pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, SIGKILL)
            self._over.wait(GONE_SECONDS)

    @property
    def _stdin(self) -> IO[bytes]:
        if self._process.stdin is None:
            raise ValueError("it has no stdin")
        return self._process.stdin

    @property
    def _stdout(self) -> IO[bytes]:
        if self._process.stdout is None:
            raise ValueError("it has no stdout")
        return self._process.stdout

    def _hear(self) -> None:
        try:
            with self._stdout as lines:
                for text in lines:
                    self._take(decode(text))
        finally:
            self._tidy_up()
            self._over.set()
            self._ready.set()
            self._answered.set()

    def _tidy_up(self) -> None:
        """Remove what it has left behind, if it was killed."""
        if self._pid is None:
            return
        with suppress(OSError):
            _wait(os.pidfd_open(self._pid))  # its stdout ends a moment before it lets go of its directory
        remove_left(Path(self.address).parent)

    def _take(self, message: Mapping[str, Any]) -> None:
        if message["type"] == READY:
            self.address, self._pid = message["address"], message["pid"]
            self._process.wait()  # what was started has given way to its child
            self._ready.set()
        else:
            self._answers.append(message["swept"])
            self._answered.set()


def _wait(pidfd: int) -> None:
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        poll.poll(GONE_SECONDS * 1000)
    finally:
        os.close(pidfd)


def _argument(settings: Mapping[str, Any]) -> str:
    own = {name: settings[name] for name in SETTINGS if settings[name] is not None}
    return json.dumps({"starter": os.getpid(), **own})
