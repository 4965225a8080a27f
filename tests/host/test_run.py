"""One session through the Python interface, around misbehaving workers."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.faults.harness import Room, spawner

import agentcell
from agentcell import reap
from agentcell.errors import CallbackCancelledError
from agentcell.limits import Limits
from agentcell.resources import Resources
from agentcell.run import checked, run_attempt, run_session, run_session_sync
from agentcell.stop import Stop
from agentcell_protocol.errors import Category, RequestError, session_error
from agentcell_protocol.framing import LINE_LIMIT
from agentcell_protocol.result import failed

pytestmark = pytest.mark.anyio


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


@contextmanager
def no_new_descriptors() -> Iterator[None]:
    before = sorted(Path("/proc/self/fd").iterdir())
    yield
    assert sorted(Path("/proc/self/fd").iterdir()) == before


async def test_the_worker_runs_in_the_project_with_a_private_scratch_directory(room: Room) -> None:
    seen = json.loads((await room.run("measures_its_request", limits=Limits(drain_seconds=2.5))).response)
    scratch = seen.pop("scratch")
    assert seen == {
        "message": 2,
        "asked": ["summary", True],
        "directory": str(room.path),
        "mode": "0o700",
        "drain": "2.5",
        "names": [
            "AGENTCELL_CELL",
            "AGENTCELL_DRAIN_SECONDS",
            "ANTHROPIC_API_KEY",
            "CLAUDE_CODE_STREAM_CLOSE_TIMEOUT",
            "CLAUDE_CODE_TMPDIR",
            "CLAUDE_CONFIG_DIR",
            "HOME",
            "PATH",
            "TMPDIR",
            "XDG_STATE_HOME",
        ],
    }
    assert scratch[0] == scratch[1]
    assert Path(scratch[0]).parents[1] == room.path
    assert list(room.path.iterdir()) == []


async def test_the_requests_own_variables_are_not_the_workers(room: Room) -> None:
    seen = json.loads((await room.run("measures_its_request", members={"env": {"FOR_THE_AGENT": "1"}})).response)
    assert "FOR_THE_AGENT" not in seen["names"]


async def test_the_workers_stdin_stays_open_and_what_is_missing_is_bounded(room: Room) -> None:
    result = await room.run("watches_its_lifeline", limits=Limits(max_execution_seconds=1))
    assert result.error is not None
    assert result.error.details["limit"] == "wall"


@pytest.mark.parametrize(("asked", "full"), [("none", False), ("summary", False), ("full", True)])
async def test_deltas_are_asked_for_only_for_a_listener_that_wants_them(room: Room, asked: str, full: bool) -> None:
    def listen(event: dict[str, Any]) -> None:
        pass

    members = {"events": asked}
    heard = json.loads((await room.run("measures_its_request", members=members, on_event=listen)).response)
    unheard = json.loads((await room.run("measures_its_request", members=members)).response)
    assert heard["asked"] == ["full" if full else "summary", True]
    assert unheard["asked"] == ["summary", True]


async def test_events_come_in_order_to_plain_and_to_async_callbacks(room: Room) -> None:
    plain: list[str] = []
    awaited: list[str] = []

    async def listen(event: dict[str, Any]) -> None:
        await anyio.lowlevel.checkpoint()
        awaited.append(str(event["text"]))

    await room.run("talks_much", "300", on_event=lambda event: plain.append(str(event["text"])))
    await room.run("talks_much", "300", on_event=listen)
    assert plain == awaited == [str(number) for number in range(300)]


async def test_a_slow_callback_gets_every_event_though_the_worker_is_long_gone(room: Room) -> None:
    heard = 0

    async def listen(event: dict[str, Any]) -> None:
        nonlocal heard
        await anyio.sleep(0.01)
        heard += 1

    result = await room.run("talks_much", "100", on_event=listen)
    assert (result.response, heard) == ("done", 100)


async def test_a_callback_that_never_returns_is_cut_off_by_the_wall_limit(room: Room) -> None:
    async def listen(event: dict[str, Any]) -> None:
        await anyio.sleep_forever()

    result = await room.run("answers_then_exits", "0", on_event=listen, limits=Limits(max_execution_seconds=1))
    assert (result.status, result.response) == ("complete", "done")


class OurError(Exception):
    pass


@pytest.mark.parametrize("worker", ["falls_silent", "cleans_up", "talks_much"])
@pytest.mark.parametrize("is_async", [False, True])
async def test_what_a_callback_raises_ends_the_cell_and_then_propagates(
    room: Room, worker: str, is_async: bool
) -> None:
    calls: list[str] = []

    def fail(event: dict[str, Any]) -> None:
        calls.append(event["type"])
        raise OurError

    async def fail_later(event: dict[str, Any]) -> None:
        await anyio.lowlevel.checkpoint()
        fail(event)

    with no_new_descriptors(), pytest.raises(OurError):
        await room.run(worker, "10", on_event=fail_later if is_async else fail)
    assert len(calls) == 1


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("worker", ["falls_silent", "answers_then_exits"])
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_callback_that_lets_a_cancellation_out_has_failed_and_not_the_worker(
    room: Room, worker: str, is_async: bool
) -> None:
    def fail(event: dict[str, Any]) -> None:
        raise asyncio.CancelledError

    async def fail_later(event: dict[str, Any]) -> None:
        inner = asyncio.ensure_future(asyncio.sleep(0))
        inner.cancel()
        await inner

    with anyio.fail_after(30), pytest.raises(CallbackCancelledError) as raised:
        await room.run(worker, "0", on_event=fail_later if is_async else fail)
    assert type(raised.value.__cause__) is asyncio.CancelledError


async def test_a_cancelled_scope_ends_the_cell_first(room: Room) -> None:
    async def run(scope: anyio.CancelScope) -> None:
        await room.run("leaves_a_grandchild", "hang", on_event=lambda _: scope.cancel())

    with no_new_descriptors(), anyio.CancelScope() as scope:
        await run(scope)
    assert scope.cancelled_caught
    assert list(room.path.iterdir()) == []


async def test_a_worker_that_is_cancelled_can_still_write_all_it_has(room: Room) -> None:
    """Nobody listens any more; a worker that is not read from could never end by itself."""
    with anyio.CancelScope() as scope:
        await room.run("talks_much", "100000", on_event=lambda _: scope.cancel())
    assert scope.cancelled_caught


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_asyncio_task_that_is_cancelled_ends_its_cell_first(room: Room) -> None:
    started = asyncio.Event()
    task = asyncio.create_task(room.run("cleans_up", on_event=lambda _: started.set()))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert list(room.path.iterdir()) == []


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_asyncio_task_that_is_cancelled_twice_kills_its_cell(room: Room) -> None:
    started = asyncio.Event()
    task = asyncio.create_task(
        room.run("ignores_sigterm", on_event=lambda event: started.set() if event["type"] == "text" else None)
    )
    await started.wait()
    task.cancel()
    await asyncio.wait([task], timeout=0.1)
    task.cancel()
    with anyio.fail_after(reap.GRACE_SECONDS - 1), pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_asyncio_timeouts_work_around_a_session(room: Room) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(room.run("falls_silent"), 1)
    assert list(room.path.iterdir()) == []


async def test_a_stop_before_the_start_starts_nothing(room: Room) -> None:
    stop = Stop()
    stop.cancel("SIGHUP")
    result = await room.run("falls_silent", stop=stop)
    assert result.error is not None
    assert (result.error.category, result.error.details) == (Category.CANCELLED, {"signal": "SIGHUP"})
    assert len(result.attempts) == 1


async def test_thirty_sessions_at_once_leave_no_descriptor(room: Room) -> None:
    await room.run("answers_then_exits", "0")
    with no_new_descriptors():
        async with anyio.create_task_group() as tasks:
            for _ in range(30):
                tasks.start_soon(room.run, "answers_then_exits", "0")


async def test_a_missing_scratch_place_is_a_result(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    result = await room.run("falls_silent")
    assert result.error is not None
    assert (result.error.category, result.error.details) == (Category.SPAWN_FAILED, {"errno": 28})


async def test_a_request_too_long_for_a_line_is_refused(room: Room) -> None:
    order = room.order(members={"starting_message": "x" * LINE_LIMIT})
    with pytest.raises(RequestError, match="bytes long as a line"):
        await run_attempt(order, Resources(spawner("falls_silent")))


async def test_a_wrong_request_is_the_callers_mistake() -> None:
    with pytest.raises(RequestError) as refused:
        await run_session({"session_name": "a"})
    assert refused.value.member in {"agent_type", "project_dir"}


def test_what_only_the_cell_finds_wrong_with_a_request_is_the_callers_mistake_too() -> None:
    error = session_error(
        Category.BAD_REQUEST, "agent_type: unknown", hint="give coder", member="agent_type", reason="unknown"
    )
    with pytest.raises(RequestError) as refused:
        checked(failed(error))
    assert (refused.value.member, refused.value.reason, refused.value.remedy) == ("agent_type", "unknown", "give coder")


async def test_the_synchronous_form_refuses_to_run_inside_a_loop(room: Room) -> None:
    with pytest.raises(agentcell.RunningLoopError, match="await run_session"):
        run_session_sync({})


def test_the_synchronous_form_raises_what_the_other_one_raises() -> None:
    with pytest.raises(RequestError):
        run_session_sync({})
