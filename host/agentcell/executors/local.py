"""Attempts on this machine: what the sessions of a host share, and nothing else."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import Self, get_args

import psutil

from agentcell.orders import Order
from agentcell.reap import in_thread
from agentcell.resources import Resources, sharing
from agentcell.run import Attempted, attempt
from agentcell.spawn import WORKER
from agentcell_protocol import cell
from agentcell_protocol.cell import Start


class LocalExecutor:
    """Runs cells on this machine: forks of a process that has the SDK loaded, or fresh ones with `start="cold"`.

    It has room for `max_sessions` (the number of cores); of those `max_starts` (the number of cores) start at a time.
    `worker_command` starts another worker than ours, always cold. Raises ValueError for a number under one.
    """

    def __init__(
        self,
        max_sessions: int | None = None,
        *,
        max_starts: int | None = None,
        start: Start = "fork",
        worker_command: Sequence[str] = WORKER,
    ) -> None:
        for name, value in (("max_sessions", max_sessions), ("max_starts", max_starts)):
            if value is not None and value < 1:
                raise ValueError(f"{name} must be positive")
        if start not in get_args(Start):
            raise ValueError(f"start must be one of {', '.join(get_args(Start))}")
        self.max_sessions = max_sessions or os.cpu_count() or 1
        self._sharing = partial(sharing, start, command=worker_command, max_starts=max_starts)
        self._lifetime = AsyncExitStack()
        self._resources: Resources | None = None

    async def __aenter__(self) -> Self:
        self._resources = await self._lifetime.enter_async_context(self._sharing())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources = None
        await self._lifetime.aclose()

    async def attempt(self, order: Order) -> Attempted:
        """As `Executor.attempt`."""
        return await attempt(order, self._resources)

    async def sweep(self, markers: Iterable[str]) -> int:
        """As `Executor.sweep`: of cells on this machine."""
        return await in_thread(partial(sweep_marked, tuple(markers)))


def sweep_marked(markers: Sequence[str]) -> int:
    """End all processes of these cells at once; how many there were. Blocks."""

    def find_all() -> Iterator[psutil.Process]:
        for marker in markers:
            yield from cell.marked(marker)

    return cell.end(find_all) if markers else 0
