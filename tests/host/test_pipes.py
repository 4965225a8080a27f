"""Pipes are read to what a dead writer had left in them, and no further."""

import os
from collections.abc import Iterator
from io import FileIO

import anyio
import pytest

from agentcell.pipes import PipeReader, PipeWriter

pytestmark = pytest.mark.anyio


@pytest.fixture
def pipe() -> Iterator[tuple[FileIO, FileIO]]:
    reader, writer = os.pipe()
    with FileIO(reader, "rb") as source, FileIO(writer, "wb") as sink:
        yield source, sink


async def test_what_was_written_is_read_before_the_end(pipe: tuple[FileIO, FileIO]) -> None:
    reader = PipeReader(pipe[0])
    pipe[1].write(b"one")
    assert await reader.read() == b"one"
    pipe[1].close()
    assert await reader.read() == b""


async def test_a_finished_pipe_ends_though_somebody_holds_it(pipe: tuple[FileIO, FileIO]) -> None:
    reader = PipeReader(pipe[0])
    pipe[1].write(b"last")
    reader.finish()
    assert [await reader.read(), await reader.read()] == [b"last", b""]


async def test_a_reader_that_waits_is_woken_by_the_finish(pipe: tuple[FileIO, FileIO]) -> None:
    reader = PipeReader(pipe[0])
    chunks: list[bytes] = []

    async def read() -> None:
        chunks.append(await reader.read())

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            reader.finish()
    assert chunks == [b""]


async def test_a_writer_without_end_is_not_read_without_end(pipe: tuple[FileIO, FileIO]) -> None:
    reader = PipeReader(pipe[0])
    reader.finish()
    size = 0
    while True:
        pipe[1].write(b"x" * 1000)
        if not (chunk := await reader.read()):
            break
        size += len(chunk)
    assert 0 < size <= 2 * 1024 * 1024


async def test_a_large_request_is_written_as_it_is_read(pipe: tuple[FileIO, FileIO]) -> None:
    reader, writer = PipeReader(pipe[0]), PipeWriter(pipe[1])
    size = 0
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(writer.write, b"x" * 3_000_000)
            while size < 3_000_000:
                size += len(await reader.read())
    assert size == 3_000_000


async def test_a_reader_that_is_gone_takes_nothing_more(pipe: tuple[FileIO, FileIO]) -> None:
    writer = PipeWriter(pipe[1])
    pipe[0].close()
    assert bytes(writer.write_now(b"x")) == b""
    await writer.write(b"x" * 3_000_000)


async def test_what_there_is_no_room_for_is_left(pipe: tuple[FileIO, FileIO]) -> None:
    reader, writer = PipeReader(pipe[0]), PipeWriter(pipe[1])
    data = bytes(range(256)) * 4096
    left = writer.write_now(data)
    assert 0 < len(left) < len(data)
    reader.finish()
    assert b"".join([await reader.read() for _ in range(2)]) + left == data
