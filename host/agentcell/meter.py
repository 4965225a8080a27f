"""The clock of the gauges: one look at the process table serves every cell of a host."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import inf

import anyio

from agentcell.causes import Exceeded
from agentcell.gauge import GROWING, SLOWEST_SECONDS, Gauge
from agentcell.processes import Table, weigh
from agentcell.reap import in_thread

REST = 9.0
"""Times the CPU that a look took is waited before the next: the meter takes at most a tenth of one core."""


@dataclass(eq=False, slots=True)
class _Watched:
    """A gauge and its watcher: `has_news` when a look found something to be judged, `woken` to look up."""

    gauge: Gauge
    has_news: bool = False
    woken: anyio.Event = field(default_factory=anyio.Event)


class Meter:
    """Looks at the processes of the cells that are watched, as often as the one that needs it most.

    There is no task of its own: the first of the watchers that wait looks for all of them, and wakes those for whom it
    matters. For one event loop.
    """

    def __init__(self) -> None:
        self._table = Table()
        self._watched: list[_Watched] = []
        self._waiting: list[_Watched] = []
        self._due = -inf

    async def watch(self, gauge: Gauge, report: Callable[[Exceeded], object]) -> None:
        """Keep the gauge's readings fresh until cancelled, report each time it is over a limit, and stop what grows."""
        mine = _Watched(gauge)
        self._watched.append(mine)
        try:
            self._begin(mine)
            while True:
                if (exceeded := await self._judge(gauge)) is not None:
                    report(exceeded)
                    if exceeded.limit in GROWING:
                        gauge.stop_growth(exceeded)
                await self._news(mine)
        finally:
            self._watched.remove(mine)

    def _begin(self, mine: _Watched) -> None:
        """Look at once, or soon where there is nothing to be seen yet."""
        if mine.gauge.pid is not None:
            self._look()
            return
        soon = anyio.current_time() + mine.gauge.patience()
        self._due = soon if len(self._watched) == 1 else min(self._due, soon)
        self._wake_first()

    async def _judge(self, gauge: Gauge) -> Exceeded | None:
        if gauge.needs_weighing:
            rows = gauge.rows
            gauge.take_weight(rows, await in_thread(partial(weigh, rows)))
        return gauge.exceeded()

    async def _news(self, mine: _Watched) -> None:
        """Wait for a look that finds something to be judged; take the looks that are due if nobody else does."""
        mine.has_news = False
        self._waiting.append(mine)
        try:
            while not mine.has_news:
                mine.woken = anyio.Event()
                if self._waiting[0] is mine:
                    await self._look_when_due(mine)
                else:
                    await mine.woken.wait()
        finally:
            self._waiting.remove(mine)
            self._wake_first()

    async def _look_when_due(self, mine: _Watched) -> None:
        if (left := self._due - anyio.current_time()) <= 0:
            self._look()
            return
        with anyio.move_on_after(left):
            await mine.woken.wait()

    def _look(self) -> None:
        now = anyio.current_time()
        began = time.thread_time()
        pids = [watched.gauge.pid for watched in self._watched]  # asked once: one may become known at any time
        trees = self._table.look([pid for pid in pids if pid is not None], now)
        patience = SLOWEST_SECONDS
        for watched, pid in zip(self._watched, pids, strict=True):
            gauge = watched.gauge
            gauge.read([] if pid is None else trees[pid], now)
            patience = min(patience, gauge.patience())
            if gauge.needs_weighing or gauge.exceeded() is not None:
                watched.has_news = True
                watched.woken.set()
        self._due = now + max(patience, REST * (time.thread_time() - began))
        self._wake_first()  # the next look may be due earlier than it thinks

    def _wake_first(self) -> None:
        if self._waiting:
            self._waiting[0].woken.set()
