"""Where the rows of a batch come from: a file, of which only places are remembered, or a stream as it comes."""

import errno
import os
from contextlib import suppress
from threading import Semaphore, Thread
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import anyio
from anyio.from_thread import run_sync
from anyio.lowlevel import current_token

from agentcell.batch.rows import NO_RULES, Problem, Row, read_rows, row_at
from agentcell.batch.rules import Rules

if TYPE_CHECKING:
    from array import array

STDIN = 0


class Source(Protocol):
    """Gives rows one at a time, no two of which have one id."""

    async def next(self) -> Row | Problem | None:
        """The next one, as soon as it is there; None when there are no more."""


class FileRows:
    """Rows of a file at known places (offset, number and checksum, in turn), each read again when its turn comes.

    For one use.
    """

    def __init__(
        self, file: BinaryIO, places: "array[int]", *, problems: list[Problem], rules: Rules = NO_RULES
    ) -> None:
        self._file = file
        self._places = iter(places)
        self._problems = iter(problems)
        self._rules = rules

    async def next(self) -> Row | Problem | None:
        """The next row that is to be run, after all lines that are none. Raises OSError where the file was changed."""
        if (problem := next(self._problems, None)) is not None:
            return problem
        offset = next(self._places, None)
        if offset is None:
            return None
        number, checksum = next(self._places), next(self._places)
        row = row_at(self._file, offset, number, checksum, self._rules)
        if row is None:
            raise OSError(errno.ESTALE, f"line {number} was changed while they were run")
        return row


class StreamRows:
    """Rows as they come through a descriptor such as stdin, read no further than asked for.

    A thread of its own waits for them: it may wait forever, and ends with the process.
    """

    def __init__(self, descriptor: int = STDIN, rules: Rules = NO_RULES) -> None:
        self._descriptor = descriptor
        self._rules = rules
        self._wanted = Semaphore(0)
        self._thread: Thread | None = None
        self._is_over = False
        self._row: Row | Problem | None = None
        self._failure: OSError | None = None
        self._arrived = anyio.Event()

    async def next(self) -> Row | Problem | None:
        """The next row. Raises OSError when the stream cannot be read."""
        if self._is_over:
            return None
        if self._thread is None:
            self._thread = self._started()
        self._arrived = anyio.Event()
        self._wanted.release()
        await self._arrived.wait()
        if self._failure is not None:
            raise self._failure
        return self._row

    def _started(self) -> Thread:
        thread = Thread(target=self._read, args=(current_token(),), name="batch rows", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            raise OSError(errno.EAGAIN, "the machine has no thread left to read them") from None
        return thread

    def _read(self, token: Any) -> None:
        """The thread: one row each time that one is wanted."""
        with suppress(RuntimeError):  # the loop has ended
            try:
                with os.fdopen(self._descriptor, "rb", closefd=False) as stream:
                    rows = read_rows(stream, self._rules)
                    while not self._is_over:
                        self._wanted.acquire()
                        run_sync(self._take, next(rows, None), None, token=token)
            except OSError as failure:
                run_sync(self._take, None, failure, token=token)

    def _take(self, row: Row | Problem | None, failure: OSError | None) -> None:
        self._row, self._failure = row, failure
        self._is_over = row is None
        self._arrived.set()
