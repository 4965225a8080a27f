"""Runs many sessions in one host, and prints what the host has after the first of them and after all.

argv: `fork` for stand-in workers that are forked, `cold` for smaller ones that each start afresh; a directory to run
in, and how many sessions. As JSON: a list of two dicts.
"""

import gc
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import psutil
from tests.faults import forked_stand_in
from tests.faults.harness import WORKERS

import agentcell.host
from agentcell import Host, reap
from agentcell.forkserver import ForkServer
from agentcell.spawn import Spawn

FIRST = 50
"""Until then caches fill and pools grow."""

AT_ONCE = 4

ENDINGS: Sequence[Sequence[dict[str, Any]]] = (
    *[[{"text": "done " * 1000}]] * 7,
    [{"stderr": "last words\n"}, {"die": "SIGKILL"}],
    [{"stdout": "half a line"}, {"exit": 3}],
    [{"spawn": ["tail", "-f", "/dev/null"]}, {"text": "done"}],
)
"""Of the stand-ins, one after the other, again and again."""

SMALL = (sys.executable, "-S", str(WORKERS / "answers_then_exits.py"), "0")


@asynccontextmanager
async def forking(*_: object, **__: object) -> AsyncIterator[Spawn]:
    """In place of `starting`: forks the stand-in instead of the worker."""
    server = ForkServer((sys.executable, "-P", forked_stand_in.__file__))
    try:
        yield server.spawn
    finally:
        with anyio.CancelScope(shield=True):
            await reap.in_thread(server.close)


class Endurance:
    def __init__(self, host: Host, home: Path) -> None:
        self._host = host
        self._home = home
        self._ends: Counter[str] = Counter()

    async def run(self, numbers: range) -> dict[str, Any]:
        """Run those sessions; what this process has then."""
        env = {"HOME": str(self._home), "TMPDIR": str(self._home)}
        async for result in self._host.run_many(map(self._request, numbers), env=env):
            end = "complete" if result.error is None else result.error.category.value
            self._ends[f"{result.start} {end} {result.swept_processes}"] += 1
        gc.collect()
        process = psutil.Process()
        children = process.children(recursive=True)
        return {
            "ends": dict(self._ends),
            "processes": sorted(f"{child.status()} {child.cmdline()[-1]}" for child in children),
            "descriptors": process.num_fds(),
            "memory_mb": process.memory_info().rss / 1024 / 1024,
        }

    def _request(self, number: int) -> dict[str, Any]:
        return {
            "session_name": "a",
            "agent_type": "coder",
            "project_dir": str(self._home),
            "starting_message": "hi",
            "context": {"stand_in": ENDINGS[number % len(ENDINGS)]},
        }


async def main(home: Path, sessions: int) -> None:
    async with Host(AT_ONCE, max_starts=AT_ONCE, worker_command=SMALL) as host:
        endurance = Endurance(host, home)
        print(json.dumps([await endurance.run(part) for part in (range(FIRST), range(FIRST, sessions))]))


if __name__ == "__main__":
    if sys.argv[1] == "fork":
        vars(agentcell.resources)["starting"] = forking
    anyio.run(main, Path(sys.argv[2]), int(sys.argv[3]))
