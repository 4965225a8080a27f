"""What a batch does where its rows run, before they do."""

from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from tests.host.batch.run_directory import begun

from agentcell.batch import journal
from agentcell.commands.batching import open_executor
from agentcell.errors import ExecutorError
from agentcell.orders import Order
from agentcell.run import Attempted

pytestmark = pytest.mark.anyio


class Place:
    """Where nothing runs; `swept` are the markers it was told to sweep."""

    max_sessions = 1

    def __init__(self, *, is_there: bool = True) -> None:
        self.swept: list[str] = []
        self._is_there = is_there

    async def __aenter__(self) -> Self:
        if not self._is_there:
            raise ExecutorError("there is no cluster", "start one")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    async def attempt(self, order: Order) -> Attempted:
        raise AssertionError(order.marker)

    async def sweep(self, markers: Iterable[str]) -> int:
        self.swept.extend(markers)
        return 0


async def test_what_a_dead_host_left_is_swept_by_the_first_that_reaches_its_place(tmp_path: Path) -> None:
    with begun(tmp_path) as run:
        run.record(journal.left(0.0, markers=["one", "two"]))
    with begun(tmp_path) as run:
        async with AsyncExitStack() as lifetime:
            with pytest.raises(ExecutorError):
                await open_executor(Place(is_there=False), lifetime, run)
    for expected in (["one", "two"], []):
        place = Place()
        with begun(tmp_path) as run:
            async with AsyncExitStack() as lifetime:
                await open_executor(place, lifetime, run)
        assert place.swept == expected
