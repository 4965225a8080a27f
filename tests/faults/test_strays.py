"""What a killed cell leaves is ended, however much it is and however it multiplies; a stopped server delays little."""

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import psutil
import pytest
from tests.faults.harness import BOUND_SECONDS, ForkedWorkers

from agentcell import forked
from agentcell.processes import read_row, survivors
from agentcell.spawn import UNSEEN, Child
from agentcell_protocol.cell import MARKER

pytestmark = pytest.mark.anyio

CROWD = """
import os, signal
for number in range(150):
    if os.fork() == 0:
        if number % 3 == 0:
            os.setsid()
        signal.pause()
print('up', flush=True)
signal.pause()
"""

CHAIN = """
import os, signal, time
if os.fork() == 0:
    for link in range(3000):
        if os.fork():
            os._exit(0)
        os.setsid()
        if link == 20:
            print('up', flush=True)
        time.sleep(0.001)
signal.pause()
"""
"""A process that is gone before anybody has looked at it twice, and has forked the next."""


@pytest.fixture
def workers() -> Iterator[ForkedWorkers]:
    workers = ForkedWorkers()
    yield workers
    workers.server.close()


@asynccontextmanager
async def up(workers: ForkedWorkers, program: str) -> AsyncIterator[Child]:
    child = workers.program(program)({"PATH": "/usr/bin:/bin", MARKER: "marker"}, "/")
    with anyio.fail_after(BOUND_SECONDS):
        try:
            assert await child.stdout.read() == b"up\n"
            yield child
        finally:
            child.close()


def below(workers: ForkedWorkers) -> list[psutil.Process]:
    return psutil.Process(workers.server.pid).children(recursive=True)


async def test_a_crowd_is_ended_at_once(workers: ForkedWorkers) -> None:
    async with up(workers, CROWD) as child:
        child.send(signal.SIGKILL)
        assert (await child.exited(), await child.swept()) == (-signal.SIGKILL, 150)
        assert below(workers) == []


async def test_a_chain_of_processes_that_outruns_each_look_is_ended(workers: ForkedWorkers) -> None:
    async with up(workers, CHAIN) as child:
        child.send(signal.SIGKILL)
        assert await child.exited() == -signal.SIGKILL
        assert await child.swept() > 0
        assert below(workers) == []


async def test_a_death_is_seen_past_a_stopped_server(workers: ForkedWorkers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked, "REPORT_SECONDS", 0.1)
    async with up(workers, "import signal; print('up', flush=True); signal.pause()") as child:
        assert workers.server.pid is not None
        os.kill(workers.server.pid, signal.SIGSTOP)
        child.send(signal.SIGKILL)
        assert (await child.exited(), await child.swept()) == (UNSEEN, 0)


async def test_a_stopped_server_ends_when_it_is_closed(workers: ForkedWorkers) -> None:
    async with up(workers, "print('up', flush=True)") as child:
        await child.swept()
        server = psutil.Process(workers.server.pid)
        server.suspend()
        with anyio.fail_after(4):  # it is killed after twice that
            await anyio.to_thread.run_sync(workers.server.close)
        assert not server.is_running()


def test_what_was_seen_in_a_cell_is_known_by_more_than_its_pid() -> None:
    with psutil.Popen(["cat"], stdin=subprocess.PIPE) as process:
        row = read_row(process.pid)
        assert row is not None
        assert [found.pid for found in survivors([row, replace(row, start=row.start - 1)])] == [process.pid]
        process.kill()
        process.wait(BOUND_SECONDS)
        assert survivors([row]) == []
