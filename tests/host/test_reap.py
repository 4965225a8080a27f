"""What a cell left is waited for once, and looked for: once if the kernel says that nothing is left, or twice."""

import errno
import signal
from typing import Any

import anyio
import psutil
import pytest

from agentcell.reap import end_worker, sweep
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
    assert await sweep(gone, "its", list, anyio.Event(), afterwards=lambda: looked.append("done")) == 3
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
        swept = await sweep(unswept, cell.new_marker(), list, forced, afterwards=lambda: None)
    assert (swept, unswept.waits) == (3, 1)


async def test_a_look_without_a_descriptor_is_taken_again_and_keeps_nothing_from_being_tidied_up() -> None:
    looks = iter([False, True])
    tidied = []

    def below() -> list[psutil.Process]:
        if not next(looks):
            raise OSError(errno.EMFILE, "Too many open files")
        return []

    gone: Any = Gone(is_clear=True)
    swept = await sweep(gone, cell.new_marker(), below, anyio.Event(), afterwards=lambda: tidied.append(1))
    assert (swept, tidied, list(looks)) == (3, [1], [])


class Stubborn(Gone):
    """A worker that lives until it is killed."""

    pid = 1

    def __init__(self, exited: anyio.Event) -> None:
        super().__init__(is_clear=False)
        self._exited = exited
        self.sent: list[signal.Signals] = []

    def send(self, number: signal.Signals) -> None:
        self.sent.append(number)
        if number == signal.SIGKILL:
            self._exited.set()


async def test_a_worker_is_killed_though_there_is_no_descriptor_to_look_with(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(pid: int) -> list[psutil.Process]:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(cell, "descendants", look)
    exited, forced = anyio.Event(), anyio.Event()
    forced.set()
    stubborn: Any = Stubborn(exited)
    assert await end_worker(stubborn, exited, forced) == []
    assert stubborn.sent == [signal.SIGTERM, signal.SIGKILL]
