"""Stand-in workers that are forked, so that each starts in milliseconds, from one server for many tests."""

import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

import pytest
from tests.faults import forked_stand_in
from tests.faults.harness import bring_up

import agentcell.resources
from agentcell.forkserver import ForkServer, starting
from agentcell.spawn import WORKER, Spawn
from agentcell_protocol.cell import Start


@contextmanager
def forked_stand_ins() -> Iterator[None]:
    """Meanwhile hosts fork stand-ins where they would start our worker; what they do is in `context.stand_in`."""
    server = ForkServer((sys.executable, "-P", forked_stand_in.__file__))
    bring_up(server)

    @asynccontextmanager
    async def forking(start: Start = "fork", *, command: Sequence[str] = WORKER) -> AsyncIterator[Spawn]:
        if command is WORKER:
            yield server.spawn
        else:
            async with starting(start, command=command) as spawn:
                yield spawn

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(agentcell.resources, "starting", forking)
        yield
    server.close()
