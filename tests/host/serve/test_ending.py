"""The last lines: for how long a reader is waited for that goes on reading, and one that does not."""

import anyio
import pytest

from agentcell.outlet import Outlet
from agentcell.serve import ending
from agentcell.serve.ending import Ending
from agentcell.serve.runs import Runs

pytestmark = pytest.mark.anyio

BOUND_SECONDS = 30


class Reading(Outlet):
    """One whose reader has taken something whenever that is asked, so many times; it never takes all."""

    def __init__(self, times: int) -> None:
        self._times = times
        super().__init__(1)
        self.put({"n": 1})

    @property
    def moved_at(self) -> float:
        self._times -= 1
        return anyio.current_time() if self._times >= 0 else 0.0

    @moved_at.setter
    def moved_at(self, _: float) -> None:
        pass

    @property
    def was_asked_often(self) -> bool:
        return self._times < 0


async def test_a_reader_that_goes_on_is_waited_for_and_one_that_stops_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "LAST_LINES_SECONDS", 0.02)
    lines, end = Reading(5), Ending(Runs())
    end.cancel("SIGTERM")
    with anyio.fail_after(BOUND_SECONDS):
        began = anyio.current_time()
        await end.last_lines(lines)
    assert lines.was_asked_often
    assert anyio.current_time() - began >= 5 * 0.02


async def test_a_second_signal_ends_the_wait_for_a_reader_that_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "LAST_LINES_SECONDS", 3600)
    lines, end = Reading(5), Ending(Runs())
    end.cancel("SIGTERM")
    with anyio.fail_after(BOUND_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(end.last_lines, lines)
            await anyio.wait_all_tasks_blocked()
            end.cancel("SIGINT")
    assert lines.unread_results == []
