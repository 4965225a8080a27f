"""Lines are written whole, also to a reader that is slow or gone."""

import os
from collections.abc import Iterator

import anyio
import pytest

from agentcell.lines import LineWriter

pytestmark = pytest.mark.anyio


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for fd in (reader, writer):
        try:
            os.close(fd)
        except OSError:
            continue


async def test_a_small_line_is_written_at_once(pipe: tuple[int, int]) -> None:
    await LineWriter(pipe[1]).write({"a": 1})
    assert os.read(pipe[0], 100) == b'{"a":1}\n'


async def test_a_reader_that_does_not_read_does_not_stop_the_loop(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    lines = LineWriter(writer)
    ticked = anyio.Event()
    size = 0

    async def read() -> None:
        nonlocal size
        await ticked.wait()
        while size < 1_000_009:
            await anyio.wait_readable(reader)
            size += len(os.read(reader, 1 << 20))

    async def tick() -> None:
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        ticked.set()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            tasks.start_soon(lines.write, {"a": "x" * 1_000_000})
            tasks.start_soon(tick)
    assert size == 1_000_009


async def test_a_reader_that_is_gone_is_forgotten(pipe: tuple[int, int]) -> None:
    lines = LineWriter(pipe[1])
    os.close(pipe[0])
    for _ in range(3):
        await lines.write({"a": 1})
    lines.write_now({"a": "x" * 100_000})
