"""The runs that have no result yet: those that wait, and those that the host has taken."""

from collections.abc import AsyncGenerator, Awaitable, Mapping
from typing import Any

import anyio

from agentcell.attempt import cancelled, not_started
from agentcell.orders import Order
from agentcell.result_file import put_into
from agentcell.serve.outlet import Outlet
from agentcell_protocol.result import SessionResult
from agentcell_protocol.serving import of_run, thinned

MAX_WAITING = 10_000
"""Runs: each keeps its request in memory, and whoever sends more does not look at the results."""


class Voice:
    """What one run has to say. An event that there is no room for is dropped, and told of with the next line."""

    def __init__(self, run_id: str, outlet: Outlet) -> None:
        self._id = run_id
        self._outlet = outlet
        self._dropped = 0

    def tell(self, event: Mapping[str, Any]) -> Awaitable[None] | None:
        """Write an event of the run; what is left to be awaited of that."""
        message = of_run(event, self._id)
        if self._outlet.has_room:
            self._write(message)
            return None
        self._dropped += 1  # unless there will be room: who waits may be cancelled
        return self._write_when_there_is_room(message)

    def end(self, result: SessionResult) -> None:
        """Write its result."""
        self._write({**result.to_message(), "id": self._id})

    async def _write_when_there_is_room(self, message: Mapping[str, Any]) -> None:
        if await self._outlet.room():
            self._dropped -= 1
            self._write(message)

    def _write(self, message: Mapping[str, Any]) -> None:
        if self._dropped:
            self._outlet.put(thinned(self._id, self._dropped))
            self._dropped = 0
        self._outlet.put(message)


class Runs:
    """Orders by their ids, each from when it is accepted until it has its result. An order's tag is its `Voice`."""

    def __init__(self) -> None:
        self.is_closed = False
        self._waiting: dict[str, Order] = {}
        self._taken: dict[str, Order] = {}
        self._changed = anyio.Event()

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._waiting or run_id in self._taken

    @property
    def is_full(self) -> bool:
        """Whether no more can wait."""
        return len(self._waiting) >= MAX_WAITING

    def add(self, order: Order) -> None:
        """Have it wait for its turn."""
        self._waiting[order.request.identity] = order
        self._changed.set()

    def close(self) -> None:
        """No more will come."""
        self.is_closed = True
        self._changed.set()

    async def orders(self) -> AsyncGenerator[Order, None]:
        """Those that wait, one after the other, until the runs are closed."""
        while self._waiting or not self.is_closed:
            if self._waiting:
                run_id = next(iter(self._waiting))
                self._taken[run_id] = order = self._waiting.pop(run_id)
                yield order
            else:
                self._changed = anyio.Event()
                await self._changed.wait()

    def end(self, order: Order, result: SessionResult) -> None:
        """The run has its result, and its id is free again."""
        del self._taken[order.request.identity]
        order.tag.end(result)

    def cancel(self, run_id: str, reason: str) -> None:
        """End it: one that waits at once, one that runs politely, and by force when it is asked for again."""
        if (order := self._waiting.pop(run_id, None)) is None:
            self._taken[run_id].stop.cancel(reason)
            return
        result = not_started(order.request, cancelled(reason))
        order.tag.end(result if (file := order.request.result_file) is None else put_into(file, result))

    def cancel_all(self, reason: str) -> None:
        """Accept no more, and end those that nobody has ended yet."""
        self.close()
        running = [run_id for run_id, order in self._taken.items() if order.stop.reason is None]
        for run_id in [*self._waiting, *running]:
            self.cancel(run_id, reason)

    def kill_all(self) -> None:
        """End at once what still runs."""
        for order in self._taken.values():
            order.stop.cancel()
