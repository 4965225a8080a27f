"""The bridge: `python -P -m agentcell.executors.ray.bridge`, which speaks with Ray, so that its driver need not.

Ray takes signals over and prints on stdout; here nobody minds.
"""

import os
import sys
import traceback
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from io import FileIO
from typing import Any

import anyio
from anyio.abc import TaskGroup

from agentcell.errors import ExecutorError
from agentcell.executors import wire
from agentcell.executors.ray import talk
from agentcell.executors.ray.absence import SEE_LOG
from agentcell.executors.ray.cluster import Cluster
from agentcell.executors.ray.connecting import connected
from agentcell.executors.ray.courier import Courier
from agentcell.executors.ray.talk import OPENING, RaySettings
from agentcell.executors.wire import END_SECONDS, WIRE_LIMIT, line
from agentcell.pipes import PipeReader, PipeWriter
from agentcell.standard import STDERR, STDIN, STDOUT
from agentcell_protocol.codec import decode
from agentcell_protocol.framing import LineFramer, Overlong

CLOSE_SECONDS = END_SECONDS + 5.0
"""For the keepers to end, and to say so."""


def main() -> int:
    """Be the bridge until stdin ends; the exit code."""
    reads, writes = claim()
    anyio.run(_serve, PipeReader(reads), PipeWriter(writes), backend="asyncio")
    return 0


def claim() -> tuple[FileIO, FileIO]:
    """Take stdin and stdout for the driver; from then on fd 0 is /dev/null and fd 1 is stderr."""
    wire = FileIO(os.dup(STDIN), "rb"), FileIO(os.dup(STDOUT), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, STDIN)
    os.close(null)
    os.dup2(STDERR, STDOUT)
    return wire


async def _serve(reader: PipeReader, writer: PipeWriter) -> None:
    voice = _Voice(writer)
    try:
        async with aclosing(_messages(reader)) as messages:
            with connected(RaySettings.of(await anext(messages)), voice.tell_left_out) as cluster:
                await _Bridge(cluster, voice).serve(messages)
    except ExecutorError as failure:
        await voice.say(line(talk.FAILED, marker=OPENING, reason=failure.reason, remedy=failure.remedy))
    except Exception as failure:  # noqa: BLE001 - the outermost frame: whoever waits is told
        traceback.print_exc(file=sys.stderr)
        told = f"the bridge to Ray has failed: {type(failure).__name__}: {failure}"
        await voice.say(line(talk.FAILED, marker=OPENING, reason=told, remedy=SEE_LOG))


async def _messages(reader: PipeReader) -> AsyncGenerator[dict[str, Any], None]:
    framer = LineFramer(WIRE_LIMIT)
    while chunk := await reader.read():
        for text in framer.push(chunk):
            if not isinstance(text, Overlong):
                yield decode(text)


class _Voice:
    """Says whole lines, one after the other."""

    def __init__(self, writer: PipeWriter) -> None:
        self._writer = writer
        self._turn = anyio.Lock()

    async def say(self, text: bytes) -> None:
        async with self._turn:
            await self._writer.write(text)

    async def tell_left_out(self, fault: ExecutorError) -> None:
        """Say what is wrong with a node that is given no attempts."""
        await self.say(line(talk.LEFT_OUT, marker=OPENING, reason=fault.reason, remedy=fault.remedy))


class _Bridge:
    """Serves one driver."""

    def __init__(self, cluster: Cluster, voice: _Voice) -> None:
        self._cluster = cluster
        self._voice = voice
        self._couriers: dict[str, Courier] = {}

    async def serve(self, messages: AsyncGenerator[dict[str, Any], None]) -> None:
        """Do what the messages say until there are no more; then end all keepers."""
        try:
            await self._cluster.open()
            await self._voice.say(line(wire.READY, marker=OPENING, max_sessions=self._cluster.capacity.max_sessions))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._cluster.tend, self._give_back)
                async for message in messages:
                    self._begin(message, tasks)
                tasks.cancel_scope.cancel()
        finally:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await self._cluster.close()

    def _begin(self, message: Mapping[str, Any], tasks: TaskGroup) -> None:
        marker = message["marker"]
        match message["type"]:
            case wire.ATTEMPT:
                self._couriers[marker] = Courier(message, self._cluster, self._voice.say)
                tasks.start_soon(self._run, marker)
            case wire.CANCEL if marker in self._couriers:
                tasks.start_soon(self._couriers[marker].cancel, message["reason"])
            case talk.TAKEN if marker in self._couriers:
                self._couriers[marker].taken()
            case wire.SETTLE:
                tasks.start_soon(self._settle, marker, message["markers"])

    def _give_back(self, reason: str) -> None:
        for courier in self._couriers.values():
            courier.give_back(reason)

    async def _run(self, marker: str) -> None:
        try:
            await self._couriers[marker].run()
        finally:
            del self._couriers[marker]

    async def _settle(self, marker: str, markers: list[str]) -> None:
        swept = await self._cluster.settle(markers)
        await self._voice.say(line(wire.SETTLED, marker=marker, swept=swept))


if __name__ == "__main__":
    raise SystemExit(main())
