"""One child: what it says is heard, what it takes is timed, and its end is seen or made."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from math import inf
from signal import SIGKILL
from typing import Any

import anyio
import psutil

from agentcell.causes import Cause, Exceeded, Limited, Lingered, Stopped
from agentcell.gauge import Gauge
from agentcell.idle import Silence, until_idle
from agentcell.listener import Listener
from agentcell.log import Log
from agentcell.meter import Meter
from agentcell.orders import Order
from agentcell.processes import survivors
from agentcell.reap import end_worker
from agentcell.record import Record
from agentcell.spawn import Child
from agentcell.tail import Tail
from agentcell_protocol.framing import LineFramer

EXIT_SECONDS = 5.0
"""From the result line to the worker's exit: nothing is left to be done by then."""

CLEANUP_SECONDS = 30.0
"""From the outcome to the result, besides the wait for background work: the SDK's own close may take 15 s."""

LAST_EVENTS_SECONDS = 5.0
"""For a callback to take the last events of a cell that the host had to end."""

LAST_LINES_SECONDS = 1.0
"""For what is still in the pipe, once nobody else is waited for."""

MILESTONES = frozenset({"session_started", "outcome"})
"""Types of events after which the clocks of a cell are others."""


class Supervision:
    """Watches a child for as long as it lives.

    Afterwards `cause` says why the host ended it (None: it ended by itself), `seen_below` what was left below it,
    `record` and `tail` hold what it said, and `gauge` what it took.
    """

    def __init__(
        self,
        child: Child,
        record: Record,
        listener: Listener,
        order: Order,
        *,
        log: Log,
        meter: Meter,
        on_started: Callable[[], object],
    ) -> None:
        self.cause: Cause | None = None
        self.record = record
        self.tail = Tail()
        self.gauge = Gauge(lambda: child.pid, order.limits)
        self._child = child
        self._listener = listener
        self._limits = order.limits
        self._stop = order.stop
        self._log = log
        self._meter = meter
        self._on_started = on_started
        self._silence = Silence(order.limits.idle_seconds or inf)
        self._output_bytes = 0
        self._over = anyio.Event()
        self._exited = anyio.Event()
        self._started = anyio.Event()
        self._known = anyio.Event()
        self._answered = anyio.Event()
        self._drained = anyio.Event()
        self._tail_kept = anyio.Event()
        self._work: list[anyio.CancelScope] = []
        self._below: list[psutil.Process] = []

    async def run(self, line: bytes) -> None:
        """Send the request and return when the worker is gone. A cancellation ends the worker first."""
        async with anyio.create_task_group() as tasks:
            if rest := self._child.stdin.write_now(line):
                tasks.start_soon(self._shielded, partial(self._child.stdin.write, rest))
            for work in (self._hear_stdout, self._keep_stderr, self._see_exit):
                tasks.start_soon(self._shielded, work)
            for watch in (self._watch_start_and_close, self._watch_wall, self._watch_spending, self._watch_stop):
                tasks.start_soon(watch)
            if (seconds := self._limits.idle_seconds) is not None:
                tasks.start_soon(self._watch_idle, seconds)
            try:
                await self._over.wait()
                if self._has_ended_by_itself:
                    await self._drained.wait()  # a callback may take its time, until the wall limit or a stop
            except anyio.get_cancelled_exc_class():
                self._listener.close()
                raise
            finally:
                await self._finish()
                tasks.cancel_scope.cancel()

    def seen_below(self) -> list[psutil.Process]:
        """What was seen below the worker and still lives. Raises OSError without a descriptor to look with."""
        return [*self._below, *survivors(self.gauge.last)]

    async def _shielded(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do it until `_finish` stops it: an ending worker is still listened to."""
        with anyio.CancelScope(shield=True) as scope:
            self._work.append(scope)
            await work()

    async def _hear_stdout(self) -> None:
        framer = LineFramer()
        while chunk := await self._child.stdout.read():
            self._count_output(chunk)
            await self._take(self.record.hear_all(framer.push(chunk)))
        await self._take(filter(None, map(self.record.hear_rest, framer.finish())))
        self._drained.set()

    async def _take(self, events: Iterable[dict[str, Any]]) -> None:
        """Hear one event after the other, each only once the listener has taken the one before."""
        if self._listener.is_open or self._limits.idle_seconds is not None:
            await self._pass_on(events)
        else:
            deque(events, maxlen=0)
        self._note_progress()

    async def _pass_on(self, events: Iterable[dict[str, Any]]) -> None:
        listener, silence = self._listener, self._silence
        for event in events:
            if event["type"] in MILESTONES:
                self._note_progress()
            silence.hear(event)
            if (rest := listener.tell(event)) is not None:
                await rest
            if listener.failure is not None:
                self._over.set()
        silence.resume(anyio.current_time())

    def _note_progress(self) -> None:
        if self.record.has_started:
            self._started.set()
            self._on_started()
        if self.record.has_outcome:
            self._known.set()
        if self.record.result is not None:
            self._answered.set()

    async def _keep_stderr(self) -> None:
        while chunk := await self._child.stderr.read():
            self._count_output(chunk)
            self.tail.add(chunk)
            self._log.add(chunk)
        self._tail_kept.set()

    async def _see_exit(self) -> None:
        await self._child.exited()
        self._child.stdout.finish()
        self._child.stderr.finish()
        self._exited.set()
        self._over.set()

    async def _watch_start_and_close(self) -> None:
        with anyio.move_on_after(self._limits.startup_seconds) as start:
            await self._started.wait()
        if start.cancelled_caught:
            self._end(Limited("startup", self._limits.startup_seconds))
        else:
            await self._watch_close()

    async def _watch_idle(self, seconds: float) -> None:
        await until_idle(self._silence, seconds)
        self._end(Limited("idle", seconds))

    async def _watch_wall(self) -> None:
        await anyio.sleep(self._limits.max_execution_seconds)
        self._end(Limited("wall", self._limits.max_execution_seconds))

    async def _watch_spending(self) -> None:
        await self._meter.watch(self.gauge, self._end)

    async def _watch_stop(self) -> None:
        await self._stop.requested.wait()
        self._end(Stopped(str(self._stop.reason)))

    async def _watch_close(self) -> None:
        """See that a worker that has said everything also goes."""
        await self._known.wait()
        cleanup_seconds = CLEANUP_SECONDS + self._limits.drain_seconds
        with anyio.move_on_after(cleanup_seconds) as cleanup:
            await self._answered.wait()
        if cleanup.cancelled_caught:
            self._end(Lingered("outcome", cleanup_seconds))
            return
        await anyio.sleep(EXIT_SECONDS)
        self._end(Lingered("result", EXIT_SECONDS))

    def _count_output(self, chunk: bytes) -> None:
        self._output_bytes += len(chunk)
        limit = self._limits.max_output_bytes
        if limit is not None and self._output_bytes > limit:
            self._end(Exceeded("max_output_bytes", limit, self._output_bytes))

    def _end(self, cause: Cause) -> None:
        if self._exited.is_set():
            self._listener.close()  # the worker is gone: what still takes its time is the callback
        elif self.cause is None and not self._over.is_set():
            self.cause = cause
            self._over.set()

    @property
    def _has_ended_by_itself(self) -> bool:
        return self.cause is None and self._listener.failure is None

    async def _finish(self) -> None:
        """The worker is gone, or is made to go; then what it had said is heard to its end.

        A second asyncio cancellation breaks through the shield: then the worker is killed at once.
        """
        try:
            with anyio.CancelScope(shield=True):
                await self._end_worker()
        finally:
            if not self._exited.is_set():
                self._child.send(SIGKILL)
            for work in self._work:
                work.cancel()

    async def _end_worker(self) -> None:
        if not self._exited.is_set():
            self._below = await end_worker(self._child, self._exited, self._stop.forced)
        with anyio.move_on_after(LAST_EVENTS_SECONDS):
            await self._drained.wait()
        self._listener.close()
        with anyio.move_on_after(LAST_LINES_SECONDS):
            await self._drained.wait()
            await self._tail_kept.wait()
