"""A host runs so many sessions at a time, and none is left when it closes."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.faults.harness import Room, command

from agentcell import Host, HostClosedError, HostOpenError
from agentcell_protocol.errors import Category

pytestmark = pytest.mark.anyio


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def request(room: Room) -> dict[str, Any]:
    return {"session_name": "a", "agent_type": "coder", "project_dir": str(room.path), "starting_message": "hi"}


WAIT_SECONDS = 60
"""For what takes a second."""


async def test_a_session_runs_inside_the_block(room: Room) -> None:
    async with Host(worker_command=command("answers_then_exits", "0")) as host:
        result = await host.run(request(room), env=room.environment)
    assert (result.status, result.response) == ("complete", "done")


async def test_no_more_than_so_many_sessions_run_at_a_time(room: Room) -> None:
    running, most = 0, 0
    two_run = anyio.Event()

    async def run(host: Host) -> None:
        nonlocal running

        async def count(event: dict[str, Any]) -> None:
            nonlocal running, most
            running += event["type"] == "hello"
            most = max(most, running)
            if running == 2:
                two_run.set()
            with anyio.fail_after(WAIT_SECONDS):
                await two_run.wait()

        await host.run(request(room), env=room.environment, on_event=count)
        running -= 1

    async with (
        Host(max_sessions=2, worker_command=command("answers_then_exits", "0")) as host,
        anyio.create_task_group() as tasks,
    ):
        for _ in range(8):
            tasks.start_soon(run, host)
    assert (running, most) == (0, 2)


async def test_leaving_the_block_cancels_what_still_runs(room: Room) -> None:
    endings: list[object] = []
    started = anyio.Event()

    async def run(host: Host) -> None:
        result = await host.run(request(room), env=room.environment, on_event=lambda _: started.set())
        endings.append(result.error and result.error.category)

    async with anyio.create_task_group() as tasks, Host(worker_command=command("cleans_up")) as host:
        tasks.start_soon(run, host)
        await started.wait()
    assert endings == [Category.CANCELLED]


async def test_a_host_that_is_not_open_runs_nothing(room: Room) -> None:
    host = Host()
    with pytest.raises(HostClosedError):
        await host.run(request(room))
    async with host:
        pass
    with pytest.raises(HostClosedError):
        await host.run(request(room))


async def test_a_host_is_entered_once_at_a_time(room: Room) -> None:
    async with Host(worker_command=command("answers_when_told")) as host:
        with pytest.raises(HostOpenError):
            await host.__aenter__()
    async with host:
        pass


def test_a_host_for_no_sessions_makes_no_sense() -> None:
    with pytest.raises(ValueError, match="max_sessions must be positive"):
        Host(max_sessions=0)
    assert os.cpu_count()
