"""One connection to a keeper: a line asks for an attempt, and what comes of it goes back until it has ended."""

import socket
from contextlib import suppress
from typing import Any

import anyio
from anyio.abc import SocketStream, UNIXSocketStream

from agentcell.executors.connection import CHUNK_BYTES
from agentcell.executors.executor import Executor
from agentcell.executors.keeper.attempts import Attempt, Attempts, see_off
from agentcell.executors.keeper.headroom import Headroom
from agentcell.executors.keeper.making import SAME_VERSION, Making
from agentcell.executors.keeper.voice import Voice
from agentcell.executors.wire import ATTEMPT, ENDED, WIRE_LIMIT, line
from agentcell_protocol.codec import decode
from agentcell_protocol.errors import RequestError, WireError
from agentcell_protocol.framing import LineFramer, Overlong
from agentcell_protocol.result import SessionResult, refused

FIRST_LINE_SECONDS = 60.0
"""For the line to come: who connects has it ready, and it is at most some ten MB."""

GONE = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)
"""What a stream raises whose other end is not there any more."""


class Desk:
    """Makes the attempts that are asked for, by the executor, as soon as there is room for each."""

    def __init__(self, executor: Executor, attempts: Attempts, headroom: Headroom) -> None:
        self._attempts = attempts
        self._making = Making(executor, headroom)

    async def serve(self, connection: socket.socket) -> None:
        """Serve whoever has connected, to the end of the connection."""
        with connection:
            async with await UNIXSocketStream.from_socket(connection) as stream:
                with suppress(*GONE):
                    if (first := await _first_line(stream)) is not None:
                        await self._take(first, stream)

    async def _take(self, first: bytes | Overlong, stream: SocketStream) -> None:
        marker = ""
        try:
            message = _decoded(first)
            marker = str(message.get("marker", ""))
            order = self._checked(message, marker)
        except RequestError as mistake:
            await _end(stream, marker, refused(mistake, {}))
        else:
            await self._attempt(marker, order, stream)

    def _checked(self, message: dict[str, Any], marker: str) -> dict[str, Any]:
        """The order of an attempt. Raises RequestError for a line that asks for none, or for one a second time."""
        order = message.get("order")
        if message.get("type") != ATTEMPT or not marker or not isinstance(order, dict):
            raise RequestError(None, "the first line is no attempt with a marker and an order", SAME_VERSION)
        if self._attempts.has(marker):
            raise RequestError(None, "it is under way here", "make an attempt once")
        return order

    async def _attempt(self, marker: str, order: dict[str, Any], stream: SocketStream) -> None:
        """Make it, and say what it says and how it ended; the end of the connection ends it."""
        voice = Voice(marker, stream)
        async with anyio.create_task_group() as tasks:
            with self._attempts.beginning(marker) as attempt:
                tasks.start_soon(_mind_peer, stream, attempt)
                tasks.start_soon(voice.run)
                result = await self._making.result(marker, order, attempt, voice.tell)
            await voice.finish()
            with suppress(*GONE):
                await _end(stream, marker, result)
            tasks.cancel_scope.cancel()


async def _first_line(stream: SocketStream) -> bytes | Overlong | None:
    """What is asked for; None from somebody who asks for nothing in time. Raises what `GONE` says."""
    framer = LineFramer(WIRE_LIMIT)
    with anyio.move_on_after(FIRST_LINE_SECONDS):
        while True:
            if lines := framer.push(await stream.receive(CHUNK_BYTES)):
                return lines[0]
    return None


def _decoded(first: bytes | Overlong) -> dict[str, Any]:
    if isinstance(first, Overlong):
        raise RequestError(None, str(first), "put large inputs into files and name them in the message")
    try:
        return decode(first)
    except WireError as invalid:
        raise RequestError(None, str(invalid), SAME_VERSION) from None


async def _mind_peer(stream: SocketStream, attempt: Attempt) -> None:
    """End the attempt when the connection ends; what else comes through it is dropped."""
    with suppress(*GONE):
        while True:
            await stream.receive(CHUNK_BYTES)
    await see_off([attempt])


async def _end(stream: SocketStream, marker: str, result: SessionResult) -> None:
    await stream.send(line(ENDED, marker=marker, result=result.to_message()))
