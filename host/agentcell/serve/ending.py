"""How it ends: who has asked for it, how much time there is, and the exit code."""

import anyio

from agentcell.outlet import Outlet
from agentcell.serve.runs import Runs
from agentcell.stop import HOST_LOST, PARENT_DIED, STDIN_ENDED
from agentcell_protocol.exitcodes import CANCEL_SIGNALS, ERROR, OK, SIGNALLED

LAST_LINES_SECONDS = 10.0
"""Without the reader taking any of the last lines, after a signal or when the program that started this is dead."""


class Ending:
    """Ends the runs when there is a reason to. `exit_code` is the one that goes with the first.

    Stdin is heard within `hearing`: after a signal nothing more of it is minded.
    """

    def __init__(self, runs: Runs) -> None:
        self.exit_code = OK
        self.hearing = anyio.CancelScope()
        self._runs = runs
        self._is_signalled = False
        self._hurried = anyio.Event()
        self._forced = anyio.Event()

    def cancel(self, reason: str) -> None:
        """A signal: the first cancels the runs, a second one kills what is left of them."""
        if self._is_signalled:
            self._runs.kill_all()
            self._forced.set()
            return
        self._is_signalled = True
        self.exit_code = self.exit_code or SIGNALLED + CANCEL_SIGNALS[reason]
        self._runs.cancel_all(reason)
        self.hear_no_more()
        self._hurried.set()

    def hear_no_more(self) -> None:
        """Let stdin be: what is said now comes too late."""
        self.hearing.cancel()

    def stdin_ended(self) -> None:
        """Nobody can say anything any more; who has sent a shutdown had nothing more to say."""
        if not self._runs.is_closed:
            self._runs.cancel_all(STDIN_ENDED)

    def parent_died(self) -> None:
        """Nobody is interested any more."""
        self._runs.cancel_all(PARENT_DIED)
        self.hear_no_more()
        self._hurried.set()

    def reader_left(self) -> None:
        """Nobody hears any more."""
        self.exit_code = self.exit_code or ERROR
        self._runs.cancel_all(HOST_LOST)

    async def last_lines(self, outlet: Outlet) -> None:
        """Wait for the reader to take them: if this was asked to end, only as long as it goes on taking some."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._lose_patience, outlet, tasks.cancel_scope)
            await outlet.drained()
            tasks.cancel_scope.cancel()

    async def _lose_patience(self, outlet: Outlet, scope: anyio.CancelScope) -> None:
        await self._hurried.wait()
        began = anyio.current_time()
        while not self._forced.is_set():
            left = max(began, outlet.moved_at) + LAST_LINES_SECONDS - anyio.current_time()
            if left <= 0:
                break
            with anyio.move_on_after(left):
                await self._forced.wait()
        scope.cancel()
