"""Lines come in as they are written, and a missing line end is told."""

import os
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from agentcell import inlet
from agentcell.inlet import hear
from agentcell_protocol.framing import Overlong

pytestmark = pytest.mark.anyio

BOUND_SECONDS = 30


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reads, writes = os.pipe()
    yield reads, writes
    os.close(reads)


class Ear:
    """What was heard."""

    def __init__(self) -> None:
        self.lines: list[bytes | Overlong] = []
        self.warned = anyio.Event()
        self.warnings = 0
        self.has_line = anyio.Event()

    def take(self, line: bytes | Overlong) -> None:
        self.lines.append(line)
        self.has_line.set()

    def warn(self) -> None:
        self.warnings += 1
        self.warned.set()


async def test_lines_of_a_pipe_are_heard_the_last_one_without_its_end(pipe: tuple[int, int]) -> None:
    ear = Ear()
    os.write(pipe[1], b"one\r\n\n  \ntwo\nthr")
    with anyio.fail_after(BOUND_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hear, pipe[0], ear.take, ear.warn)
            await ear.has_line.wait()
            assert ear.lines == [b"one", b"two"]
            os.write(pipe[1], b"ee")
            os.close(pipe[1])
    assert (ear.lines, ear.warnings) == ([b"one", b"two", b"three"], 0)


async def test_lines_of_a_file_are_heard(tmp_path: Path) -> None:
    ear = Ear()
    (tmp_path / "in").write_bytes(b"one\ntwo")
    with (tmp_path / "in").open("rb") as file, anyio.fail_after(BOUND_SECONDS):
        await hear(file.fileno(), ear.take, ear.warn)
    assert ear.lines == [b"one", b"two"]


async def test_bytes_that_somebody_else_has_taken_are_not_the_end(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    ear, read, late = Ear(), os.read, [True]

    def read_late(fd: int, size: int) -> bytes:
        if fd == pipe[0] and late:
            late.clear()
            raise BlockingIOError
        return read(fd, size)

    monkeypatch.setattr(os, "read", read_late)
    os.write(pipe[1], b"one\n")
    os.close(pipe[1])
    with anyio.fail_after(BOUND_SECONDS):
        await hear(pipe[0], ear.take, ear.warn)
    assert ear.lines == [b"one"]


async def test_a_line_without_its_end_is_told_of_once_and_taken_when_it_comes(pipe: tuple[int, int]) -> None:
    ear = Ear()
    with anyio.fail_after(BOUND_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: hear(pipe[0], ear.take, ear.warn, seconds=0.02))
            os.write(pipe[1], b"o")
            await ear.warned.wait()
            os.write(pipe[1], b"n")
            await anyio.wait_all_tasks_blocked()
            os.write(pipe[1], b"e\ntw")
            ear.warned = anyio.Event()
            await ear.warned.wait()
            os.close(pipe[1])
    assert (ear.lines, ear.warnings) == ([b"one", b"tw"], 2)


async def test_whole_lines_are_waited_for_without_a_word(pipe: tuple[int, int]) -> None:
    ear = Ear()
    os.write(pipe[1], b"one\n")
    with anyio.move_on_after(0.2):
        await hear(pipe[0], ear.take, ear.warn, seconds=0.02)
    os.close(pipe[1])
    assert (ear.lines, ear.warnings) == ([b"one"], 0)


async def test_a_line_that_begins_after_a_blank_one_has_all_its_time(pipe: tuple[int, int]) -> None:
    ear = Ear()
    with anyio.fail_after(BOUND_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: hear(pipe[0], ear.take, ear.warn, seconds=0.02))
            os.write(pipe[1], b" ")
            await ear.warned.wait()
            ear.warned = anyio.Event()
            os.write(pipe[1], b"\non")
            await ear.warned.wait()
            os.close(pipe[1])
    assert (ear.lines, ear.warnings) == ([b"on"], 2)


async def test_between_many_lines_others_have_their_turn(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inlet, "BUSY_SECONDS", 0.0)
    ear = Ear()
    os.write(pipe[1], b"1\n" * 1000)
    os.close(pipe[1])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hear, pipe[0], ear.take, ear.warn)
        with anyio.fail_after(BOUND_SECONDS):
            await ear.has_line.wait()
        assert 0 < len(ear.lines) < 1000
        tasks.cancel_scope.cancel()


async def test_no_line_is_taken_while_there_is_no_room_for_answers(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inlet, "BUSY_SECONDS", 0.0)
    ear, room = Ear(), anyio.Event()

    async def has_room() -> None:
        if ear.lines:
            await room.wait()

    os.write(pipe[1], b"1\n2\n3\n")
    os.close(pipe[1])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: hear(pipe[0], ear.take, ear.warn, has_room=has_room))
        with anyio.fail_after(BOUND_SECONDS):
            await ear.has_line.wait()
            await anyio.wait_all_tasks_blocked()
            assert ear.lines == [b"1"]
            room.set()
    assert ear.lines == [b"1", b"2", b"3"]
