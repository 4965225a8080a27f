"""Lines are kept for a slow reader, and events wait for it, but not for long."""

import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from agentcell import outlet
from agentcell.outlet import ROOM_BYTES, Outlet
from agentcell.standard import own_terminal

pytestmark = pytest.mark.anyio

BOUND_SECONDS = 30


@pytest.fixture
def pipe() -> Iterator[list[int]]:
    """The reading and the writing end; whoever closes one takes it out."""
    ends = list(os.pipe())
    yield ends
    for fd in ends:
        os.close(fd)


@asynccontextmanager
async def running(lines: Outlet) -> AsyncIterator[None]:
    with anyio.fail_after(BOUND_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lines.run)
            tasks.start_soon(lines.watch)
            yield
            tasks.cancel_scope.cancel()


async def read(fd: int, size: int) -> bytes:
    found = b""
    while len(found) < size:
        await anyio.wait_readable(fd)
        found += os.read(fd, size - len(found))
    return found


async def test_what_is_put_is_written_in_order_and_whole(pipe: list[int]) -> None:
    lines = Outlet(pipe[1])
    expected = b"".join(b'{"n":%d,"x":"%s"}\n' % (n, b"x" * 100 * n) for n in range(100))
    async with running(lines):
        for n in range(100):
            lines.put({"n": n, "x": "x" * 100 * n})
        assert await read(pipe[0], len(expected)) == expected
        await lines.drained()


async def test_a_file_is_written_like_a_pipe(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        lines = Outlet(file.fileno())
        async with running(lines):
            lines.put({"n": 1})
            await lines.drained()
    assert (tmp_path / "out").read_bytes() == b'{"n":1}\n'


async def test_room_is_waited_for_and_comes_when_the_reader_reads(pipe: list[int]) -> None:
    lines = Outlet(pipe[1])
    async with running(lines):
        assert lines.has_room
        lines.put({"x": "x" * ROOM_BYTES})
        assert not lines.has_room
        found = []

        async def wait() -> None:
            found.append(await lines.room())

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(wait)
            await read(pipe[0], ROOM_BYTES)
    assert found == [True, True, True]


async def test_who_has_waited_in_vain_lets_the_others_go_at_once(
    pipe: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = Outlet(pipe[1])
    async with running(lines):
        lines.put({"x": "x" * 2 * ROOM_BYTES})
        monkeypatch.setattr(outlet, "WAIT_SECONDS", 0.01)
        assert not await lines.room()
        monkeypatch.setattr(outlet, "WAIT_SECONDS", 3600)
        assert not await lines.room()


async def test_a_reader_that_has_come_back_is_waited_for_again(
    pipe: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = Outlet(pipe[1])
    async with running(lines):
        size = lines_put(lines)
        monkeypatch.setattr(outlet, "WAIT_SECONDS", 0.01)
        assert not await lines.room()
        await read(pipe[0], size)
        await lines.drained()
        size = lines_put(lines)
        monkeypatch.setattr(outlet, "WAIT_SECONDS", BOUND_SECONDS)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read, pipe[0], size)
            assert await lines.room()


def lines_put(lines: Outlet) -> int:
    lines.put({"x": "x" * 2 * ROOM_BYTES})
    return 2 * ROOM_BYTES + len('{"x":""}\n')


async def test_a_reader_that_leaves_is_noticed_though_nothing_is_written(pipe: list[int]) -> None:
    lines = Outlet(pipe[1])
    async with running(lines):
        os.close(pipe.pop(0))
        await lines.gone.wait()
        lines.put({"n": 1})
        await lines.drained()
    assert lines.failure == "Broken pipe"
    assert lines.has_room


async def test_a_socket_whose_other_end_leaves_is_noticed_though_something_can_be_read_from_it() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.send(b"a line of somebody's")
        lines = Outlet(ours.fileno())
        async with running(lines):
            theirs.close()
            await lines.gone.wait()


async def test_a_terminal_that_nobody_reads_holds_up_nothing_but_its_lines() -> None:
    reads, terminal = os.openpty()
    mine = own_terminal(terminal)
    try:
        lines = Outlet(mine)
        async with running(lines):
            lines.put({"x": "x" * ROOM_BYTES})
            assert not await lines.room()
    finally:
        for descriptor in (reads, terminal, mine):
            os.close(descriptor)


async def test_when_too_much_waits_for_the_reader_no_more_is_heard_until_it_reads(
    pipe: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlet, "MOST_BYTES", ROOM_BYTES)
    lines = Outlet(pipe[1])
    await lines.not_full()
    async with running(lines):
        size = lines_put(lines)
        await anyio.wait_all_tasks_blocked()
        with anyio.move_on_after(0.01) as waiting:
            await lines.not_full()
        assert waiting.cancelled_caught
        await read(pipe[0], size)
        await lines.not_full()


MEMORY = """
from agentcell.outlet import Outlet
from pathlib import Path
def pages():
    return int(Path("/proc/self/statm").read_text().split()[1])
async def main():
    lines, before = Outlet(1), pages()
    for number in range(LINES):
        lines.put({"type": "refused", "n": number, "why": "x" * 400})
    print((pages() - before) * 4096 // LINES)
import anyio
LINES = 20_000
anyio.run(main)
"""
"""Says how many bytes a line that waits takes, of which it has 440 itself."""


def test_a_line_that_waits_takes_little_more_memory_than_it_has_bytes() -> None:
    said = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, timeout=BOUND_SECONDS, check=True)
    assert int(said.stdout) < 1000


async def test_many_lines_are_written_in_few_turns_of_the_loop(pipe: list[int]) -> None:
    lines = Outlet(pipe[1])
    for number in range(1000):
        lines.put({"n": number})
    async with running(lines):
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        with anyio.fail_after(0):
            await lines.drained()


async def test_a_reader_that_leaves_with_lines_unread_ends_the_wait_for_it(pipe: list[int]) -> None:
    lines = Outlet(pipe[1])
    async with running(lines):
        lines.put({"x": "x" * 2 * ROOM_BYTES})
        await read(pipe[0], 10)
        anyio.notify_closing(pipe[0])
        os.close(pipe.pop(0))
        assert await lines.room()
        await lines.drained()
    assert lines.gone.is_set()


async def test_a_disk_that_is_full_is_a_reader_that_is_gone() -> None:
    fd = os.open("/dev/full", os.O_WRONLY)
    try:
        lines = Outlet(fd)
        async with running(lines):
            lines.put({"n": 1})
            await lines.gone.wait()
    finally:
        os.close(fd)
    assert lines.failure == "No space left on device"
