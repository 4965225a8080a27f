"""All that a batch writes down while it runs, which is on the disk before it counts."""

import os
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio

from agentcell.attempts import Tried
from agentcell.batch import journal
from agentcell.batch.admission import Hold
from agentcell.batch.boot import boot_id
from agentcell.batch.directory import RunDirectory
from agentcell.batch.flights import Flight, write_request
from agentcell.reap import in_thread
from agentcell_protocol.result import SessionResult

T = TypeVar("T")


class Ledger:
    """Writes into the run directory until that fails: then `on_failure` is told why, once, and nothing is written.

    Each of its functions says whether what it was told is there.
    """

    def __init__(self, run: RunDirectory, on_failure: Callable[[OSError], object]) -> None:
        self._run = run
        self._on_failure = on_failure
        self._has_failed = False
        self._results_turn = anyio.Lock()

    async def began(self, flight: Flight, environment: Mapping[str, str]) -> Path | None:
        """An attempt is about to be made; its folder, with its request."""

        async def write() -> Path:
            folder = (await in_thread(partial(self._run.folder, flight.id, flight.number))).absolute()
            await in_thread(partial(write_request, folder, flight.request, environment))
            await self._run.journal.append(_started(flight))
            return folder

        return await self._written(write)

    async def ended(self, row_id: str, tried: Tried, at: float, retry_at: float | None) -> bool:
        """An attempt at the row has ended; when the next one is due, if there is to be one."""
        return await self._append(journal.ended(at, id=row_id, tried=tried, retry_at=retry_at))

    async def finished(self, row_id: str, digest: str | None, line: int, result: SessionResult) -> bool:
        """The row has its result."""

        async def write() -> bool:
            async with self._results_turn:
                await self._run.results.add(row_id, digest, line, result)
            return True

        return await self._written(write) or False

    async def reopened(self, row_id: str) -> bool:
        """The row is to run again as if it had not been tried."""

        async def write() -> bool:
            async with self._results_turn:
                await in_thread(partial(self._run.reopen, [row_id]))
            return True

        return await self._written(write) or False

    async def held(self, hold: Hold | None) -> bool:
        """Nothing is started for a while; None: it is again."""
        now = time.time()
        return await self._append(
            journal.resumed(now) if hold is None else journal.paused(now, reason=hold.reason, until=hold.until)
        )

    async def closed(self, reason: str | None) -> bool:
        """The batch has ended; why, if rows are left."""
        return await self._append(journal.closed(time.time(), reason=reason or journal.FINISHED))

    async def _append(self, message: journal.Message) -> bool:
        return await self._written(partial(self._run.journal.append, message)) is not None

    async def _written(self, write: Callable[[], Awaitable[T]]) -> T | None:
        if self._has_failed:
            return None
        try:
            return await write()
        except OSError as problem:
            if not self._has_failed:
                self._has_failed = True
                self._on_failure(problem)
            return None


def _started(flight: Flight) -> journal.Message:
    return journal.started(
        flight.began,
        id=flight.id,
        digest=flight.item.row.digest,
        line=flight.item.row.number,
        attempt=flight.number,
        mode=flight.mode,
        session_id=flight.request.session_id or flight.request.resume,
        marker=flight.marker,
        host_pid=os.getpid(),
        boot_id=boot_id(),
    )
