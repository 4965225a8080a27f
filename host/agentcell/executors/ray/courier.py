"""One attempt between its driver and the task that Ray makes of it: lines pass, and an end without one is told."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import anyio

from agentcell.executors.ray.cluster import Cluster
from agentcell.executors.ray.talk import LOST, REFUSED, UNDER_WAY, WITHDRAWN
from agentcell.executors.wire import ATTEMPT, ENDED, line

Say = Callable[[bytes], Awaitable[None]]

LAST_LINE = b'{"type":"%b"' % ENDED.encode()
"""How the last line of a keeper begins."""

FORCED_SECONDS = 30.0
"""From the second cancel to the end of an attempt: killing takes a few seconds."""

REMEDY = "lower its max_memory_mb, or bring a larger node into the cluster"

REASONS = {
    "NodeDiedError": "the node that made it has died",
    "WorkerCrashedError": "the task that made it was killed",
    "OutOfMemoryError": "Ray has killed the task that made it, for lack of memory on its node",
    "LocalRayletDiedError": "the node that made it has died",
}
"""What is said of an error of Ray's, by its name."""


class Courier:
    """Of the attempt in `message`, from the line that asks for it to the last one that is said of it."""

    def __init__(self, message: Mapping[str, Any], cluster: Cluster, say: Say) -> None:
        self._marker: str = message["marker"]
        self._message = message
        self._cluster = cluster
        self._say = say
        self._task: Any = None
        self._node: str | None = None
        self._cancelled: list[str] = []
        self._given_back: str | None = None
        self._has_ended = False
        self._over = anyio.Event()
        self._cancels = 0
        self._room = anyio.Semaphore(UNDER_WAY)

    async def run(self) -> None:
        """Have it made, and pass on what is said."""
        try:
            await self._run()
        finally:
            self._over.set()

    async def _run(self) -> None:
        memory_mb = self._message["memory_mb"]
        if self._cancelled:
            await self._say(line(WITHDRAWN, marker=self._marker))
            return
        if (misfit := self._cluster.capacity.misfit(memory_mb)) is not None:
            await self._say(line(REFUSED, marker=self._marker, reason=misfit, remedy=REMEDY))
            return
        text = line(ATTEMPT, marker=self._marker, order=self._message["order"])
        self._task = self._cluster.submit(text, memory_mb=memory_mb, name=self._message["name"])
        failure = await self._pass_on()
        if not self._has_ended:
            await self._tell_loss(failure)

    async def cancel(self, reason: str) -> None:
        """Cancel it: take it back where no node has it, otherwise have the node do it."""
        self._cancels += 1
        if self._node is not None:
            await self._cluster.contact(self._node).cancel(self._marker, reason)
        else:
            self._cancelled.append(reason)
            if self._task is not None:
                self._cluster.cancel(self._task, force=self._cancels > 1)
        if self._cancels > 1:
            await self._insist()

    def give_back(self, reason: str) -> None:
        """Have it wait no longer for a node, since there is none."""
        if self._node is None and self._task is not None and self._given_back is None:
            self._given_back = reason
            self._cluster.cancel(self._task)

    async def _insist(self) -> None:
        """See that a keeper that does not answer any more ends, and its cells with it."""
        with anyio.move_on_after(FORCED_SECONDS):
            await self._over.wait()
        if not self._over.is_set():
            await self._cluster.settle([self._marker], self._node)

    def taken(self) -> None:
        """A line that was said is dealt with."""
        self._room.release()

    async def _pass_on(self) -> Exception | None:
        """Pass lines on for as long as there are any; how the task failed, if it did."""
        from ray.exceptions import RayError

        try:
            async for said in self._task:
                await self._take(await said)
        except RayError as failure:
            return failure
        return None

    async def _take(self, said: str | bytes) -> None:
        if isinstance(said, str):
            await self._place(said)
            return
        for text in _lines(said):
            await self._room.acquire()
            self._has_ended = text.startswith(LAST_LINE)
            await self._say(text)

    async def _place(self, node: str) -> None:
        self._node = node
        contact = self._cluster.contact(node)
        for reason in self._cancelled:
            await contact.cancel(self._marker, reason)

    async def _tell_loss(self, failure: Exception | None) -> None:
        """Say that it is lost, once nothing is left of it."""
        if self._cancelled and self._node is None and type(failure).__name__ == "TaskCancelledError":
            await self._say(line(WITHDRAWN, marker=self._marker))
            return
        await self._cluster.settle([self._marker], self._node)
        has_begun = self._node is not None
        await self._say(
            line(LOST, marker=self._marker, reason=self._given_back or _reason(failure), has_begun=has_begun)
        )


def _lines(chunk: bytes) -> Iterator[bytes]:
    """The lines of a chunk, with their ends."""
    start = 0
    while end := chunk.find(b"\n", start) + 1:
        yield chunk[start:end]
        start = end


def _reason(failure: Exception | None) -> str:
    if failure is None:
        return "the keeper of its node has ended"
    name = type(failure).__name__
    if name in REASONS:
        return REASONS[name]
    last = str(failure).strip().rpartition("\n")[2]
    return f"the task that made it has failed: {last or name}"
