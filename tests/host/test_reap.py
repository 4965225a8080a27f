"""What a cell left is waited for once, and looked for: once if the kernel says that nothing is left, or twice."""

from typing import Any

import anyio
import pytest

from agentcell.reap import sweep
from agentcell_protocol import cell

pytestmark = pytest.mark.anyio


class Gone:
    """A worker that has ended and was swept."""

    is_swept = True

    def __init__(self, *, is_clear: bool) -> None:
        self.is_clear = is_clear

    async def swept(self) -> int:
        return 3


@pytest.mark.parametrize(("is_clear", "times"), [(True, 1), (False, 2)])
async def test_the_marker_is_looked_for(is_clear: bool, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []

    def find(marker: str) -> list[Any]:
        looked.append(marker)
        return []

    monkeypatch.setattr(cell, "marked", find)
    gone: Any = Gone(is_clear=is_clear)
    assert await sweep(gone, "its", [], anyio.Event(), afterwards=lambda: looked.append("done")) == 3
    assert looked == ["its"] * times + ["done"]


class Unswept(Gone):
    """A worker that has ended, and whose starter gives up on what it left, in a case only after it was hurried."""

    is_swept = False

    def __init__(self, *, is_slow: bool) -> None:
        super().__init__(is_clear=False)
        self.waits = 0
        self._hurried = anyio.Event()
        if not is_slow:
            self.hurry()

    def hurry(self) -> None:
        self._hurried.set()

    async def swept(self) -> int:
        self.waits += 1
        await self._hurried.wait()
        return await super().swept()


@pytest.mark.parametrize("is_forced", [False, True])
async def test_a_starter_that_gives_no_word_is_waited_for_once(is_forced: bool) -> None:
    unswept: Any = Unswept(is_slow=is_forced)
    forced = anyio.Event()
    if is_forced:
        forced.set()
    with anyio.fail_after(10):
        swept = await sweep(unswept, cell.new_marker(), [], forced, afterwards=lambda: None)
    assert (swept, unswept.waits) == (3, 1)
