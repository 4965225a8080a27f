"""The host's CPU while a hundred cells are up and say nothing, against one core.

The cells are stand-ins that wait. With the limits of every session the meter looks at what they take twice a second,
for all of them at once; with a limit on memory it must look more often. What the fork server takes is counted, too.
"""

import time
from collections.abc import Mapping
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import psutil
from tests.host.stand_ins import forked_stand_ins

from agentcell import Host, Limits
from benchmarks.measure import Figure, Spread

CELLS = 100

WINDOWS = 10
WINDOW_SECONDS = 2.0

GOAL = 0.05

SILENCE_SECONDS = 3600.0
"""That are allowed: more than this takes."""

SETTLED_SECONDS = 3.0
"""After the last start: what has just started is looked at more often."""

LIMITED = {
    "the limits of every session": Limits(),
    "limits on memory, CPU and silence": Limits(max_memory_mb=500, max_cpu_seconds=600, idle_seconds=SILENCE_SECONDS),
}


def run() -> list[Figure]:
    """Each with a host of its own."""
    return [_figure(name, limits) for name, limits in LIMITED.items()]


def _figure(name: str, limits: Limits) -> Figure:
    with TemporaryDirectory() as home, forked_stand_ins():
        shares = anyio.run(_shares, home, limits)
    detail = f"{WINDOWS} windows of {WINDOW_SECONDS:g} s"
    what = f"host CPU for {CELLS} idle cells, {name}"
    return Figure("idle", what, "one core", Spread.of(shares), GOAL, detail=detail)


async def _shares(home: str, limits: Limits) -> list[float]:
    request = {
        "session_name": "idle",
        "agent_type": "coder",
        "project_dir": home,
        "starting_message": "wait",
        "context": {"stand_in": [{"hang": True}]},
    }
    missing, everybody = CELLS, anyio.Event()

    def count(event: Mapping[str, Any]) -> None:
        nonlocal missing
        missing -= event["type"] == "session_started"
        if missing == 0:
            everybody.set()

    async with Host(CELLS) as host, anyio.create_task_group() as tasks:
        env = {"HOME": home, "TMPDIR": home, "XDG_STATE_HOME": home}

        async def one() -> None:
            ended = await host.run(request, limits=limits, on_event=count, env=env)
            raise AssertionError(ended)

        for _ in range(CELLS):
            tasks.start_soon(one)
        await everybody.wait()
        await anyio.sleep(SETTLED_SECONDS)
        shares = [await _share() for _ in range(WINDOWS)]
        tasks.cancel_scope.cancel()
    return shares


async def _share() -> float:
    """Of one core, over one window."""
    processes = [psutil.Process(), *psutil.Process().children()]
    before, began = _used(processes), time.perf_counter()
    await anyio.sleep(WINDOW_SECONDS)
    return (_used(processes) - before) / (time.perf_counter() - began)


def _used(processes: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)
