"""Cells start a few at a time, and waiting for that is nobody's own time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.faults.harness import command
from tests.host.stand_ins import forked_stand_ins

from agentcell import Host, Limits
from agentcell.gate import Gate
from agentcell.stop import Stop

pytestmark = pytest.mark.anyio

BOUND_SECONDS = 60


@pytest.fixture(scope="module", autouse=True)
def _stand_ins() -> Iterator[None]:
    """Workers that do what their requests say."""
    with forked_stand_ins():
        yield


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "TMPDIR": str(tmp_path)}


def request(project: Path, *steps: dict[str, Any]) -> dict[str, Any]:
    return {
        "session_name": "a",
        "agent_type": "coder",
        "project_dir": str(project),
        "starting_message": "hi",
        "context": {"stand_in": list(steps)},
    }


async def test_so_many_have_their_turn_at_a_time() -> None:
    gate, having, most = Gate(2), 0, 0

    async def take(number: int) -> None:
        nonlocal having, most
        async with gate.turn(Stop()) as turn:
            having += 1
            most = max(most, having)
            await anyio.lowlevel.checkpoint()
            having -= 1
            if number % 2:
                turn.end()
                turn.end()

    with anyio.fail_after(BOUND_SECONDS):
        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(take, number)
    assert (having, most) == (0, 2)


async def test_who_is_cancelled_gets_no_turn() -> None:
    gate = Gate(1)
    with anyio.CancelScope() as scope:
        scope.cancel()
        async with gate.turn(Stop()):
            raise AssertionError("it may be started")
    assert scope.cancelled_caught


async def test_a_stop_ends_the_wait_and_takes_no_turn() -> None:
    gate, stop = Gate(1), Stop()
    with anyio.fail_after(BOUND_SECONDS):
        async with gate.turn(Stop()), anyio.create_task_group() as tasks:
            tasks.start_soon(_wait_for, gate, stop)
            await anyio.lowlevel.checkpoint()
            stop.cancel()
        async with gate.turn(Stop()):
            pass


async def _wait_for(gate: Gate, stop: Stop) -> None:
    async with gate.turn(stop):
        assert stop.reason == "SIGTERM"


async def test_a_session_gives_its_turn_on_when_it_has_started(tmp_path: Path, environment: dict[str, str]) -> None:
    """The first one hangs after its start; the second could not run if it had to wait for its end."""
    first = request(tmp_path, {"text": "up"}, {"hang": True})
    with anyio.fail_after(BOUND_SECONDS):
        async with Host(max_sessions=2, max_starts=1) as host, anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: host.run(first, env=environment))
            result = await host.run(request(tmp_path, {"text": "done"}), env=environment)
            tasks.cancel_scope.cancel()
    assert result.response == "done"


async def test_the_wait_for_a_turn_counts_for_no_limit(tmp_path: Path, environment: dict[str, str]) -> None:
    """Each takes most of what it may; together they take several times that."""
    results = []
    limits = Limits(max_execution_seconds=2)

    async def run(host: Host) -> None:
        results.append(await host.run(silent, limits=limits, env=environment))

    silent = request(tmp_path, {"stdout": ""}, {"wait": 0.25})
    with anyio.fail_after(BOUND_SECONDS):
        async with Host(max_sessions=12, max_starts=1) as host, anyio.create_task_group() as tasks:
            for _ in range(12):
                tasks.start_soon(run, host)
    assert {result.status for result in results} == {"complete"}
    assert max(result.execution_time for result in results) < limits.max_execution_seconds


async def test_a_host_that_closes_starts_none_of_those_that_wait(tmp_path: Path, environment: dict[str, str]) -> None:
    endings = []

    async def run(host: Host) -> None:
        result = await host.run(request(tmp_path), env=environment)
        endings.append((result.error and result.error.category.value, result.start))

    with anyio.fail_after(BOUND_SECONDS):
        async with (
            anyio.create_task_group() as tasks,
            Host(max_sessions=3, max_starts=1, worker_command=command("never_greets")) as host,
        ):
            for _ in range(3):
                tasks.start_soon(run, host)
            await anyio.wait_all_tasks_blocked()
    assert sorted(endings, key=str) == [("cancelled", "cold"), ("cancelled", None), ("cancelled", None)]


def test_a_gate_for_nobody_makes_no_sense() -> None:
    with pytest.raises(ValueError, match="max_starts must be positive"):
        Host(max_starts=0)
