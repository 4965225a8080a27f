"""One look serves all cells, and whoever leaves takes no look with him."""

import threading
from typing import Any

import anyio
import pytest

from agentcell import meter as meters
from agentcell.causes import Exceeded
from agentcell.gauge import Gauge
from agentcell.limits import Limits
from agentcell.meter import Meter
from agentcell.processes import Row, Table

pytestmark = pytest.mark.anyio


class Cells:
    """Workers without children that can be made to grow; counts the looks at them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.memory_mb = {1: 10.0, 2: 10.0, 3: 10.0}
        self.looks = 0
        self.looked = anyio.Event()
        self.killed: list[int] = []
        monkeypatch.setattr(meters, "weigh", lambda rows: sum(row.memory_mb for row in rows))
        monkeypatch.setattr(Table, "look", lambda _table, roots, _now: self.look(roots))
        monkeypatch.setattr("agentcell.gauge.kill", lambda row: self.killed.append(row.pid))

    def look(self, roots: list[int]) -> dict[int, list[Row]]:
        self.looks += 1
        self.looked.set()
        self.looked = anyio.Event()
        return {pid: [Row(pid, 0, 1.0, f"p{pid}", self.memory_mb[pid], 0.0, 1)] for pid in roots}

    async def another_look(self) -> None:
        with anyio.fail_after(10):
            await self.looked.wait()


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch) -> Cells:
    return Cells(monkeypatch)


def gauge(pid: int, **limits: Any) -> Gauge:
    return Gauge(lambda: pid, Limits(**limits))


async def test_a_cell_over_its_limit_is_reported_again_and_again_and_another_is_not(cells: Cells) -> None:
    meter, reports = Meter(), list[tuple[int, Exceeded]]()
    async with anyio.create_task_group() as tasks:
        for pid in (1, 2):
            watched = gauge(pid, max_memory_mb=100)
            tasks.start_soon(meter.watch, watched, lambda exceeded, pid=pid: reports.append((pid, exceeded)))
        await cells.another_look()
        cells.memory_mb[2] = 120.0
        for _ in range(4):
            await cells.another_look()
        tasks.cancel_scope.cancel()
    exceeded = Exceeded("max_memory_mb", 100, 120, pid=2, process="p2")
    assert len(reports) >= 2
    assert set(reports) == {(2, exceeded)}
    assert set(cells.killed) == {2}


async def test_many_watchers_cost_no_more_looks_than_one(cells: Cells) -> None:
    meter = Meter()
    async with anyio.create_task_group() as tasks:
        for pid in (1, 2) * 10:
            tasks.start_soon(meter.watch, gauge(pid), lambda _: None)
        await cells.another_look()
        while cells.looks < 20:
            await cells.another_look()
        before, began = cells.looks, anyio.current_time()
        await cells.another_look()
        assert (cells.looks - before, anyio.current_time() - began > 0.05) == (1, True)
        tasks.cancel_scope.cancel()


async def test_a_watcher_that_leaves_takes_no_look_with_it(cells: Cells) -> None:
    meter = Meter()
    async with anyio.create_task_group() as tasks:
        first = anyio.CancelScope()

        async def watch_first() -> None:
            with first:
                await meter.watch(gauge(1), lambda _: None)

        tasks.start_soon(watch_first)
        await cells.another_look()
        tasks.start_soon(meter.watch, gauge(2), lambda _: None)
        await cells.another_look()
        first.cancel()
        for _ in range(3):
            await cells.another_look()
        tasks.cancel_scope.cancel()


async def test_of_watchers_that_leave_together_none_takes_the_looks_with_it(cells: Cells) -> None:
    meter, leaving = Meter(), anyio.CancelScope()

    async def watch_two() -> None:
        with leaving:
            async with anyio.create_task_group() as both:
                for pid in (1, 2):
                    both.start_soon(meter.watch, gauge(pid), lambda _: None)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch_two)
        await cells.another_look()
        tasks.start_soon(meter.watch, gauge(2), lambda _: None)
        await cells.another_look()
        leaving.cancel()
        for _ in range(3):
            await cells.another_look()
        tasks.cancel_scope.cancel()


async def test_while_cells_are_weighed_the_others_are_looked_at(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    meter, weighed = Meter(), threading.Event()
    monkeypatch.setattr(meters, "weigh", lambda _: float(weighed.wait(60)))
    async with anyio.create_task_group() as tasks:
        try:
            for pid in (1, 2, 3):
                tasks.start_soon(meter.watch, gauge(pid, max_memory_mb=100), lambda _: None)
            while cells.looks < 4:
                await cells.another_look()
            cells.memory_mb |= {1: 120.0, 2: 120.0}
            for _ in range(3):
                await cells.another_look()
        finally:
            weighed.set()
            tasks.cancel_scope.cancel()


async def test_a_cell_that_needs_it_sooner_is_not_kept_waiting(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meters, "SLOWEST_SECONDS", 3600.0)
    monkeypatch.setattr(Gauge, "patience", lambda patient: 3600.0 if patient.pid == 1 else 0.0)
    meter = Meter()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(meter.watch, gauge(1), lambda _: None)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(meter.watch, gauge(2), lambda _: None)
        for _ in range(3):
            await cells.another_look()
        tasks.cancel_scope.cancel()


async def test_a_look_wakes_nobody_who_has_nothing_to_judge(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = list[Gauge]()
    judge = Meter._judge

    async def counted(meter: Meter, gauge: Gauge) -> Exceeded | None:
        judged.append(gauge)
        return await judge(meter, gauge)

    monkeypatch.setattr(Meter, "_judge", counted)
    meter = Meter()
    async with anyio.create_task_group() as tasks:
        for pid in (1, 2):
            tasks.start_soon(meter.watch, gauge(pid, max_memory_mb=100), lambda _: None)
        while cells.looks < 6:
            await cells.another_look()
        tasks.cancel_scope.cancel()
    assert len(judged) == 2


async def test_cells_that_are_just_forked_cost_no_look_before_one_is_due(cells: Cells) -> None:
    meter = Meter()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(meter.watch, gauge(1), lambda _: None)
        await cells.another_look()
        for _ in range(5):
            asked = anyio.Event()
            tasks.start_soon(meter.watch, Gauge(asked.set, Limits()), lambda _: None)
            await asked.wait()
        assert cells.looks == 1
        await cells.another_look()
        tasks.cancel_scope.cancel()


async def test_a_worker_whose_pid_is_not_known_yet_is_waited_for(cells: Cells) -> None:
    known: list[int] = []
    watched = Gauge(lambda: known[0] if known else None, Limits())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Meter().watch, watched, lambda _: None)
        await cells.another_look()
        assert watched.peak_memory_mb is None
        known.append(1)
        for _ in range(2):
            await cells.another_look()
        tasks.cancel_scope.cancel()
    assert watched.peak_memory_mb == 10
