"""One attempt on a cluster, as its driver sees it: what is said of it is heard, and a stop is passed on."""

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import anyio

from agentcell.errors import ExecutorError
from agentcell.executors import wire
from agentcell.executors.opening import unless
from agentcell.executors.ray import talk
from agentcell.executors.ray.link import Lane, Link
from agentcell.executors.ray.links import Links
from agentcell.executors.ray.loss import Signature, lost, signature
from agentcell.executors.ray.talk import TAKEN, RaySettings
from agentcell.executors.ray.verdict import given, no_node, no_room, not_begun
from agentcell.executors.wire import ATTEMPT, CANCEL, END_SECONDS, SAID, gone_seconds, line, packed
from agentcell.listener import Listener
from agentcell.orders import Order
from agentcell.reap import GRACE_SECONDS, in_thread
from agentcell.record import Record
from agentcell.run import heard
from agentcell.supervise import LAST_EVENTS_SECONDS
from agentcell_protocol.errors import Category
from agentcell_protocol.result import SessionResult

ABANDON_SECONDS = 300.0
"""For the end of an attempt whose task was cancelled: so long may it take until a node that is lost has ended it."""

LEFT_ALONE = "its node heard of nobody who wanted it any more"

NODES = "see that agentcell[ray] is installed on every node, in this version, and what Ray has logged"

BRIDGE_LOST = "the bridge to Ray has ended"

LAST = frozenset({wire.ENDED, talk.LOST, talk.REFUSED, talk.WITHDRAWN})
"""Types of the last line of an attempt."""


class Flight:
    """Of an order whose session has an id. `failure` is what its `on_event` raised."""

    def __init__(self, order: Order, links: Links, settings: RaySettings) -> None:
        self._order = order
        self._links = links
        self._settings = settings
        self._record = Record(order.request.session_name, order.request.identity)
        self._listener = Listener(order.on_event, heard(order.request))
        self._began = time.monotonic()
        self._before: Signature | None = None
        self._has_begun = anyio.Event()
        self._is_refused = False
        self._marker = order.marker

    @property
    def failure(self) -> BaseException | None:
        """None when there is none."""
        return self._listener.failure

    def stop(self) -> None:
        """Have it cancelled, if nobody has yet."""
        if self._order.stop.reason is None:
            self._order.stop.cancel()

    async def run(self) -> SessionResult:
        """Have it made; how it ended, when nothing of it is left."""
        file, stop = self._order.request.result_file, self._order.stop
        self._before = None if file is None else await in_thread(partial(signature, file))
        try:
            link = await unless(stop.requested.wait, self._links.get)
        except ExecutorError as failure:
            return await self._give(no_node(self._order, failure))
        if link is None or stop.reason is not None:
            return await self._give(not_begun(self._order))
        with link.lane(self._marker) as lane:
            try:
                with anyio.CancelScope(shield=True):
                    await link.say(self._line)
                return await self._follow(link, lane)
            except anyio.get_cancelled_exc_class():
                with anyio.move_on_after(ABANDON_SECONDS, shield=True):
                    await self._abandon(link, lane)
                raise

    async def _follow(self, link: Link, lane: Lane) -> SessionResult:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch_stop, link)
            tasks.start_soon(self._watch_second_stop, link)
            tasks.start_soon(self._watch_clock, link)
            result = await self._hear(link, lane)
            tasks.cancel_scope.cancel()
        return result

    async def _hear(self, link: Link, lane: Lane) -> SessionResult:
        while (message := await lane.next()) is not None:
            if message["type"] in LAST:
                return await self._ended(message)
            if message["type"] == SAID:
                await self._tell(message["events"], link)
            await link.say(line(TAKEN, marker=self._marker))
        await self._settle()
        return await self._lost(BRIDGE_LOST)

    async def _ended(self, message: Mapping[str, Any]) -> SessionResult:
        match message["type"]:
            case wire.ENDED:
                result = SessionResult.model_validate(message["result"])
                if self._was_left_alone(result):
                    return await self._lost(LEFT_ALONE)
                return result if self.failure is None else await self._give(result)
            case talk.REFUSED:
                return await self._give(no_room(self._order, message["reason"], message["remedy"]))
            case talk.WITHDRAWN:
                return await self._give(not_begun(self._order))
            case _ if not message["has_begun"] and self._order.stop.reason is None:
                return await self._give(no_node(self._order, ExecutorError(message["reason"], NODES)))
            case _:
                return await self._lost(message["reason"])

    def _was_left_alone(self, result: SessionResult) -> bool:
        """Whether its keeper ended it because it had heard of nobody any more."""
        is_lost = result.error is not None and result.error.category is Category.HOST_LOST
        return is_lost and self._order.stop.reason is None

    async def _lost(self, reason: str) -> SessionResult:
        look = partial(lost, self._order, self._record, reason, before=self._before, began=self._began)
        return await self._give(await in_thread(look))

    async def _give(self, result: SessionResult) -> SessionResult:
        return await given(self._order, result, self.failure)

    async def _tell(self, events: list[dict[str, Any]], link: Link) -> None:
        self._has_begun.set()
        for event in events:
            self._record.learn(event)
            if self.failure is None and (rest := self._listener.tell(event)) is not None:
                await rest
        if self.failure is not None and not self._is_refused:
            self._is_refused = True
            await self._cancel(link)

    async def _cancel(self, link: Link, reason: str = "SIGTERM") -> None:
        await link.say(line(CANCEL, marker=self._marker, reason=reason))

    async def _watch_stop(self, link: Link) -> None:
        stop = self._order.stop
        await stop.requested.wait()
        await self._cancel(link, str(stop.reason))
        with anyio.move_on_after(GRACE_SECONDS):
            await stop.forced.wait()
        await anyio.sleep(LAST_EVENTS_SECONDS)
        self._listener.close()  # what is still said is heard, whoever does not take it

    async def _watch_second_stop(self, link: Link) -> None:
        """Pass it on whenever it comes."""
        stop = self._order.stop
        await stop.forced.wait()
        await self._cancel(link, str(stop.reason))

    async def _watch_clock(self, link: Link) -> None:
        """See that a callback holds no session that has come to its wall limit, nor a keeper that stands still."""
        await self._has_begun.wait()
        await anyio.sleep(self._order.limits.max_execution_seconds + GRACE_SECONDS + LAST_EVENTS_SECONDS)
        self._listener.close()
        await anyio.sleep(END_SECONDS)
        for _ in range(2):
            await self._cancel(link)

    async def _abandon(self, link: Link, lane: Lane) -> None:
        """End it, which nobody waits for any more, and see that it has ended."""
        self._listener.close()
        await self._cancel(link)
        with anyio.move_on_after(GRACE_SECONDS) as grace:
            await self._drain(link, lane)
        if grace.cancelled_caught:
            await self._cancel(link)
            await self._drain(link, lane)

    async def _drain(self, link: Link, lane: Lane) -> None:
        while (message := await lane.next()) is not None:
            if message["type"] in LAST:
                return
            await link.say(line(TAKEN, marker=self._marker))
        await self._settle()

    async def _settle(self) -> None:
        """See that nothing of it is left, without the bridge that it was made through."""
        try:
            await self._links.settle([self._marker])
        except ExecutorError:  # then its keeper sees by itself that nobody is there
            await anyio.sleep(gone_seconds(self._settings.lease_seconds))

    @property
    def _line(self) -> bytes:
        order, request = self._order, self._order.request
        name = f"agentcell {request.identity}"
        memory_mb = order.limits.max_memory_mb or self._settings.cell_memory_mb
        return line(ATTEMPT, marker=order.marker, order=packed(order), memory_mb=memory_mb, name=name)
