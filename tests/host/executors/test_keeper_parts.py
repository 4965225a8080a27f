"""What a keeper is made of: its room, its lease, and the voice of an attempt."""

import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from errno import ENOMEM
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import ByteSendStream
from tests.faults.harness import Room
from tests.host.executors.keepers import HANGS, STAND_IN, Asked, is_gone, order

from agentcell import memory
from agentcell.executors.keeper.attempts import MOST_EARLY, Attempts
from agentcell.executors.keeper.ending import Ending
from agentcell.executors.keeper.headroom import Headroom, NoHeadroomError
from agentcell.executors.keeper.keeper import Keeper, KeeperSettings
from agentcell.executors.keeper.making import opened
from agentcell.executors.keeper.voice import ROOM_BYTES, Voice
from agentcell.reap import in_thread
from agentcell.stop import Stop
from agentcell_protocol.cell import new_marker
from agentcell_protocol.errors import RequestError

pytestmark = pytest.mark.anyio

BOUND_SECONDS = 60

MOMENT = 0.01


@pytest.fixture
def room(tmp_path: Path) -> Room:
    path = tmp_path / "room"
    path.mkdir()
    return Room(path)


async def test_cells_start_when_enough_memory_is_free_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "LOOK_SECONDS", MOMENT)
    free = [99.0, 99.0, 100.0]
    headroom = Headroom(100.0, at_once=1, free_mb=lambda: free.pop(0) if len(free) > 1 else free[0])
    entered = [anyio.Event(), anyio.Event()]
    goes_on = anyio.Event()

    async def enter(number: int) -> None:
        async with headroom.entered(Stop()) as started:
            entered[number].set()
            assert started is not None
            await goes_on.wait()
            started()
            await anyio.sleep_forever()

    with anyio.fail_after(BOUND_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(enter, 0)
            await entered[0].wait()
            assert free == [100.0]
            tasks.start_soon(enter, 1)
            await anyio.wait_all_tasks_blocked()
            assert not entered[1].is_set()
            goes_on.set()
            await entered[1].wait()
            tasks.cancel_scope.cancel()


async def test_where_no_memory_becomes_free_there_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "LOOK_SECONDS", MOMENT)
    headroom = Headroom(100.0, free_mb=lambda: 99.0, patience_seconds=MOMENT)
    with anyio.fail_after(BOUND_SECONDS), pytest.raises(NoHeadroomError) as raised:
        async with headroom.entered(Stop()):
            raise AssertionError
    assert raised.value.errno == ENOMEM
    assert raised.value.strerror == f"less than 100 MB of memory were free on {os.uname().nodename} for 0.01 s"


async def test_who_is_cancelled_waits_for_no_memory() -> None:
    stop = Stop()
    stop.cancel()
    with anyio.fail_after(BOUND_SECONDS):
        async with Headroom(100.0, free_mb=lambda: 0.0).entered(stop):
            assert stop.reason == "SIGTERM"


async def test_what_is_said_of_attempts_that_never_come_is_forgotten_some_time() -> None:
    attempts = Attempts()
    markers = [new_marker() for _ in range(MOST_EARLY + 1)]
    for marker in markers:
        attempts.cancel(marker, "SIGTERM")
    with attempts.beginning(markers[0]) as first, attempts.beginning(markers[-1]) as last:
        assert (first.stop.reason, last.stop.reason) == (None, "SIGTERM")


class Narrow(ByteSendStream):
    """A stream that takes something only when it may."""

    def __init__(self) -> None:
        self.may_take = anyio.Event()
        self.taken: list[bytes] = []

    async def send(self, item: bytes) -> None:
        await self.may_take.wait()
        self.taken.append(item)

    async def aclose(self) -> None:
        """Nothing is open."""


class Broken(Narrow):
    """A stream whose reader goes as soon as something is to be taken."""

    async def send(self, item: bytes) -> None:
        await super().send(item)
        raise anyio.BrokenResourceError


async def talk(voice: Voice, number: int) -> int:
    """Say so many long things, if nothing holds us up; how many were said."""
    said = 0
    with anyio.move_on_after(1.0):
        for _ in range(number):
            waiting = voice.tell({"type": "text", "text": "x" * (ROOM_BYTES // 4)})
            said += 1
            if waiting is not None:
                await waiting
    return said


async def test_who_speaks_waits_for_a_listener_that_is_behind() -> None:
    stream = Narrow()
    voice = Voice("m", stream)
    with anyio.fail_after(BOUND_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(voice.run)
            said = await talk(voice, 100)
            assert said <= 2 * 4
            stream.may_take.set()
            said += await talk(voice, 20)
            await voice.finish()
    lines = [json.loads(line) for line in stream.taken]
    assert {line["marker"] for line in lines} == {"m"}
    assert sum(len(line["events"]) for line in lines) == said
    assert max(map(len, stream.taken)) < 2 * ROOM_BYTES


async def test_what_nobody_takes_holds_nobody_up() -> None:
    stream = Broken()
    voice = Voice("m", stream)
    with anyio.fail_after(BOUND_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(voice.run)
            await talk(voice, 100)
            stream.may_take.set()
            assert await talk(voice, 100) == 100
            await voice.finish()


@asynccontextmanager
async def keeping(free_mb: Callable[[], float], **settings: Any) -> AsyncIterator[str]:
    """The address of a keeper in this loop, which ends when the block does."""
    (stdin, to_keeper), (from_keeper, stdout) = os.pipe(), os.pipe()
    known = KeeperSettings(os.getpid(), worker_command=STAND_IN, stdin=stdin, stdout=stdout, **settings)
    try:
        with anyio.fail_after(BOUND_SECONDS):
            async with anyio.create_task_group() as tasks:
                ending = Ending()
                tasks.start_soon(Keeper(known, ending, free_mb=free_mb).run)
                await anyio.wait_readable(from_keeper)
                yield json.loads(os.read(from_keeper, 1 << 16))["address"]
                ending.begin()
    finally:
        for fd in (stdin, to_keeper, from_keeper, stdout):
            os.close(fd)


async def test_the_youngest_cell_makes_room_when_memory_is_scarce(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "LOOK_SECONDS", MOMENT)
    free = 100.0
    async with keeping(lambda: free, min_free_mb=100.0) as address:
        old = await in_thread(lambda: Asked(address, order(room, *HANGS)).begun())
        young = await in_thread(lambda: Asked(address, order(room, *HANGS)).begun())
        free = 99.0
        waits = Asked(address, order(room, *HANGS))
        free = 49.0
        result = await in_thread(young.result)
        assert (result["error"]["category"], result["error"]["details"]["by"]) == ("cancelled", "memory")
        free = 100.0
        waits.close()
        old.close()
        assert await in_thread(lambda: is_gone(old.marker))


async def test_an_attempt_without_memory_is_one_that_could_not_start(room: Room) -> None:
    async with keeping(lambda: 99.0, min_free_mb=100.0, patience_seconds=MOMENT) as address:
        result = await in_thread(Asked(address, order(room)).result)
        assert (result["error"]["category"], result["error"]["details"]) == ("spawn_failed", {"errno": ENOMEM})


def test_an_order_that_cannot_be_read_is_refused_without_its_secrets() -> None:
    request = {"session_name": "a", "agent_type": "coder", "project_dir": "/", "env": {"KEY": ["sk-ant-test"]}}
    with pytest.raises(RequestError) as raised:
        opened("marker", {"request": request}, lambda _event: None, Stop())
    assert raised.value.reason == "the order cannot be read: env.KEY: Input should be a valid string"
