"""A cell that takes more than its limits allow is ended near them, and its result says by what."""

import os
from functools import partial

import anyio
import pytest
from tests.faults.harness import Room, Told, told

from agentcell import supervise
from agentcell.limits import Limits
from agentcell.meter import Meter
from agentcell.resources import Resources
from agentcell.run import run_attempt
from agentcell_protocol.errors import Category
from agentcell_protocol.result import SessionResult, Usage

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

LIMIT_MB = 300
NEAR_MB = 300
"""How far over its limit a cell may be seen, on a machine that is busy with other tests."""

TIMED_OUT = partial(Told, status="error", category=Category.TIMEOUT, partial="half", end="SIGTERM")


@pytest.mark.parametrize("room", ["fork", "cold"], indirect=True)
@pytest.mark.parametrize("how", ["steps", "jump", "detached"])
async def test_a_tool_that_takes_too_much_memory_is_killed_near_the_limit_and_named(room: Room, how: str) -> None:
    result = await room.run("grows", how, limits=Limits(max_memory_mb=LIMIT_MB))
    assert result.error is not None
    details = dict(result.error.details)
    reached, pid, peak = details.pop("reached"), details.pop("pid"), details.pop("peak_memory_mb")
    assert details == {
        "signal": "SIGTERM",
        "last_event": "usage",
        "killed_by_host": True,
        "limit": "max_memory_mb",
        "allowed": LIMIT_MB,
        "process": "hog",
    }
    assert LIMIT_MB <= reached <= peak < LIMIT_MB + NEAR_MB
    assert peak == result.peak_memory_mb
    assert str(pid) in result.response
    assert (result.error.category, result.error.retryable) == (Category.MEMORY_LIMIT, False)
    assert (result.error.partial_response, result.session_id, result.usage) == (
        "half",
        "s",
        Usage(input_tokens=3, output_tokens=5),
    )
    assert result.violated_limits == ["max_memory_mb"]


async def test_a_worker_that_takes_too_much_memory_itself_is_killed(room: Room) -> None:
    result = await room.run("grows", "worker", limits=Limits(max_memory_mb=LIMIT_MB))
    assert result.error is not None
    assert (result.error.category, result.error.details["process"]) == (Category.MEMORY_LIMIT, "hog")
    assert (result.signal, result.error.partial_response) == ("SIGKILL", "half")


async def test_a_cell_that_takes_too_much_leaves_the_others_alone(room: Room) -> None:
    pipe = room.path.parent / "pipe"
    os.mkfifo(pipe)
    meter, results = Meter(), dict[str, SessionResult]()
    limits = Limits(max_memory_mb=LIMIT_MB)

    async def run(worker: str, argument: str) -> None:
        resources = Resources(room.spawner(worker, argument), meter)
        results[worker] = await run_attempt(room.order(limits), resources)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, "answers_when_told", str(pipe))
            await run("grows", "steps")
            await anyio.to_thread.run_sync(pipe.write_bytes, b"now")
    error = results["grows"].error
    assert error is not None
    assert error.category is Category.MEMORY_LIMIT
    assert told(results["answers_when_told"]) == Told()
    assert 0 < (results["answers_when_told"].peak_memory_mb or 0) < LIMIT_MB


@pytest.mark.parametrize(
    ("what", "limits", "reached"),
    [
        ("processes", Limits(max_processes=10), 11),
        ("threads", Limits(max_threads=10), 11),
        ("descriptors", Limits(max_file_descriptors=50), 51),
        ("cpu", Limits(max_cpu_seconds=1), 1),
        ("output", Limits(max_output_bytes=100_000), 100_000),
    ],
)
async def test_whatever_else_a_cell_takes_too_much_of_is_named_with_what_it_reached(
    room: Room, what: str, limits: Limits, reached: float
) -> None:
    result = await room.run("spreads", what, limits=limits)
    assert result.error is not None
    assert (result.error.category, result.violated_limits) == (
        Category.LIMIT_EXCEEDED,
        [result.error.details["limit"]],
    )
    assert result.error.details["reached"] >= reached
    assert (result.session_id, str(result.error.partial_response)[:4]) == ("s", "half")


async def test_silence_is_idle(room: Room) -> None:
    result = await room.run("falls_silent", limits=Limits(idle_seconds=0.5))
    details = {"signal": "SIGTERM", "last_event": "usage", "killed_by_host": True, "limit": "idle"}
    response = "nothing was heard of the session for 0.5 s, and no tool ran (idle_seconds)"
    assert told(result) == TIMED_OUT(response=response, details=details, violated=("idle_seconds",))
    assert (result.session_id, result.usage) == ("s", Usage(input_tokens=3, output_tokens=5))
    assert result.error is not None
    assert result.error.retryable


async def test_a_tool_that_works_in_silence_is_not_idle(room: Room) -> None:
    limits = Limits(idle_seconds=0.3, max_execution_seconds=2)
    result = await room.run("works_in_silence", limits=limits)
    assert result.violated_limits == ["max_execution_seconds"]


async def test_silence_after_a_tool_is_idle(room: Room) -> None:
    result = await room.run("works_in_silence", "done", limits=Limits(idle_seconds=0.3))
    assert result.violated_limits == ["idle_seconds"]


async def test_a_session_that_has_not_started_is_not_idle(room: Room) -> None:
    limits = Limits(idle_seconds=0.1, startup_seconds=1)
    assert (await room.run("never_greets", limits=limits)).violated_limits == ["startup_seconds"]


async def test_a_callback_that_takes_its_time_does_not_make_the_session_idle(room: Room) -> None:
    heard = []

    async def listen(event: dict[str, object]) -> None:
        heard.append(event["type"])
        await anyio.sleep(0.4)

    result = await room.run("talks_much", "3", on_event=listen, limits=Limits(idle_seconds=0.2))
    assert told(result) == Told()


async def test_a_session_has_started_though_its_listener_still_takes_the_news(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervise, "LAST_EVENTS_SECONDS", 0.1)

    async def listen(event: dict[str, object]) -> None:
        if event["type"] == "session_started":
            await anyio.sleep_forever()

    limits = Limits(startup_seconds=1, max_execution_seconds=1.5)
    assert (await room.run("falls_silent", on_event=listen, limits=limits)).violated_limits == ["max_execution_seconds"]


async def test_a_limit_that_is_met_once_all_is_said_keeps_what_was_said(room: Room) -> None:
    result = await room.run("answers_then_hangs", "outcome", limits=Limits(max_execution_seconds=2))
    assert told(result) == Told(end="SIGTERM", warnings=("limit_in_cleanup",), violated=("max_execution_seconds",))
