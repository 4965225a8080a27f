"""On a cluster of two nodes: what attempts come to, and that nothing is left of them, whoever dies."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from errno import EHOSTUNREACH
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.ending import ending
from tests.executors_ray.clusters import RayCluster
from tests.faults.harness import Room

from agentcell.errors import ExecutorError
from agentcell.executors.ray import RayExecutor
from agentcell.limits import Limits
from agentcell.orders import Order
from agentcell.reap import in_thread
from agentcell.run import Attempted
from agentcell_protocol.cell import marked, new_marker
from agentcell_protocol.errors import Category, SessionError

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
]

BOUND_SECONDS = 120
"""For what may wait until a lease has run out and a keeper has ended."""

LEASE_SECONDS = 3.0

LOOK_SECONDS = 0.05

STAND_IN = (sys.executable, "-P", "-m", "agentcell.testing")
"""A worker whose requests bring their steps."""

STRAY = {"spawn": ["setsid", "sleep", "600"]}
HANGS = ({"text": "halfway"}, {"hang": True})


@pytest.fixture
def room(tmp_path: Path) -> Room:
    path = tmp_path / "room"
    path.mkdir()
    return Room(path)


@asynccontextmanager
async def executing(cluster: RayCluster, **settings: Any) -> AsyncIterator[RayExecutor]:
    """An executor with short leases, in bounded time."""
    settings = {"lease_seconds": LEASE_SECONDS, "worker_command": STAND_IN, **settings}
    with anyio.fail_after(2 * BOUND_SECONDS):
        async with RayExecutor(cluster.address, **settings) as executor:
            yield executor


class Heard:
    """Takes events; `begun` when there was a text."""

    def __init__(self) -> None:
        self.begun = anyio.Event()

    def __call__(self, event: Mapping[str, Any]) -> None:
        if event["type"] == "text":
            self.begun.set()


def order(room: Room, *steps: Mapping[str, Any], on_event: Any = None, **members: Any) -> Order:
    limits = members.pop("limits", Limits())
    session = room.request(context={"stand_in": list(steps)}, **members)
    return Order(session, environment=room.environment, on_event=on_event, limits=limits, keep=False)


async def assert_gone(*markers: str) -> None:
    """Nothing carries them, at this moment."""
    for marker in markers:
        assert await in_thread(partial(marked, marker)) == []


async def until_gone(*markers: str) -> None:
    """Nothing carries them, soon."""

    def look() -> None:
        give_up_at = time.monotonic() + BOUND_SECONDS
        while any(marked(marker) for marker in markers):
            assert time.monotonic() < give_up_at
            time.sleep(LOOK_SECONDS)

    await in_thread(look)


def error_of(attempted: Attempted) -> SessionError:
    error = attempted.result.error
    assert error is not None
    return error


class Ended:
    """How attempts have ended so far."""

    def __init__(self) -> None:
        self.attempted: list[Attempted] = []
        self._more = anyio.Event()

    async def attempt(self, executor: RayExecutor, order: Order) -> None:
        """Make one, and take how it ended."""
        self.attempted.append(await executor.attempt(order))
        self._more.set()

    async def reached(self, count: int) -> None:
        """Wait until so many have ended."""
        while len(self.attempted) < count:
            self._more = anyio.Event()
            await self._more.wait()


async def attempts(
    executor: RayExecutor, orders: list[Order], deed: Callable[[Ended], Awaitable[object]]
) -> list[Attempted]:
    """How they end when this is done once all of them have begun."""
    ended = Ended()
    async with anyio.create_task_group() as tasks:
        for one in orders:
            tasks.start_soon(ended.attempt, executor, one)
        for one in orders:
            assert isinstance(one.on_event, Heard)
            await one.on_event.begun.wait()
        await deed(ended)
    return ended.attempted


async def test_a_session_runs_and_its_events_come(cluster: RayCluster, room: Room) -> None:
    kinds: list[str] = []
    asked = order(room, {"text": "done"}, STRAY, on_event=lambda event: kinds.append(event["type"]))
    async with executing(cluster) as executor:
        assert executor.max_sessions == 8
        result = (await executor.attempt(asked)).get()
        await assert_gone(asked.marker)
    assert (result.status, result.response, result.swept_processes) == ("complete", "done", 1)
    assert kinds == ["hello", "session_started", "text", "outcome"]


async def test_one_that_no_node_has_room_for_is_refused_at_once(cluster: RayCluster, room: Room) -> None:
    asked = order(room, {"text": "done"}, limits=Limits(max_memory_mb=10**9))
    async with executing(cluster) as executor:
        error = error_of(await executor.attempt(asked))
    assert error.category is Category.SPAWN_FAILED
    assert "fits on no node" in error.message


async def test_one_that_is_stopped_before_a_node_has_it_never_starts(cluster: RayCluster, room: Room) -> None:
    async with executing(cluster, cell_cpus=2) as executor:
        running = [order(room, *HANGS, on_event=Heard()) for _ in range(2)]
        waiting = order(room, *HANGS)

        waited = Ended()

        async def stop(_ended: Ended) -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(waited.attempt, executor, waiting)
                await anyio.wait_all_tasks_blocked()
                await executor.sweep([new_marker()])  # answered after what was said before
                waiting.stop.cancel("SIGINT")
            for one in running:
                one.stop.cancel("SIGTERM")

        ended = await attempts(executor, running, stop)
        error = error_of(waited.attempted[0])
        assert (error.category, error.details["signal"], waited.attempted[0].result.cost_usd) == (
            "cancelled",
            "SIGINT",
            0.0,
        )
        assert [error_of(one).category for one in ended] == [Category.CANCELLED] * 2
        await assert_gone(waiting.marker, *(one.marker for one in running))


async def test_a_task_that_is_killed_leaves_nothing_and_is_told(cluster: RayCluster, room: Room) -> None:
    asked = order(room, STRAY, *HANGS, on_event=Heard())

    async def kill(_ended: Ended) -> None:
        (pid,) = cluster.workers("ray::agentcell a")
        os.kill(pid, signal.SIGKILL)

    async with executing(cluster) as executor:
        (ended,) = await attempts(executor, [asked], kill)
        await assert_gone(asked.marker)
    error = error_of(ended)
    assert (error.category, error.partial_response) == (Category.HOST_LOST, "halfway")
    assert error.message == "the session was lost: the task that made it was killed"


async def test_an_actor_that_is_killed_leaves_nothing_and_there_is_another(cluster: RayCluster, room: Room) -> None:
    orders = [order(room, STRAY, *HANGS, on_event=Heard()) for _ in range(2)]

    async def kill(_ended: Ended) -> None:
        for pid in cluster.workers("ray::NodeActor"):
            os.kill(pid, signal.SIGKILL)

    async with executing(cluster) as executor:
        ended = await attempts(executor, orders, kill)
        assert [error_of(one).category for one in ended] == [Category.HOST_LOST] * 2
        await assert_gone(*(one.marker for one in orders))
        again = await executor.attempt(order(room, {"text": "done"}))
        assert again.result.response == "done"


async def test_a_bridge_that_is_killed_leaves_nothing_and_there_is_another(cluster: RayCluster, room: Room) -> None:
    orders = [order(room, STRAY, *HANGS, on_event=Heard()) for _ in range(3)]
    async with executing(cluster) as executor:

        async def kill(_ended: Ended) -> None:
            assert executor._links is not None
            os.kill((await executor._links.get()).pid, signal.SIGKILL)

        ended = await attempts(executor, orders, kill)
        assert [error_of(one).message for one in ended] == ["the session was lost: the bridge to Ray has ended"] * 3
        await assert_gone(*(one.marker for one in orders))
        again = await executor.attempt(order(room, {"text": "done"}))
        assert again.result.response == "done"


async def test_a_driver_that_is_killed_leaves_nothing(cluster: RayCluster, room: Room) -> None:
    markers = [new_marker() for _ in range(3)]
    program = str(Path(__file__).with_name("driver.py"))
    argv = [sys.executable, "-P", program, cluster.address, str(room.path), *markers]
    started = partial(subprocess.Popen, argv, stdout=subprocess.PIPE)
    with ending(await in_thread(started), BOUND_SECONDS) as driver:
        assert driver.stdout is not None
        for _ in markers:
            await in_thread(driver.stdout.readline)
        driver.kill()
        await in_thread(driver.wait)
    await until_gone(*markers)


async def test_a_directory_that_a_node_does_not_have_is_named(cluster: RayCluster, tmp_path: Path) -> None:
    with pytest.raises(ExecutorError, match="nowhere is not there on node"):
        async with executing(cluster, directories=[tmp_path / "nowhere"]):
            raise AssertionError


async def test_nodes_that_have_no_room_for_any_cell_are_refused_before_anything_waits(cluster: RayCluster) -> None:
    with pytest.raises(ExecutorError, match="no node has room for a cell of 3 cores and 256 MB"):
        async with executing(cluster, cell_cpus=3):
            raise AssertionError


async def test_where_there_is_no_cluster_that_is_said() -> None:
    with pytest.raises(ExecutorError, match=r"there is no Ray cluster at 127\.0\.0\.1:1 "):
        async with RayExecutor("127.0.0.1:1"):
            raise AssertionError


async def test_a_node_that_joins_later_is_used_and_one_that_dies_leaves_nothing(
    cluster: RayCluster, room: Room
) -> None:
    async with executing(cluster) as executor:
        node = await in_thread(cluster.add)
        orders = [order(room, STRAY, *HANGS, on_event=Heard()) for _ in range(12)]

        async def kill(ended: Ended) -> None:
            cluster.kill(node)
            await ended.reached(4)
            for one in orders:
                one.stop.cancel()

        ended = await attempts(executor, orders, kill)
        categories = sorted(str(error_of(one).category) for one in ended)
        await assert_gone(*(one.marker for one in orders))
    assert categories == ["cancelled"] * 8 + ["host_lost"] * 4


async def test_a_node_that_joins_and_cannot_run_ours_gets_nothing_and_that_is_told_once(
    cluster: RayCluster, room: Room, tmp_path: Path
) -> None:
    warnings: list[str] = []
    (tmp_path / "agentcell.py").write_text("raise ModuleNotFoundError(\"No module named 'agentcell'\")")
    async with executing(cluster, on_warning=warnings.append, cell_cpus=2) as executor:
        held = [order(room, *HANGS, on_event=Heard()) for _ in range(2)]

        async def work(_ended: Ended) -> None:
            refused = Ended()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(refused.attempt, executor, order(room, {"text": "done"}))
                await anyio.wait_all_tasks_blocked()
                await executor.sweep([new_marker()])  # answered after what was said before
                node = await in_thread(partial(cluster.add, str(tmp_path)))
            for one in held:
                one.stop.cancel()
            made = [await executor.attempt(order(room, {"text": "done"})) for _ in range(4)]
            error = error_of(refused.attempted[0])
            assert (error.category, error.details["errno"]) == ("spawn_failed", EHOSTUNREACH)
            assert [one.result.response for one in made] == ["done"] * 4
            cluster.kill(node)

        await attempts(executor, held, work)
    (warning,) = warnings
    assert warning.startswith("agentcell is not installed on node ")
