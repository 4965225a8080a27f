"""Attempts on the nodes of a Ray cluster, whose driver this is; Ray itself is spoken with by a bridge."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio

from agentcell.errors import ExecutorError
from agentcell.executors.ray.absence import check_installed
from agentcell.executors.ray.flight import ABANDON_SECONDS, Flight
from agentcell.executors.ray.links import CLOSED, Links, OnWarning
from agentcell.executors.ray.talk import CELL_CPUS, CELL_MEMORY_MB, RaySettings
from agentcell.executors.wire import LEASE_SECONDS
from agentcell.interrupt import plain_interrupt
from agentcell.orders import Order
from agentcell.run import Attempted, request_line
from agentcell_protocol.request import with_session_id


class RayExecutor:
    """Runs cells on the nodes of the Ray cluster whose head is at `address` (HOST:PORT), or of one made here for it.

    It has room for `max_sessions`, or as many as the nodes have for cells of `cell_cpus` cores and `cell_memory_mb`,
    or the `max_memory_mb` of their limits. On each node `max_starts` (the number of cores) start at a time, while
    `min_free_mb` of memory are free. The `directories` are to be there on every node. A node without them, or without
    agentcell in this version, is left out, and `on_warning` gets a sentence on it. A node that nobody is heard from for
    `lease_seconds` ends its cells. `worker_command` starts another worker than ours.
    To be entered with `async with`, which raises ExecutorError where that cannot be. Raises ValueError for a number
    that makes no sense.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        max_sessions: int | None = None,
        min_free_mb: float = 0.0,
        max_starts: int | None = None,
        cell_cpus: float = CELL_CPUS,
        cell_memory_mb: float = CELL_MEMORY_MB,
        lease_seconds: float = LEASE_SECONDS,
        directories: Iterable[str | PathLike[str]] = (),
        worker_command: Sequence[str] | None = None,
        on_warning: OnWarning | None = None,
    ) -> None:
        positive = {"max_sessions": max_sessions, "max_starts": max_starts, "cell_cpus": cell_cpus}
        for name, value in {**positive, "cell_memory_mb": cell_memory_mb, "lease_seconds": lease_seconds}.items():
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be positive")
        self._settings = RaySettings(
            address=address,
            directories=tuple(str(Path(directory).absolute()) for directory in directories),
            cell_cpus=cell_cpus,
            cell_memory_mb=cell_memory_mb,
            lease_seconds=lease_seconds,
            min_free_mb=min_free_mb,
            max_starts=max_starts,
            worker_command=None if worker_command is None else tuple(worker_command),
        )
        self._on_warning = on_warning
        self._given_max_sessions = max_sessions
        self._links: Links | None = None
        self._flights: set[Flight] = set()
        self._ended = anyio.Event()

    @property
    def max_sessions(self) -> int:
        """As `Executor.max_sessions`. Raises ExecutorError before it is open, unless it was given."""
        return self._given_max_sessions or self._open.max_sessions

    async def __aenter__(self) -> Self:
        check_installed()
        links = Links(self._settings, self._on_warning)
        await links.get()
        self._links = links
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            links = self._open
            for flight in self._flights:
                flight.stop()
            with anyio.move_on_after(ABANDON_SECONDS):
                await self._all_ended()
            self._links = None
            await links.close()

    async def attempt(self, order: Order) -> Attempted:
        """As `Executor.attempt`. Where no node can be reached it is `spawn_failed`, with `errno` EHOSTUNREACH."""
        order = replace(_from_anywhere(order), request=with_session_id(order.request))
        request_line(order.request, order.on_event, order.limits)  # raises RequestError
        flight = Flight(order, self._open, self._settings)
        self._flights.add(flight)
        try:
            with plain_interrupt():
                result = await flight.run()
        finally:
            self._flights.discard(flight)
            self._ended.set()
        return Attempted(result, flight.failure)

    async def sweep(self, markers: Iterable[str]) -> int:
        """As `Executor.sweep`: of cells on every node. Raises ExecutorError."""
        wanted = tuple(markers)
        return await self._open.settle(wanted) if wanted else 0

    @property
    def _open(self) -> Links:
        if self._links is None:
            raise ExecutorError(*CLOSED)
        return self._links

    async def _all_ended(self) -> None:
        while self._flights:
            self._ended = anyio.Event()
            await self._ended.wait()


def _from_anywhere(order: Order) -> Order:
    """The order, with paths that do not depend on where one is."""
    keep = order.keep if isinstance(order.keep, bool) else os.path.abspath(order.keep)  # noqa: PTH100 - `absolute` keeps ".."
    return replace(order, keep=keep, stderr_file=order.stderr_file and order.stderr_file.absolute())
