"""A thousand machines that are not there: an executor whose sessions take time and nothing else, and fail as real ones.

What a batch of many rows on many nodes costs its driver is all that is real with it.
"""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import anyio

from agentcell.attempt import cancelled, not_started
from agentcell.orders import Order
from agentcell.run import Attempted
from agentcell_protocol.errors import Category, SessionError, session_error
from agentcell_protocol.result import SessionResult, Usage, failed

SLOTS = 4
"""Sessions at a time on a node."""

SESSION_SECONDS = 1.0
"""A session's time on the average: short, so that the driver and not the sessions set the pace."""

EVENTS = 5
"""Of each session."""

FAILURES = {Category.OVERLOADED: 0.01, Category.CRASHED: 0.005, Category.MAX_TURNS: 0.005}
"""The share of sessions that end so."""

FILL_SECONDS = 60.0
"""Until then the first sessions wait for each other, so that all nodes are in use from the beginning."""

NODE_LOSS = 0.0005
"""The share of sessions whose node dies under them, with all others that it has."""


@dataclass(eq=False, slots=True)
class Node:
    """One machine, with the sessions that it has at the moment."""

    name: str
    sessions: set[anyio.CancelScope] = field(default_factory=set)

    def die(self) -> None:
        """All that it has is lost; it comes up again at once."""
        for session in self.sessions:
            session.cancel()
        self.sessions = set()


class SimulatedNodes:
    """So many nodes; `seed` makes the same session fail in the same way. `lost` counts the nodes that died."""

    def __init__(self, nodes: int, seed: int = 1) -> None:
        self.max_sessions = nodes * SLOTS
        self.attempts = self.lost = 0
        self._filled = anyio.Event()
        self._chance = random.Random(seed)
        self._nodes = [Node(f"node-{number}") for number in range(nodes)]
        self._turn = self._turns()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    async def sweep(self, _markers: Iterable[str]) -> int:
        """Nothing was left."""
        return 0

    async def attempt(self, order: Order) -> Attempted:
        """Let time pass, and say how it ended."""
        if order.stop.reason is not None:
            return Attempted(not_started(order.request, cancelled(order.stop.reason)))
        self.attempts += 1
        if self.attempts == self.max_sessions:
            self._filled.set()
        node, seconds = next(self._turn), self._chance.expovariate(1 / SESSION_SECONDS)
        dies, falls = self._chance.random() < NODE_LOSS, self._chance.random()
        with anyio.CancelScope() as session:
            node.sessions.add(session)
            self._tell(order)
            with anyio.move_on_after(FILL_SECONDS):
                await self._filled.wait()
            await anyio.sleep(seconds)
            if dies:
                self.lost += 1
                node.die()
        node.sessions.discard(session)
        if session.cancel_called:
            error = session_error(Category.HOST_LOST, f"{node.name} is gone", node=node.name)
            return Attempted(_failed(order, error))
        return Attempted(_ended(order, falls))

    def _turns(self) -> Iterator[Node]:
        while True:
            yield from self._nodes

    def _tell(self, order: Order) -> None:
        if order.on_event is not None:
            for number in range(EVENTS):
                order.on_event({"type": "text", "text": f"{number} of {order.request.session_name}. " * 20})


def _ended(order: Order, falls: float) -> SessionResult:
    """As it says, or with a failure where `falls` (0 to 1) is in its share."""
    for category, share in FAILURES.items():
        if falls < share:
            return _failed(order, session_error(category, f"the session met {category}"))
        falls -= share
    request = order.request
    return SessionResult(
        status="complete",
        response="It is done. " * 50,
        session_name=request.session_name,
        id=request.identity,
        session_id=request.session_id,
        usage=Usage(input_tokens=100, output_tokens=10),
        cost_usd=0.01,
    )


def _failed(order: Order, error: SessionError) -> SessionResult:
    request = order.request
    return failed(error, session_name=request.session_name, id=request.identity, session_id=request.session_id)
