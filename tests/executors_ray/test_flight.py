"""What a driver passes on of an attempt that does not end."""

from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from tests.executors_ray.bridges import BOUND_SECONDS, READY, Bridge, opened
from tests.faults.harness import Room

from agentcell.executors.ray import flight as flights
from agentcell.executors.ray.flight import Flight
from agentcell.executors.ray.talk import RaySettings
from agentcell.limits import Limits
from agentcell.orders import Order
from agentcell_protocol.errors import Category
from agentcell_protocol.request import with_session_id

pytestmark = pytest.mark.anyio

LOST_WHEN_CANCELLED_TWICE = (
    READY
    + """
marker = next(lines)["marker"]
say(type="said", marker=marker, events=[])
messages = (message for message in lines if message["type"] == "cancel")
reasons = [next(messages)["reason"] for _ in range(2)]
say(type="lost", marker=marker, reason=" and ".join(reasons), has_begun=True)
next(messages, None)
"""
)


@pytest.fixture
def order(tmp_path: Path) -> Order:
    room = Room(tmp_path)
    return Order(with_session_id(room.request()), environment=room.environment)


async def test_a_second_stop_is_passed_on_however_late_it_comes(
    order: Order, bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flights, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(flights, "LAST_EVENTS_SECONDS", 0.0)
    bridge(LOST_WHEN_CANCELLED_TWICE)
    async with opened() as links, anyio.create_task_group() as tasks:

        async def stop_twice() -> None:
            for _ in range(2):
                order.stop.cancel("SIGINT")
                await anyio.wait_all_tasks_blocked()

        flight = Flight(order, links, RaySettings())
        await links.get()
        tasks.start_soon(stop_twice)
        with anyio.fail_after(BOUND_SECONDS):
            result = await flight.run()
    assert result.error is not None
    assert (result.error.category, result.error.details["signal"]) == (Category.CANCELLED, "SIGINT")


async def test_a_keeper_that_stands_still_beyond_the_wall_limit_is_told_to_end_it(
    order: Order, bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GRACE_SECONDS", "LAST_EVENTS_SECONDS", "END_SECONDS"):
        monkeypatch.setattr(flights, name, 0.0)
    bridge(LOST_WHEN_CANCELLED_TWICE)
    async with opened() as links:
        flight = Flight(replace(order, limits=Limits(max_execution_seconds=0.01)), links, RaySettings())
        with anyio.fail_after(BOUND_SECONDS):
            result = await flight.run()
    assert result.error is not None
    assert (result.error.category, result.error.message) == (
        Category.HOST_LOST,
        "the session was lost: SIGTERM and SIGTERM",
    )
