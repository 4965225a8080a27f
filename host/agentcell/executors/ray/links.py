"""The bridge that attempts are made through: the first one, and another when that was lost."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import anyio

from agentcell.errors import ExecutorError
from agentcell.executors.ray.absence import SEE_LOG
from agentcell.executors.ray.link import CLOSE_SECONDS, BridgeEndedError, Link, OnLeftOut
from agentcell.executors.ray.talk import RaySettings

TRIES = 3
"""Bridges that are asked to settle something, one after the other: where three have ended, a fourth would, too."""

ABORT_SECONDS = 5.0
"""For a bridge that is not there yet to end by itself: it has no cells."""

CLOSED = ("the executor is closed", "use it inside its `async with`")

OnWarning = Callable[[str], object]
"""Gets a sentence on what the user may want to change. It is not to raise."""


class Links:
    """One bridge at a time, until `close`."""

    def __init__(self, settings: RaySettings, on_warning: OnWarning | None = None) -> None:
        self.max_sessions = 0
        self._settings = settings
        self._on_warning = on_warning
        self._told: set[str] = set()
        self._left: set[str] = set()
        self._link: Link | None = None
        self._opening = anyio.Lock()
        self._is_closed = False
        self._failures = 0
        self._last = CLOSED

    async def get(self) -> Link:
        """The bridge; a new one if there is none any more. Raises ExecutorError.

        Those that wait for the same one to come up are told together when it does not.
        """
        failures = self._failures
        async with self._opening:
            if self._link is not None and not self._link.is_over:
                return self._link
            if self._is_closed or self._failures != failures:
                raise ExecutorError(*self._last)
            await self._drop()
            self._link = await self._open()
            return self._link

    async def settle(self, markers: Sequence[str]) -> int:
        """End what is left of these on every node, and on those that come later; how many processes were.

        Raises ExecutorError.
        """
        self._left |= set(markers)
        for _ in range(TRIES):
            if (swept := await (await self.get()).settle(markers)) is not None:
                return swept
        raise ExecutorError("one bridge to Ray after the other has ended", SEE_LOG)

    async def close(self) -> None:
        """End the bridge, and have no other. Bounded; to be shielded."""
        self._is_closed, self._last = True, CLOSED
        async with self._opening:
            await self._drop()

    async def _open(self) -> Link:
        try:
            try:
                return await self._opened()
            except BridgeEndedError:  # as one that is lost later: there is another
                return await self._opened()
        except ExecutorError as failure:
            self._failures += 1
            self._last = failure.reason, failure.remedy
            raise

    async def _opened(self) -> Link:
        link = _started(replace(self._settings, left=tuple(sorted(self._left))), self._tell)
        is_open = False
        try:
            self.max_sessions = await link.open()
            is_open = True
        finally:
            if not is_open:
                await _close(link, ABORT_SECONDS)
        return link

    def _tell(self, fault: ExecutorError) -> None:
        if (told := str(fault)) not in self._told and self._on_warning is not None:
            self._on_warning(told)
        self._told.add(told)

    async def _drop(self) -> None:
        if self._link is not None:
            link, self._link = self._link, None
            await _close(link)


def _started(settings: RaySettings, on_left_out: OnLeftOut) -> Link:
    try:
        return Link(settings, on_left_out)
    except OSError as problem:
        reason = f"the bridge to Ray could not be started: {problem.strerror or problem}"
        raise ExecutorError(reason, "check the limits on processes, memory and open files") from problem


async def _close(link: Link, seconds: float = CLOSE_SECONDS) -> None:
    with anyio.CancelScope(shield=True):
        await link.close(seconds)
