"""What a cell left is waited for once, and hurried when that is wanted."""

from signal import Signals

import anyio
import pytest

from agentcell.reap import sweep
from agentcell.spawn import Child
from agentcell_protocol.cell import new_marker

pytestmark = pytest.mark.anyio

BOUND_SECONDS = 60

LEFT = 3


class Unswept(Child):
    """A dead child whose starter gives up on what it left, after having been hurried if `is_slow`."""

    start = "fork"
    pid = None
    status = 0
    is_swept = False

    def __init__(self, *, is_slow: bool) -> None:
        self.waits = 0
        self._is_slow = is_slow
        self._hurried = anyio.Event()

    async def exited(self) -> int:
        return self.status

    def send(self, number: Signals) -> None:
        raise AssertionError(f"{number.name} to a dead child")

    async def swept(self) -> int:
        self.waits += 1
        if self._is_slow:
            await self._hurried.wait()
        return LEFT

    def hurry(self) -> None:
        self._hurried.set()


@pytest.mark.parametrize("is_forced", [False, True])
async def test_a_starter_that_gives_no_word_is_waited_for_once(is_forced: bool) -> None:
    child, forced, cleared = Unswept(is_slow=is_forced), anyio.Event(), list[bool]()
    if is_forced:
        forced.set()
    with anyio.fail_after(BOUND_SECONDS):
        swept = await sweep(child, new_marker(), [], forced, afterwards=lambda: cleared.append(True))
    assert (swept, child.waits, cleared) == (LEFT, 1, [True])
