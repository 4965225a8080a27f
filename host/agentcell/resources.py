"""What the sessions of one host share."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from agentcell.forkserver import starting
from agentcell.gate import Gate
from agentcell.meter import Meter
from agentcell.spawn import WORKER, Spawn
from agentcell_protocol.cell import Start


@dataclass(frozen=True, slots=True)
class Resources:
    """How cells are started, who looks at what they take, and how many start at a time. For one event loop."""

    spawn: Spawn
    meter: Meter = field(default_factory=Meter)
    gate: Gate = field(default_factory=Gate)


@asynccontextmanager
async def sharing(
    start: Start = "fork", *, command: Sequence[str] = WORKER, max_starts: int | None = None
) -> AsyncIterator[Resources]:
    """Resources for as long as the context lasts; see `agentcell.forkserver.starting`."""
    async with starting(start, command=command) as spawn:
        yield Resources(spawn, gate=Gate(max_starts))
