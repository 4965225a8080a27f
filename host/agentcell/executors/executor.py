"""What every executor does, wherever its cells live."""

from collections.abc import Iterable
from types import TracebackType
from typing import Protocol, Self

from agentcell.orders import Order
from agentcell.run import Attempted


class Executor(Protocol):
    """Makes attempts, each once, for as long as its `async with` lasts; leaving it ends those that are under way.

    It decides nothing about rows: which attempt is made, and whether there is another, is for its caller to say.
    """

    @property
    def max_sessions(self) -> int:
        """How many attempts at a time it has room for; more than that wait inside of it."""

    async def attempt(self, order: Order) -> Attempted:
        """Make the attempt; how it ended, when nothing of it is left running.

        The order's `stop` cancels it, and its result still comes. Cancelling the task ends the cell before it
        propagates. An executor that lost sight of the cell says so by a `host_lost` result. Raises RequestError for a
        request too long for its line.
        """

    async def sweep(self, markers: Iterable[str]) -> int:
        """End what is left of the cells with these markers, of whichever host; how many processes there were."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
