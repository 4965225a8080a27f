"""The clock of the gauges: one look at the process table serves every cell of a host."""

import time
from collections.abc import Callable
from functools import partial
from math import inf

import anyio

from agentcell.causes import Exceeded
from agentcell.gauge import GROWING, QUICKEST_SECONDS, Gauge
from agentcell.processes import Table, weigh
from agentcell.reap import in_thread

REST = 9.0
"""Times what a look took is waited before the next: the meter takes at most a tenth of one core."""


class Meter:
    """Looks at the processes of the cells that are watched, as often as the one that needs it most.

    There is no task of its own: whichever watcher wakes first looks for all of them. For one event loop.
    """

    def __init__(self) -> None:
        self._table = Table()
        self._gauges: list[Gauge] = []
        self._looks = 0
        self._due = -inf
        self._changed = anyio.Event()

    async def watch(self, gauge: Gauge, report: Callable[[Exceeded], object]) -> None:
        """Keep the gauge's readings fresh until cancelled, report each time it is over a limit, and stop what grows."""
        self._gauges.append(gauge)
        try:
            self._look()
            while True:
                if (exceeded := await self._judge(gauge)) is not None:
                    report(exceeded)
                    if exceeded.limit in GROWING:
                        gauge.stop_growth(exceeded)
                await self._another_look()
        finally:
            self._gauges.remove(gauge)
            self._wake()  # a watcher that left must not take the next look with it

    async def _judge(self, gauge: Gauge) -> Exceeded | None:
        if gauge.needs_weighing:
            rows = gauge.rows
            gauge.take_weight(rows, await in_thread(partial(weigh, rows)))
        return gauge.exceeded()

    async def _another_look(self) -> None:
        """Wait for a look that somebody else takes, or take it when it is due."""
        seen = self._looks
        while self._looks == seen:
            if (left := self._due - anyio.current_time()) <= 0:
                self._look()
                return
            with anyio.move_on_after(left):
                await self._changed.wait()

    def _look(self) -> None:
        now = anyio.current_time()
        began = time.perf_counter()
        pids = [gauge.pid for gauge in self._gauges]  # asked once: one may become known at any time
        trees = self._table.look([pid for pid in pids if pid is not None], now)
        for gauge, pid in zip(self._gauges, pids, strict=True):
            gauge.read([] if pid is None else trees[pid], now)
        self._looks += 1
        patience = min((gauge.patience() for gauge in self._gauges), default=QUICKEST_SECONDS)
        self._due = now + max(patience, REST * (time.perf_counter() - began))
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
