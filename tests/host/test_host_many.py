"""Many sessions of one host: results as they finish, one that fails harms no other, and leaving early ends all."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.faults.harness import Room, command
from tests.host.stand_ins import forked_stand_ins

from agentcell import Host, HostClosedError, SessionResult
from agentcell.orders import Order
from agentcell.stop import Stop
from agentcell.stream import Answers
from agentcell_protocol.errors import Category, session_error

pytestmark = pytest.mark.anyio

BOUND_SECONDS = 60

MANY = 100

TASKS_OF_A_SESSION = 12
"""Its own, and those of its supervision."""

HANGS: list[dict[str, Any]] = [{"text": "hanging"}, {"hang": True}]


class OurError(Exception):
    pass


@pytest.fixture
def room(tmp_path: Path) -> Room:
    path = tmp_path / "room"
    path.mkdir()
    return Room(path)


@pytest.fixture(scope="module", autouse=True)
def _stand_ins() -> Iterator[None]:
    """Workers that do what their requests say."""
    with forked_stand_ins():
        yield


def request(room: Room, name: str = "a", *steps: dict[str, Any], **members: Any) -> dict[str, Any]:
    known = {"session_name": name, "agent_type": "coder", "project_dir": str(room.path), "starting_message": "hi"}
    return {**known, "context": {"stand_in": list(steps)}, **members}


def order(room: Room, name: str, *steps: dict[str, Any], **more: Any) -> Order:
    session = room.request(session_name=name, context={"stand_in": list(steps)})
    return Order(session, environment=room.environment, **more)


async def each(*items: Any, failure: Exception | None = None) -> AsyncIterator[Any]:
    for item in items:
        yield item
    if failure is not None:
        raise failure


def ends(results: Sequence[SessionResult]) -> set[tuple[str | None, str]]:
    return {(one.session_name, one.error.category if one.error else one.response) for one in results}


async def take(answers: Answers[SessionResult], then: Callable[[SessionResult], object] = id) -> list[SessionResult]:
    results = []
    async for result in answers:
        results.append(result)
        then(result)
    return results


@pytest.mark.parametrize("is_async", [False, True])
async def test_requests_of_any_kind_of_iterable_run_so_many_at_a_time(room: Room, is_async: bool) -> None:
    requests = [request(room) for _ in range(8)]
    running = most = 0

    def count(event: dict[str, Any]) -> None:
        nonlocal running, most
        running += event["type"] == "hello"
        most = max(most, running)

    def uncount(_: SessionResult) -> None:
        nonlocal running
        running -= 1

    source = each(*requests) if is_async else requests
    async with Host(max_sessions=2, worker_command=command("answers_then_exits", "0")) as host:
        results = await take(host.run_many(source, env=room.environment, on_event=count), uncount)
    assert [result.response for result in results] == ["done"] * 8
    assert (running, most) == (0, 2)


async def test_a_result_comes_as_soon_as_its_session_ends(room: Room) -> None:
    requests = [request(room, "slow", *HANGS), *(request(room, name, {"text": name}) for name in "abc")]
    names = []
    async with (
        Host(max_sessions=2) as host,
        host.run_many(requests, env=room.environment) as results,
    ):
        async for result in results:
            names.append(result.session_name)
            if len(names) == 3:
                break
    assert names == ["a", "b", "c"]


async def test_a_wrong_request_is_a_result_of_its_own(room: Room) -> None:
    steps = {"fail": {"category": "bad_request", "message": "agent_type: unknown"}}
    requests: list[Any] = [
        {"session_name": "wrong", "promt": "hi"},
        17,
        request(room, "found", steps),
        request(room, "fine"),
    ]
    async with Host() as host:
        results = await take(host.run_many(requests, env=room.environment))
    bad = Category.BAD_REQUEST
    assert ends(results) == {("wrong", bad), (None, bad), ("found", bad), ("fine", "")}


async def test_a_crash_is_its_own(room: Room) -> None:
    dies: list[dict[str, Any]] = [{"tool": {"name": "Bash"}}, {"die": "SIGKILL"}]
    requests = [request(room, "dies", *dies), request(room, "fine", {"text": "fine"})]
    async with Host() as host:
        results = await take(host.run_many(requests, env=room.environment))
    assert ends(results) == {("dies", Category.CRASHED), ("fine", "fine")}
    assert {result.session_name: result.tool_calls for result in results} == {"dies": 1, "fine": 0}


async def test_a_callback_that_raises_ends_its_own_session_and_no_other(room: Room) -> None:
    file = room.path.parent / "result.json"

    def fail(event: dict[str, Any]) -> None:
        if event.get("text") == "hanging":
            raise OurError("no")

    requests = [request(room, "a", *HANGS, result_file=str(file)), request(room, "b", {"text": "b"})]
    async with Host() as host:
        results = await take(host.run_many(requests, env=room.environment, on_event=fail))
    assert ends(results) == {("a", Category.INTERNAL), ("b", "b")}
    failed = next(result for result in results if result.session_name == "a")
    assert failed.error == session_error(
        Category.INTERNAL,
        "on_event raised OurError: no",
        hint="this is a mistake in the program that runs the session, not in the session",
        partial_response="hanging",
        callback="on_event",
    )
    assert (failed.attempts[0].error, json.loads(file.read_bytes())["response"]) == (failed.error, failed.response)


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_ctrl_c_in_a_callback_stays_what_it_is(room: Room) -> None:
    def interrupt(_: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    async def run() -> None:
        async with Host() as host:
            await take(host.run_many([request(room, "a", *HANGS)], env=room.environment, on_event=interrupt))

    with pytest.raises(KeyboardInterrupt):
        await run()


async def test_what_the_requests_raise_comes_after_the_results_and_as_it_is(room: Room) -> None:
    results: list[SessionResult] = []

    async def run() -> None:
        async with Host() as host:
            source = each(request(room, "a"), request(room, "b"), failure=OurError())
            await take(host.run_many(source, env=room.environment), results.append)

    with pytest.raises(OurError):
        await run()
    assert ends(results) == {("a", ""), ("b", "")}


async def test_what_is_no_iterable_is_the_callers_mistake(room: Room) -> None:
    requests: Any = 17
    async with Host() as host:
        with pytest.raises(TypeError, match="not iterable"):
            await take(host.run_many(requests))


async def test_what_cannot_be_in_an_environment_is_raised(room: Room) -> None:
    async with Host() as host:
        with pytest.raises(ValueError, match="null byte"):
            await take(host.run_many([request(room)], env={**room.environment, "A": "\0"}))


async def test_leaving_early_closes_the_generator_of_the_requests_and_tells_what_its_end_raises(room: Room) -> None:
    async def source() -> AsyncIterator[Any]:
        try:
            while True:
                yield request(room)
        finally:
            raise OurError

    async def run(host: Host) -> None:
        async with host.run_many(requests, env=room.environment) as results:
            await anext(results)

    requests = source()  # held, so that nothing but the host closes it
    async with Host(max_sessions=1) as host:
        with pytest.raises(OurError):
            await run(host)


async def test_a_session_may_be_run_between_two_results(room: Room) -> None:
    async with Host(max_sessions=1) as host:
        results = []
        async for result in host.run_many([request(room, name) for name in "ab"], env=room.environment):
            results += [result, await host.run(request(room, f"after {result.session_name}"), env=room.environment)]
    assert [result.session_name for result in results] == ["a", "after a", "b", "after b"]


async def test_two_loops_share_the_room_of_their_host(room: Room) -> None:
    results: list[SessionResult] = []
    async with Host(max_sessions=1) as host, anyio.create_task_group() as tasks:
        for names in ("ab", "cd"):
            requests = [request(room, name) for name in names]
            tasks.start_soon(take, host.run_many(requests, env=room.environment), results.append)
    assert sorted(str(result.session_name) for result in results) == list("abcd")


async def test_after_a_break_the_host_ends_what_still_runs(room: Room) -> None:
    requests = [request(room, "a"), *(request(room, "b", *HANGS) for _ in range(5))]
    async with Host(max_sessions=2) as host:
        async for result in host.run_many(requests, env=room.environment):
            assert result.session_name == "a"
            break
        again = await host.run(request(room, "again"), env=room.environment)
    assert again.session_name == "again"


async def test_an_exception_in_the_loop_leaves_the_host_as_it_is(room: Room) -> None:
    async def run() -> None:
        async with Host(max_sessions=2) as host:
            async for _ in host.run_many([request(room, "a"), request(room, "b", *HANGS)], env=room.environment):
                raise OurError

    with pytest.raises(OurError):
        await run()


async def test_a_cancellation_around_the_host_ends_all(room: Room) -> None:
    with anyio.CancelScope() as scope:
        async with Host(max_sessions=2) as host:
            requests = [request(room, "a", *HANGS) for _ in range(3)]
            await take(host.run_many(requests, env=room.environment, on_event=lambda _: scope.cancel()))
    assert scope.cancelled_caught
    assert list(room.path.iterdir()) == []


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_asyncio_timeout_around_the_host_is_one(room: Room) -> None:
    async def run() -> None:
        async with Host(max_sessions=2) as host:
            await take(host.run_many([request(room, "a", *HANGS)] * 3, env=room.environment))

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(run(), 1)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    assert list(room.path.iterdir()) == []


async def test_a_host_that_is_left_gives_the_results_of_what_ran_and_says_that_there_was_more(room: Room) -> None:
    results: list[SessionResult] = []
    outcomes: list[Exception] = []
    hanging = anyio.Event()

    def listen(event: dict[str, Any]) -> None:
        if event.get("text") == "hanging":
            hanging.set()

    async def consume(host: Host) -> None:
        requests = (request(room, name, *HANGS) for name in "ab")
        try:
            await take(host.run_many(requests, env=room.environment, on_event=listen), results.append)
        except HostClosedError as closed:
            outcomes.append(closed)

    async with anyio.create_task_group() as tasks, Host(max_sessions=1) as host:
        tasks.start_soon(consume, host)
        await hanging.wait()
    assert ends(results) == {("a", Category.CANCELLED)}
    assert len(outcomes) == 1


async def test_a_closed_host_takes_no_requests(room: Room) -> None:
    host = Host()
    with pytest.raises(HostClosedError):
        host.run_many([])
    async with host:
        late = host.run_many([request(room)])
        later = host.perform(each(order(room, "a")))
    for answers in (late, later):
        with pytest.raises(HostClosedError):
            await anext(answers)


async def test_an_order_comes_back_with_its_result(room: Room) -> None:
    orders = [order(room, name, {"text": name}, tag=number) for number, name in enumerate("abc")]
    async with Host() as host:
        done = [(one, result.response) async for one, result in host.perform(each(*orders))]
    assert sorted((one.tag, response, one is orders[one.tag]) for one, response in done) == [
        (0, "a", True),
        (1, "b", True),
        (2, "c", True),
    ]


async def test_an_order_can_be_stopped_by_itself(room: Room) -> None:
    stop = Stop()

    def listen(event: dict[str, Any]) -> None:
        if event["type"] == "text":
            stop.cancel("SIGINT")

    first = order(room, "first", *HANGS, stop=stop, on_event=listen)
    async with Host() as host:
        results = [result async for _, result in host.perform(each(first, order(room, "second", {"text": "ok"})))]
    assert ends(results) == {("first", Category.CANCELLED), ("second", "ok")}


async def test_an_order_that_was_stopped_before_the_host_closes_is_not_killed(room: Room) -> None:
    started = anyio.Event()
    one = order(room, "a", on_event=lambda _: started.set())
    results: list[SessionResult] = []

    async def consume(host: Host) -> None:
        async for _, result in host.perform(each(one)):
            results.append(result)

    async with anyio.create_task_group() as tasks, Host(worker_command=command("cleans_up")) as host:
        tasks.start_soon(consume, host)
        await started.wait()
        one.stop.cancel("SIGHUP")
    assert [(result.exit_code, result.error and result.error.details["signal"]) for result in results] == [
        (143, "SIGHUP")
    ]


async def test_an_order_too_long_for_its_line_is_refused_as_a_result(room: Room) -> None:
    long = Order(room.request(starting_message="x" * 33 * 1024 * 1024), environment=room.environment)
    async with Host() as host:
        results = [result async for _, result in host.perform(each(long, order(room, "b", {"text": "b"})))]
    assert ends(results) == {("a", Category.BAD_REQUEST), ("b", "b")}


async def test_the_marker_of_an_order_is_in_its_cell(room: Room) -> None:
    pipe = room.path.parent / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDWR)
    one = order(room, "a", {"spawn": ["sh", "-c", f"echo $AGENTCELL_CELL > {pipe}"]}, {"hang": True})
    try:
        async with (
            Host() as host,
            host.perform(each(one)) as answers,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(anext, answers)
            with anyio.fail_after(BOUND_SECONDS):
                await anyio.wait_readable(reading)
            one.stop.cancel()
        assert os.read(reading, 100) == f"{one.marker}\n".encode()
    finally:
        os.close(reading)


@pytest.mark.slow
async def test_a_hundred_requests_take_no_more_tasks_than_a_few(room: Room) -> None:
    made = 0

    def requests() -> Iterator[dict[str, Any]]:
        nonlocal made
        for _ in range(MANY):
            made += 1
            yield request(room)

    before, most_tasks, most_ahead, done = len(anyio.get_running_tasks()), 0, 0, 0
    async with Host(max_sessions=4) as host:
        async for result in host.run_many(requests(), env=room.environment):
            done += result.status == "complete"
            most_tasks = max(most_tasks, len(anyio.get_running_tasks()) - before)
            most_ahead = max(most_ahead, made - done)
    assert (made, done) == (MANY, MANY)
    assert most_ahead <= 4
    assert most_tasks <= 4 * TASKS_OF_A_SESSION + 1
