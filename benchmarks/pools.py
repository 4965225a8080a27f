"""`python -m benchmarks.pools NAME`: a warm pool of processes that does as many trivial tasks as each line asks for.

The answer to a line is the seconds that took. Each pool, ours among them, has a process of its own, in which nothing is
loaded but what it needs: what a process holds makes its forks slower. Two tasks run at a time.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

AT_ONCE = 2

BOUND_SECONDS = 20.0
"""For a task, which takes milliseconds: a pool that is stuck ends."""

STUCK = 3
"""The exit code then."""


def serve(work: Callable[[int], object]) -> None:
    """Do a round for each line, until there is none."""
    for line in _lines():
        print(_seconds(partial(work, int(line))), flush=True)


def agentcell() -> None:
    """Cells with the stand-in worker, forked; each is confirmed gone before its result is given."""
    import anyio
    from tests.host.stand_ins import forked_stand_ins

    from agentcell import Host

    async def rounds(home: str) -> None:
        request = {"session_name": "a", "agent_type": "coder", "project_dir": home, "starting_message": "hi"}
        env = {"HOME": home, "TMPDIR": home, "XDG_STATE_HOME": home}
        async with Host(AT_ONCE) as host:
            for line in _lines():
                began = time.perf_counter()
                async for result in host.run_many([request] * int(line), env=env):
                    assert (result.error, result.swept_processes, result.start) == (None, 0, "fork"), result
                print(time.perf_counter() - began, flush=True)

    with TemporaryDirectory() as home, forked_stand_ins():
        anyio.run(rounds, home)


def pebble() -> None:
    """A pool that replaces a process after each task, and forks the program itself."""
    from multiprocessing import get_context

    from pebble import ProcessPool

    with ProcessPool(AT_ONCE, max_tasks=1, context=get_context("fork")) as pool:
        serve(partial(_few_at_a_time, lambda: pool.submit(abs, None, -1)))


def executor() -> None:
    """The standard library's, with a fork server of its own."""
    from multiprocessing import get_context

    with ProcessPoolExecutor(AT_ONCE, get_context("forkserver"), max_tasks_per_child=1) as pool:
        serve(partial(_few_at_a_time, lambda: pool.submit(abs, -1)))


def multiprocessing() -> None:
    """The standard library's older one, which forks the program itself."""
    from multiprocessing import Pool

    with Pool(AT_ONCE, maxtasksperchild=1) as pool:
        serve(lambda count: pool.map(abs, range(count), chunksize=1))


def loky() -> None:
    """Reuses its processes."""
    from loky import get_reusable_executor  # type: ignore[import-untyped]

    pool = get_reusable_executor(AT_ONCE)
    serve(lambda count: _all(pool.submit(abs, -number) for number in range(count)))


def to_process() -> None:
    """`anyio.to_process`, which reuses its processes."""
    import anyio
    import anyio.to_process

    async def rounds() -> None:
        limiter = anyio.CapacityLimiter(AT_ONCE)
        for line in _lines():
            began = time.perf_counter()
            async with anyio.create_task_group() as tasks:
                for _ in range(int(line)):
                    tasks.start_soon(partial(anyio.to_process.run_sync, abs, -1, limiter=limiter))
            print(time.perf_counter() - began, flush=True)

    anyio.run(rounds)


def _lines() -> Iterator[bytes]:
    """Asked one at a time, and not through sys.stdin: a fork made meanwhile would wait for its lock for ever."""
    while line := os.read(0, 64):
        yield line


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _all(futures: Any) -> None:
    for future in list(futures):
        try:
            future.result(BOUND_SECONDS)
        except TimeoutError:
            os._exit(STUCK)


def _few_at_a_time(submit: Callable[[], "Future[int]"], count: int) -> None:
    """No more than run: Python 3.11's executor waits for ever when it has replaced a process too few."""
    running: set[Future[int]] = set()
    for _ in range(count):
        if len(running) == AT_ONCE:
            done, running = wait(running, BOUND_SECONDS, return_when=FIRST_COMPLETED)
            if not done:
                os._exit(STUCK)  # it would wait for what is stuck
        running.add(submit())
    _all(running)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
