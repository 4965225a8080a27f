"""One real session through a warm host, against the SDK in the same process.

Both run the real CLI with the same tools, model, permission mode and prompt, each in a config directory of its own that
is made and removed within the time that is measured, in one process and one event loop, in turns. Ours besides that
has a process of its own, forked from one with the SDK loaded, whose end it waits for, and keeps the conversation.
What differs for the CLI: ours is given the session's id, and the prompt is marked as verbatim.

It needs a machine that has nothing else to do: the cells are in a session of their own, which Linux schedules as a
group (sched(7), autogroup), so that where others compete for the cores ours gets more of them than the peer.
"""

import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict

from anyio.from_thread import BlockingPortal, start_blocking_portal
from tests.meta.source import ROOT

from agentcell import Host
from benchmarks.measure import Compared, Figure, Measured, Spread, compare, wall
from benchmarks.plain_sdk import session
from benchmarks.scene import request, scene

PAIRS = 15
GOAL = 1.10


def run() -> list[Figure]:
    """The process that is measured has a built environment, and not the model in it."""
    with scene() as place:
        ended = subprocess.run(
            [sys.executable, "-m", __name__, str(place.project)],
            cwd=ROOT,
            env=place.environment(),
            stdout=subprocess.PIPE,
            check=True,
        )
    seen = {name: Spread(**spread) for name, spread in json.loads(ended.stdout).items()}
    return [
        Figure(
            "session",
            "one real session through a warm Host.run, wall",
            "the SDK in the same process",
            seen["ratio"],
            GOAL,
            noise=seen["noise"],
            detail=f"{seen['ours']} s, the SDK {seen['theirs']} s",
        )
    ]


def measured(project: str) -> Compared:
    """In this process, whose environment is that of the sessions."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Host(1)) as host:

        async def ours() -> None:
            result = await host.run(request(project))
            assert result.status == "complete", result.error

        async def theirs() -> None:
            await session(project)

        return compare(_timed(portal, ours), _timed(portal, theirs), pairs=PAIRS)


def _timed(portal: BlockingPortal, work: Callable[[], Awaitable[None]]) -> Measured:
    return wall(lambda: portal.call(work))


if __name__ == "__main__":
    print(json.dumps(asdict(measured(sys.argv[1]))))
