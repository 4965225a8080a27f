"""The program that is checked, as a child: bytes in, lines out, and no wait that lasts for ever."""

import json
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHUNK_BYTES = 64 * 1024
"""In one read: what a pipe holds."""

LOOK_SECONDS = 0.1
"""Between two looks of the reading thread whether it is to go on."""

HELD_SECONDS = 3.0
"""Without a byte after the program's exit: something that it left running holds its stdout."""

MOST_BYTES = 64 * 1024 * 1024
MOST_LINES = 100_000
"""Of what is read: many times what any program has to say, and little enough for one that writes without end."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line as it came, with its line end if it had one; `message` is its object, None if it holds none."""

    raw: bytes
    message: dict[str, Any] | None


class Program:
    """A started program; its stdout is read at once unless `hold` says otherwise, its stderr goes to a file."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], stderr: Path, patience: float) -> None:
        with stderr.open("wb") as errors:
            self._process = subprocess.Popen(
                argv,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                bufsize=0,
                start_new_session=True,
            )
        self._patience = patience
        self._lines: list[Line] = []
        self._rest = bytearray()
        self._taken = 0
        self._has_ended = False
        self._news = threading.Condition()
        self._is_read = threading.Event()
        self._is_read.set()
        self._is_closing = False
        self._reader = threading.Thread(target=self._read, name="conformance-reader", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def lines(self) -> tuple[Line, ...]:
        """Everything until now, what came after the last line end, too."""
        with self._news:
            rest = [_line(bytes(self._rest))] if self._rest else []
            return (*self._lines, *rest)

    def send(self, data: bytes) -> bool:
        """Write to its stdin; whether it took all of it in time."""
        stdin = self._process.stdin
        if stdin is None or stdin.closed:
            return False
        os.set_blocking(stdin.fileno(), False)
        left, deadline = memoryview(data), time.monotonic() + self._patience
        while left:
            poll = select.poll()
            poll.register(stdin, select.POLLOUT)
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                return False
            try:
                left = left[os.write(stdin.fileno(), left) :]
            except BlockingIOError:
                continue
            except OSError:  # it has closed its stdin, or is gone
                return False
        return True

    def say(self, message: Mapping[str, Any]) -> bool:
        """Send a message as a line."""
        return self.send(json.dumps(message).encode() + b"\n")

    def end_input(self) -> None:
        """Close its stdin."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def hold(self) -> None:
        """Read nothing from now on."""
        self._is_read.clear()

    def release(self) -> None:
        """Read on."""
        self._is_read.set()

    def leave(self) -> None:
        """Close our end of its stdout."""
        self._stop_reading()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def await_message(self, wanted: Callable[[dict[str, Any]], bool], count: int = 1) -> dict[str, Any] | None:
        """The `count`-th message that is wanted, of all that came and come; None if it does not come in time."""
        deadline = time.monotonic() + self._patience
        with self._news:
            while True:
                found = [line.message for line in self._lines if line.message is not None and wanted(line.message)]
                if len(found) >= count:
                    return found[count - 1]
                if self._has_ended or not self._news.wait(deadline - time.monotonic()):
                    return None

    def has_exited(self) -> bool:
        """Whether it is gone."""
        return self._process.poll() is not None

    def ended(self) -> int | None:
        """Wait for its exit code, negative for a signal; None when it did not end in time, and was killed."""
        code: int | None = None
        with suppress(subprocess.TimeoutExpired):
            code = self._process.wait(self._patience)
        self.kill()
        self.release()
        taken, deadline = -1, time.monotonic() + self._patience
        while self._reader.is_alive() and taken != self._taken and time.monotonic() < deadline:
            taken = self._taken
            self._reader.join(HELD_SECONDS)
        return code

    def kill(self) -> None:
        """End it if it still runs."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Kill it, and let go of its streams."""
        self.kill()
        self._stop_reading()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def _stop_reading(self) -> None:
        self._is_closing = True
        self.release()
        self._reader.join()

    def _read(self) -> None:
        if self._process.stdout is None:
            return
        descriptor = self._process.stdout.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        while self._is_read.wait() and not self._is_closing:
            if poll.poll(LOOK_SECONDS * 1000) and self._is_read.is_set() and not self._take(descriptor):
                return

    def _take(self, descriptor: int) -> bool:
        """Read once; False at the end, or when it was enough."""
        chunk = os.read(descriptor, CHUNK_BYTES)
        with self._news:
            self._taken += len(chunk)
            self._rest += chunk
            if b"\n" in chunk:
                *whole, self._rest = self._rest.split(b"\n")
                self._lines += [_line(bytes(line) + b"\n") for line in whole]
            self._has_ended = not chunk or self._taken > MOST_BYTES or len(self._lines) > MOST_LINES
            self._news.notify_all()
        return not self._has_ended


def _line(raw: bytes) -> Line:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        value = None
    return Line(raw, value if isinstance(value, dict) else None)
