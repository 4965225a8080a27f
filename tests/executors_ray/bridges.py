"""Bridges that are played, where what a real one does is not the point."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio

from agentcell.executors.ray.links import Links
from agentcell.executors.ray.talk import RaySettings

BOUND_SECONDS = 60

READY = """
import json, os, sys
def say(**message):
    print(json.dumps(message), flush=True)
say(type="ready", marker="opening", max_sessions=3)
lines = map(json.loads, sys.stdin)
next(lines)
"""

Bridge = Callable[[str], None]
"""To be called for the bridges that start from then on to be this program."""


@asynccontextmanager
async def opened() -> AsyncIterator[Links]:
    links = Links(RaySettings())
    try:
        with anyio.fail_after(BOUND_SECONDS):
            yield links
    finally:
        with anyio.CancelScope(shield=True):
            await links.close()
