"""The runs that have no result yet: those that wait, and those that the host has taken."""

from collections.abc import AsyncGenerator

import anyio

from agentcell.attempt import cancelled, not_started
from agentcell.orders import Order
from agentcell.result_file import put_into
from agentcell_protocol.errors import SessionError, internal_error
from agentcell_protocol.result import NAMING, SessionResult, failed

MAX_WAITING = 10_000
"""Runs: each keeps its request in memory, and whoever sends more does not look at the results."""

MAX_WAITING_BYTES = 256 * 1024 * 1024
"""Of their lines: 26 kB each for as many as can wait, or eight of the longest; text other than ASCII takes up to four
times that in memory."""


class Runs:
    """Orders by their ids, each from when it is accepted until it has its result. An order's tag is its `Voice`."""

    def __init__(self) -> None:
        self.is_closed = False
        self._waiting: dict[str, Order] = {}
        self._sizes: dict[str, int] = {}
        self._bytes = 0
        self._taken: dict[str, Order] = {}
        self._changed = anyio.Event()

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._waiting or run_id in self._taken

    @property
    def is_full(self) -> bool:
        """Whether no more can wait."""
        return len(self._waiting) >= MAX_WAITING

    def has_room(self, size: int) -> bool:
        """Whether one with a line of so many bytes can wait besides."""
        return self._bytes + size <= MAX_WAITING_BYTES

    def add(self, order: Order, size: int = 0) -> None:
        """Have it wait for its turn; its line had so many bytes."""
        run_id = order.request.identity
        self._waiting[run_id] = order
        self._sizes[run_id] = size
        self._bytes += size
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
                self._taken[run_id] = order = self._no_more_waiting(run_id)
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
        if run_id in self._waiting:
            _end_unstarted(self._no_more_waiting(run_id), cancelled(reason))
        else:
            self._taken[run_id].stop.cancel(reason)

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

    def fail(self, order: Order, mistake: Exception) -> None:
        """A mistake of ours has ended this one: accept no more, and end those that wait, as `internal`, too."""
        _end_failed(self._taken.pop(order.request.identity), mistake)
        self._end_waiting(mistake)

    def fail_all(self, mistake: Exception) -> None:
        """The same for all that have no result yet: the host gives no more."""
        self._end_waiting(mistake)
        for order in self._taken.values():
            _end_failed(order, mistake)
        self._taken.clear()

    def _end_waiting(self, mistake: Exception) -> None:
        self.close()
        for run_id in list(self._waiting):
            _end_unstarted(self._no_more_waiting(run_id), internal_error(mistake))

    def _no_more_waiting(self, run_id: str) -> Order:
        self._bytes -= self._sizes.pop(run_id)
        return self._waiting.pop(run_id)


def _end_failed(order: Order, mistake: Exception) -> None:
    order.tag.end(failed(internal_error(mistake), **order.request.model_dump(include=set(NAMING))))


def _end_unstarted(order: Order, error: SessionError) -> None:
    result = not_started(order.request, error)
    order.tag.end(result if (file := order.request.result_file) is None else put_into(file, result))
