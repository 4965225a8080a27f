"""What every executor does with an order, wherever its cells live: each check is given one that is open.

The cells are stand-ins, which do what their requests say.
"""

import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from subprocess import Popen
from typing import Any

import anyio
import pytest
from tests.faults.harness import Room

from agentcell.executors.executor import Executor
from agentcell.limits import Limits
from agentcell.orders import Order
from agentcell.reap import in_thread
from agentcell.stop import Stop
from agentcell_protocol.cell import MARKER, marked, new_marker
from agentcell_protocol.errors import Category, RequestError
from agentcell_protocol.framing import LINE_LIMIT
from agentcell_protocol.result import SessionResult

STAND_IN = (sys.executable, "-P", "-m", "agentcell.testing")
"""A worker whose requests bring their steps."""

BOUND_SECONDS = 120
"""For what takes seconds: nodes of a cluster have to start their processes first."""

LOOK_SECONDS = 0.05
"""Between two looks for what another process has done."""

MUCH = 1024 * 1024
EVENTS = 3000

HANGS: Sequence[Mapping[str, Any]] = ({"text": "hanging"}, {"hang": True})
STUBBORN: Sequence[Mapping[str, Any]] = ({"ignore": ["SIGTERM", "EOF"]}, *HANGS)
STRAY: Mapping[str, Any] = {"spawn": ["setsid", "sleep", "600"]}

Check = Callable[[Executor, Room], Awaitable[None]]
CHECKS: list[Check] = []


def check(function: Check) -> Check:
    """It is one."""
    CHECKS.append(function)
    return function


def order(room: Room, *steps: Mapping[str, Any], name: str = "a", **more: Any) -> Order:
    """For a stand-in that does these steps; what is no member of an order is one of its request."""
    ours = {key: more.pop(key) for key in ("limits", "on_event", "stop", "keep", "stderr_file") if key in more}
    session = room.request(session_name=name, context={"stand_in": list(steps)}, **more)
    return Order(session, environment=room.environment, **ours)


async def result_of(executor: Executor, asked: Order) -> SessionResult:
    """Of an attempt, in bounded time."""
    with anyio.fail_after(BOUND_SECONDS):
        return (await executor.attempt(asked)).get()


async def until(holds: Callable[[], bool]) -> None:
    """Look until it does, in bounded time."""
    with anyio.fail_after(BOUND_SECONDS):
        while not holds():  # noqa: ASYNC110 - another process does it
            await anyio.sleep(LOOK_SECONDS)


async def assert_gone(*orders: Order) -> None:
    """Nothing that their cells have executed is left, at this moment."""
    for one in orders:
        assert await in_thread(lambda one=one: list(marked(one.marker))) == []  # type: ignore[misc]


class Heard:
    """Keeps events, and tells when one of a kind has come."""

    def __init__(self, kind: str = "text") -> None:
        self.events: list[dict[str, Any]] = []
        self.came = anyio.Event()
        self._kind = kind

    def __call__(self, event: dict[str, Any]) -> None:
        self.events.append(event)
        if event["type"] == self._kind:
            self.came.set()

    @property
    def kinds(self) -> list[str]:
        return [event["type"] for event in self.events]


async def stopped(executor: Executor, asked: Order, heard: Heard, *reasons: str) -> SessionResult:
    """The result of an attempt that is cancelled once it has begun."""
    results = []

    async def attempt() -> None:
        results.append(await result_of(executor, asked))

    with anyio.fail_after(BOUND_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(attempt)
            await heard.came.wait()
            for reason in reasons:
                asked.stop.cancel(reason)
    return results[0]


@check
async def a_session_ends_well(executor: Executor, room: Room) -> None:
    asked = order(room, {"text": "done"})
    result = await result_of(executor, asked)
    assert (result.status, result.response, result.session_name) == ("complete", "done", "a")
    assert (result.exit_code, result.signal, [one.number for one in result.attempts]) == (0, None, [1])
    await assert_gone(asked)


@check
async def events_come_in_order_and_before_the_result(executor: Executor, room: Room) -> None:
    heard = Heard()
    asked = order(room, {"text": "one"}, {"tool": {"name": "Bash"}}, {"text": "two"}, on_event=heard)
    assert (await result_of(executor, asked)).response == "two"
    assert heard.kinds[:6] == ["hello", "session_started", "text", "tool_use", "tool_result", "text"]


@check
async def many_events_are_all_there_whoever_is_slow(executor: Executor, room: Room) -> None:
    texts: list[str] = []

    async def listen(event: dict[str, Any]) -> None:
        if event["type"] == "text":
            texts.append(event["text"])
            await anyio.lowlevel.checkpoint()

    steps = [{"text": f"{number} " + "x" * 200} for number in range(EVENTS)]
    await result_of(executor, order(room, *steps, on_event=listen))
    assert [text.split()[0] for text in texts] == [str(number) for number in range(EVENTS)]


@check
async def a_failed_session_has_its_error(executor: Executor, room: Room) -> None:
    asked = order(room, {"fail": {"category": "rate_limit", "message": "slow down", "retry_after_s": 7}})
    error = (await result_of(executor, asked)).error
    assert error is not None
    assert (error.category, error.message, error.retry_after_s) == (Category.RATE_LIMIT, "slow down", 7)


@check
async def a_crash_is_told_with_its_signal(executor: Executor, room: Room) -> None:
    asked = order(room, {"text": "half"}, {"die": "SIGSEGV"})
    result = await result_of(executor, asked)
    assert result.error is not None
    assert (result.error.category, result.error.partial_response) == (Category.CRASHED, "half")
    assert result.signal == "SIGSEGV"
    await assert_gone(asked)


@check
async def what_a_session_leaves_is_ended(executor: Executor, room: Room) -> None:
    asked = order(room, STRAY, {"text": "done"})
    result = await result_of(executor, asked)
    assert (result.response, result.swept_processes >= 1) == ("done", True)
    await assert_gone(asked)


@check
async def a_limit_ends_it(executor: Executor, room: Room) -> None:
    asked = order(room, *HANGS, limits=Limits(max_execution_seconds=2))
    result = await result_of(executor, asked)
    assert result.error is not None
    assert (result.error.category, result.violated_limits) == (Category.TIMEOUT, ["max_execution_seconds"])
    await assert_gone(asked)


@check
async def a_stop_cancels_it_and_its_result_comes(executor: Executor, room: Room) -> None:
    heard = Heard()
    asked = order(room, STRAY, *HANGS, on_event=heard)
    result = await stopped(executor, asked, heard, "SIGINT")
    assert result.error is not None
    assert (result.error.category, result.error.details["signal"]) == (Category.CANCELLED, "SIGINT")
    assert result.error.partial_response == "hanging"
    await assert_gone(asked)


@check
async def a_second_stop_kills_it(executor: Executor, room: Room) -> None:
    heard = Heard()
    asked = order(room, *STUBBORN, on_event=heard)
    result = await stopped(executor, asked, heard, "SIGTERM", "SIGTERM")
    assert result.error is not None
    assert (result.error.category, result.signal) == (Category.CANCELLED, "SIGKILL")
    await assert_gone(asked)


@check
async def what_is_stopped_before_never_starts(executor: Executor, room: Room) -> None:
    heard = Heard()
    asked = order(room, {"text": "done"}, on_event=heard)
    asked.stop.cancel("SIGTERM")
    result = await result_of(executor, asked)
    assert result.error is not None
    assert (result.error.category, result.cost_usd, heard.events) == (Category.CANCELLED, 0.0, [])


@check
async def cancelling_the_task_ends_the_cell_first(executor: Executor, room: Room) -> None:
    heard = Heard()
    asked = order(room, STRAY, *HANGS, on_event=heard)
    with anyio.fail_after(BOUND_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(executor.attempt, asked)
            await heard.came.wait()
            tasks.cancel_scope.cancel()
    await assert_gone(asked)


@check
async def a_listener_that_raises_ends_it(executor: Executor, room: Room) -> None:
    def listen(event: dict[str, Any]) -> None:
        if event["type"] == "text":
            raise KeyError("no such thing")

    asked = order(room, *HANGS, on_event=listen)
    with anyio.fail_after(BOUND_SECONDS):
        attempted = await executor.attempt(asked)
    error = attempted.result.error
    assert isinstance(attempted.failure, KeyError)
    assert error is not None
    assert (error.category, error.details["callback"]) == (Category.INTERNAL, "on_event")
    await assert_gone(asked)


@check
async def large_messages_go_in_and_out(executor: Executor, room: Room) -> None:
    asked = order(room, {"text": "y" * MUCH}, starting_message="x" * MUCH)
    assert len((await result_of(executor, asked)).response) == MUCH


@check
async def what_is_too_long_for_a_line_is_refused(executor: Executor, room: Room) -> None:
    asked = order(room, starting_message="x" * LINE_LIMIT)
    with pytest.raises(RequestError, match="put large inputs into files"):
        await result_of(executor, asked)


@check
async def a_cell_has_exactly_the_orders_environment(executor: Executor, room: Room) -> None:
    file = room.path / "environment"
    steps = {"spawn": ["sh", "-c", f"env > {file}.new; mv {file}.new {file}; sleep 600"]}
    hangs = order(room, steps, *HANGS, on_event=(heard := Heard()))
    os.environ["NOT_FOR_CELLS"] = "1"
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stopped, executor, hangs, heard)
            await until(file.exists)
            hangs.stop.cancel()
    finally:
        del os.environ["NOT_FOR_CELLS"]
    names = {line.partition("=")[0] for line in file.read_text().splitlines()}
    assert {"ANTHROPIC_API_KEY", "PATH", MARKER} <= names
    assert [name for name in names if name.startswith(("RAY_", "PYTHON", "NOT_FOR_"))] == []


@check
async def files_are_where_the_order_says(executor: Executor, room: Room) -> None:
    keep = room.path / "kept"
    file, log = room.path / "result.json", room.path / "stderr.log"
    asked = order(
        room, {"stderr": "oh\n"}, {"text": "done"}, result_file=str(file), stderr_file=log, keep=str(keep)
    )  # fmt: skip
    result = await result_of(executor, asked)
    assert json.loads(file.read_bytes()) == json.loads(json.dumps(result.to_message()))
    assert log.read_text() == "oh\n"
    assert result.transcript is not None
    assert Path(result.transcript).is_relative_to(keep)
    again = await result_of(executor, order(room, {"text": "more"}, resume=result.session_id, keep=str(keep)))
    assert (again.response, again.session_id) == ("more", result.session_id)


@check
async def more_than_there_is_room_for_all_end(executor: Executor, room: Room) -> None:
    orders = [order(room, {"text": str(number)}, name=f"n{number}") for number in range(3 * executor.max_sessions)]
    responses: dict[str, str] = {}

    async def attempt(one: Order) -> None:
        responses[one.request.session_name] = (await result_of(executor, one)).response

    async with anyio.create_task_group() as tasks:
        for one in orders:
            tasks.start_soon(attempt, one)
    assert responses == {f"n{number}": str(number) for number in range(len(orders))}
    await assert_gone(*orders)


@check
async def a_project_that_is_not_there_costs_no_session(executor: Executor, room: Room) -> None:
    project = room.path / "gone"
    project.mkdir()
    asked = order(room, {"text": "done"}, project_dir=str(project))
    project.rmdir()
    error = (await result_of(executor, asked)).error
    assert error is not None
    assert error.category is Category.SPAWN_FAILED
    assert str(project) in error.message


@check
async def a_sweep_ends_cells_that_others_have_left(executor: Executor, _room: Room) -> None:
    marker = new_marker()
    with Popen(["sleep", "600"], env={"PATH": "/usr/bin:/bin", MARKER: marker}) as left:  # noqa: ASYNC220
        assert await executor.sweep([marker]) >= 1  # nodes of one machine may each see it
        left.wait(BOUND_SECONDS)
    assert await executor.sweep([marker]) == 0


@check
async def a_stop_while_it_waits_ends_it_at_once(executor: Executor, room: Room) -> None:
    """More are asked for than there is room for, and all of them are stopped."""
    stop = Stop()
    orders = [order(room, *HANGS, name=f"n{number}", stop=stop) for number in range(2 * executor.max_sessions)]
    categories = []

    async def attempt(one: Order) -> None:
        error = (await result_of(executor, one)).error
        categories.append(error and error.category)

    async with anyio.create_task_group() as tasks:
        for one in orders:
            tasks.start_soon(attempt, one)
        await anyio.lowlevel.checkpoint()
        stop.cancel("SIGTERM")
    assert categories == [Category.CANCELLED] * len(orders)
    await assert_gone(*orders)
