"""A keeper for a test, with stand-ins as its cells: started as anybody would, and ended whatever becomes of it."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from signal import SIGCONT, SIGKILL, Signals, pidfd_send_signal
from threading import Timer
from typing import IO, Any

from tests.faults.harness import Room

from agentcell.executors.connection import attempt_lines
from agentcell.executors.wire import ATTEMPT, CANCEL, ENDED, SETTLE, line, packed
from agentcell.limits import Limits
from agentcell.orders import Order
from agentcell_protocol.cell import marked, new_marker

BOUND_SECONDS = 60.0
"""For anything a test waits for; it takes a second."""

LOOK_SECONDS = 0.02

STAND_IN = (sys.executable, "-P", "-m", "agentcell.testing")
"""A worker whose requests bring their steps."""

STRAY = {"spawn": ["setsid", "sleep", "600"]}
HANGS = ({"text": "halfway"}, {"hang": True})
CLINGS = ({"ignore": ["SIGTERM", "EOF"]}, *HANGS)

Message = dict[str, Any]


def order(room: Room, *steps: Mapping[str, Any], is_heard: bool = True, **members: Any) -> Order:
    """One whose cell does these steps."""
    limits = members.pop("limits", Limits())
    request = room.request(context={"stand_in": list(steps)}, **members)
    listener = None if not is_heard else lambda _event: None
    return Order(request, environment=room.environment, on_event=listener, limits=limits, keep=False)


class Asked:
    """An attempt that was asked for: what its keeper says of it."""

    def __init__(self, address: str, attempt: Order | bytes) -> None:
        self.marker = new_marker() if isinstance(attempt, bytes) else attempt.marker
        first = attempt if isinstance(attempt, bytes) else attempt_line(attempt)
        self._chunks = attempt_lines(address, first)
        self._messages: list[Message] = []

    def until(self, is_it: Callable[[Message], bool]) -> list[Message]:
        """All messages to the first that is the one. Raises EOFError when there is none."""
        seen = [self._next()]
        while not is_it(seen[-1]):
            seen.append(self._next())
        return seen

    def begun(self) -> "Asked":
        """Itself, when the cell has said something."""
        self.until(lambda message: any(event["type"] == "text" for event in message.get("events", ())))
        return self

    def result(self) -> Message:
        """How it ended, when the keeper has said so and nothing more."""
        ended = self.rest()[-1]
        assert (ended["type"], ended["marker"]) == (ENDED, self.marker)
        result: Message = ended["result"]
        return result

    def rest(self) -> list[Message]:
        """All that is still to come."""
        with closing(self):
            seen = self.until(lambda message: message["type"] == ENDED)
            assert list(self._chunks) == []
        return seen

    def close(self) -> None:
        """Leave it."""
        self._chunks.close()  # type: ignore[attr-defined]

    def _next(self) -> Message:
        while not self._messages:
            chunk = next(self._chunks, None)
            if chunk is None:
                raise EOFError
            assert chunk.endswith(b"\n")
            self._messages += map(json.loads, chunk.splitlines())
        return self._messages.pop(0)


def attempt_line(attempt: Order) -> bytes:
    """What asks for it."""
    return line(ATTEMPT, marker=attempt.marker, order=packed(attempt))


@dataclass
class Kept:
    """A keeper that is there, and our ends of its pipes."""

    ready: Message
    stdin: IO[bytes]
    stdout: IO[bytes]
    pidfd: int

    @property
    def address(self) -> str:
        """Of its socket."""
        return str(self.ready["address"])

    @property
    def directory(self) -> Path:
        """Where that is."""
        return Path(self.address).parent

    def ask(self, attempt: Order | bytes) -> Asked:
        """Ask for an attempt, or for whatever that line says."""
        return Asked(self.address, attempt)

    def say(self, kind: str, **members: Any) -> None:
        """A line for its stdin."""
        self.stdin.write(line(kind, **members))

    def cancel(self, marker: str, reason: str = "SIGTERM") -> None:
        """Cancel that attempt."""
        self.say(CANCEL, marker=marker, reason=reason)

    def settle(self, *markers: str) -> Message:
        """Have it end what is left of these; its answer."""
        self.say(SETTLE, markers=list(markers))
        answer: Message = json.loads(self.stdout.readline())
        return answer

    def send(self, number: Signals) -> None:
        """Send it a signal."""
        pidfd_send_signal(self.pidfd, number)

    def has_ended(self, seconds: float = BOUND_SECONDS) -> bool:
        """Wait for its end."""
        return bool(select.select([self.pidfd], [], [], seconds)[0])

    @property
    def peak_kb(self) -> int:
        """Most of the memory it has had."""
        status = Path(f"/proc/{self.ready['pid']}/status").read_text()
        return next(int(text.split()[1]) for text in status.splitlines() if text.startswith("VmHWM"))


@contextmanager
def keeping(room: Room, **settings: Any) -> Iterator[Kept]:
    """A keeper, ended by the end of its stdin, and killed if that does not help."""
    command = [sys.executable, "-P", "-m", "agentcell.executors.keeper"]
    settings = {"starter": os.getpid(), "worker_command": STAND_IN, **settings}
    with subprocess.Popen(
        [*command, json.dumps(settings)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        env=room.environment,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.wait(BOUND_SECONDS) == 0
        ready = json.loads(process.stdout.readline())
        with _held(ready["pid"]) as pidfd:
            yield Kept(ready, process.stdin, process.stdout, pidfd)
            process.stdin.close()
            assert select.select([pidfd], [], [], BOUND_SECONDS)[0]
            assert not Path(ready["address"]).parent.exists()


@contextmanager
def _held(pid: int) -> Iterator[int]:
    """A descriptor for the process, which does not outlive the test."""
    pidfd = os.pidfd_open(pid)

    def kill() -> None:
        with suppress(ProcessLookupError):
            pidfd_send_signal(pidfd, SIGKILL)

    clock = Timer(BOUND_SECONDS, kill)
    clock.start()
    try:
        yield pidfd
    finally:
        clock.cancel()
        with suppress(ProcessLookupError):
            pidfd_send_signal(pidfd, SIGCONT)
        kill()
        os.close(pidfd)


def is_gone(marker: str) -> bool:
    """Whether nothing carries the marker any more, in bounded time."""
    give_up_at = time.monotonic() + BOUND_SECONDS
    while marked(marker):
        if time.monotonic() > give_up_at:
            return False
        time.sleep(LOOK_SECONDS)
    return True
