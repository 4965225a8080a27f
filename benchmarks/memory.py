"""Private memory of a live cell's Python process, forked from the warm server, against that of a worker started cold.

Both are the real worker with the real CLI, in a session that has begun and whose model takes its time. Private (USS) is
what no other process shares: what would be free again if it ended.
"""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import psutil
from anyio.from_thread import BlockingPortal, start_blocking_portal

from agentcell import Host
from agentcell.offline import offline_environment, offline_model
from benchmarks.measure import Figure, Measured, compare
from benchmarks.scene import request

PAIRS = 5
GOAL = 0.25
MEBIBYTE = 2**20

SLOW = {"turns": [{"text": "late", "stall": "start"}]}
"""The model says nothing for as long as the session is looked at."""

BOUND_SECONDS = 120.0
"""For a session to begin, which takes two."""

SETTLED_SECONDS = 0.5
"""From a session's beginning to the look at it."""


def run() -> list[Figure]:
    """Two hosts that differ in how their cells start, in turns."""
    with (
        TemporaryDirectory() as folder,
        offline_model(SLOW) as endpoint,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Host(1)) as warm,
        portal.wrap_async_context_manager(Host(1, start="cold")) as cold,
    ):
        env = offline_environment(endpoint, Path(folder))
        seen = compare(_measured(portal, warm, env), _measured(portal, cold, env), pairs=PAIRS)
    detail = f"{seen.ours} MB, cold {seen.theirs} MB"
    what = "private memory of a live cell, Python side"
    return [Figure("memory", what, "a cold worker", seen.ratio, GOAL, noise=seen.noise, detail=detail)]


def _measured(portal: BlockingPortal, host: Host, env: Mapping[str, str]) -> Measured:
    return lambda: portal.call(_private_mb, host, env)


async def _private_mb(host: Host, env: Mapping[str, str]) -> float:
    """Of one session, which is cancelled afterwards."""
    heard: dict[str, Any] = {}
    begun = anyio.Event()

    def listen(event: Mapping[str, Any]) -> None:
        heard.update({event["type"]: event})
        if event["type"] == "session_started":
            begun.set()

    async with anyio.create_task_group() as tasks:
        with anyio.fail_after(BOUND_SECONDS):
            tasks.start_soon(_session, host, env, listen)
            await begun.wait()
        await anyio.sleep(SETTLED_SECONDS)
        private = psutil.Process(heard["hello"]["pid"]).memory_full_info().uss
        tasks.cancel_scope.cancel()
    return float(private) / MEBIBYTE


async def _session(host: Host, env: Mapping[str, str], listen: Any) -> None:
    ended = await host.run(request(env["HOME"]), on_event=listen, env=env)
    raise AssertionError(ended)
