"""The CLI's process: how it is read, and how it ends, by itself if it will and by force if it must."""

import codecs
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import anyio
from anyio.abc import Process

from agentcell_protocol import cell

CLOSE_SECONDS = 3.0
"""From the end of its input to SIGTERM: the CLI writes its transcript meanwhile, well under a second when idle."""

STDERR_SECONDS = 0.5
"""For what a dead CLI had written to stderr; longer only if a child of it holds the pipe open."""

LOOK_SECONDS = 0.01
"""Between two looks at a process that is about to end."""


class Task(Protocol):
    """A running task that can be asked whether it has ended."""

    def done(self) -> bool:
        """Whether it has."""


@dataclass(frozen=True)
class CliProcess:
    """The CLI, the streams it is read from, and the task that reads its stderr."""

    process: Process
    streams: tuple[Any, ...] = ()
    reader: Task | None = None

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative, a signal's number, when a signal ended it."""
        return self.process.returncode

    def read_leniently(self) -> None:
        """Have bytes that are not UTF-8 read as U+FFFD; they would end the reading."""
        for stream in self.streams:
            if isinstance(strict := getattr(stream, "_decoder", None), codecs.IncrementalDecoder):
                decoder = codecs.getincrementaldecoder("utf-8")("replace")
                decoder.setstate(strict.getstate())
                stream._decoder = decoder  # noqa: SLF001 - the SDK makes the stream, and gives no choice

    async def close_input(self) -> None:
        """Tell it that nothing more will come."""
        if self.process.stdin is not None:
            await self.process.stdin.aclose()

    async def is_dead_within(self, seconds: float) -> bool:
        """Whether it ends in that time."""
        with anyio.move_on_after(seconds):
            await until(lambda: self.exit_code is not None)
        return self.exit_code is not None

    async def end(self) -> None:
        """SIGTERM, SIGKILL after `cell.TERM_SECONDS`."""
        if self.exit_code is None:
            self.process.terminate()
            if not await self.is_dead_within(cell.TERM_SECONDS):
                self.process.kill()
                await self.is_dead_within(cell.KILL_SECONDS)

    async def finish_stderr(self) -> None:
        """Let its last lines be read."""
        with anyio.move_on_after(STDERR_SECONDS):
            await until(lambda: self.reader is None or self.reader.done())


def cli_of(client: object) -> CliProcess | None:
    """The process behind a client of the SDK, which keeps it to itself: None as well when it has moved."""
    transport = getattr(client, "_transport", None)
    process = getattr(transport, "_process", None)
    streams = tuple(getattr(transport, name, None) for name in ("_stdout_stream", "_stderr_stream"))
    return process and CliProcess(process, streams, getattr(transport, "_stderr_task", None))


async def until(is_so: Callable[[], bool], *, look_seconds: float = LOOK_SECONDS) -> None:
    """Look again and again: to wait for a process is also to wait for whoever holds its pipes."""
    while not is_so():  # noqa: ASYNC110 - nobody sets an event when a process ends
        await anyio.sleep(look_seconds)
