"""A file that only grows, by whole lines that are on the disk when the one who appends is told so."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import anyio

from agentcell.batch.repair import Accept, Repair, put_whole, repaired, sync_directory
from agentcell.reap import in_thread
from agentcell.transcripts import PRIVATE_FILE
from agentcell.writing import write_all
from agentcell_protocol.codec import encode


@dataclass(slots=True, eq=False)
class _Waiting:
    """A line on its way to the disk, and what became of it."""

    line: bytes
    offset: int = -1
    failure: OSError | None = None
    is_done: bool = False


class Lines:
    """The lines of one file, which nobody else writes to. `repair` is what had to be set aside to go on with it."""

    def __init__(self, path: Path, repair: Repair | None) -> None:
        self.path = path
        self.repair = repair
        self._fd = _open(path)
        self._end = os.fstat(self._fd).st_size
        self._is_torn = False
        self._writing = Lock()
        self._turn = anyio.Lock()
        self._waiting: list[_Waiting] = []

    @classmethod
    @contextmanager
    def open(cls, path: Path, accept: Accept) -> "Iterator[Lines]":
        """The lines of the file, made if need be and repaired; `accept` is told of each that is there. Blocks."""
        if not path.exists():
            os.close(_open(path))
            sync_directory(path.parent)
        lines = cls(path, repaired(path, accept))
        try:
            yield lines
        finally:
            os.close(lines._fd)

    async def append(self, message: Mapping[str, Any]) -> int:
        """Append the message as a line; where it begins, in bytes. It is on the disk then.

        Those that are appended at the same time are written and flushed together. Once begun it is not cancelled.
        Raises OSError when it could not be written; then nothing of it is there.
        """
        mine = _Waiting(encode(message))
        self._waiting.append(mine)
        with anyio.CancelScope(shield=True):
            async with self._turn:
                if not mine.is_done:
                    waiting, self._waiting = self._waiting, []
                    await in_thread(partial(self._write_all, waiting))
        if mine.failure is not None:
            raise OSError(mine.failure.errno, mine.failure.strerror, str(self.path))
        return mine.offset

    def write(self, messages: Iterable[Mapping[str, Any]]) -> list[int]:
        """As `append`, for several at once, all of them or none. Blocks."""
        return self._write([encode(message) for message in messages])

    def rewrite(self, lines: Iterator[bytes]) -> None:
        """Put these lines, which have their ends, in the place of all that are there. Blocks."""
        with self._writing:
            put_whole(self.path, lines)
            former, self._fd = self._fd, _open(self.path)
            os.close(former)
            self._end, self._is_torn = os.fstat(self._fd).st_size, False

    def _write_all(self, waiting: list[_Waiting]) -> None:
        try:
            for one, offset in zip(waiting, self._write([one.line for one in waiting]), strict=True):
                one.offset = offset
        except OSError as failure:
            for one in waiting:
                one.failure = failure
        for one in waiting:
            one.is_done = True

    def _write(self, lines: list[bytes]) -> list[int]:
        with self._writing:
            if self._is_torn:
                self._take_back()
            try:
                write_all(self._fd, b"".join(lines))
                os.fsync(self._fd)
            except OSError:
                self._is_torn = True
                with suppress(OSError):  # then the next one tries
                    self._take_back()
                raise
            offsets = []
            for line in lines:
                offsets.append(self._end)
                self._end += len(line)
            return offsets

    def _take_back(self) -> None:
        """Remove what a failed write left: a line that nobody was told is there."""
        os.ftruncate(self._fd, self._end)
        os.fsync(self._fd)
        self._is_torn = False


def _open(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, PRIVATE_FILE)
