"""The HTTP side of the offline model: what the CLI asks, and a turn of the script played as the answer."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from agentcell.offline.answer import error_body, streamed, whole
from agentcell.offline.conversation import Conversations
from agentcell.offline.request import ModelRequest, read_request
from agentcell.offline.script import ApiError, Turn

JSON = "application/json"
EVENTS = "text/event-stream"

NOT_FOUND = ApiError(status=404, message="the offline model does not have this")
NOT_JSON = ApiError(status=400, message="the body is not a JSON object")

CHARACTERS_PER_TOKEN = 4

Abort = Callable[[Scope], None]
"""Breaks off the connection a request came on."""


def application(conversations: Conversations, closing: asyncio.Event, abort: Abort) -> Starlette:
    """The ASGI application; when `closing` is set, answers that are under way are broken off."""

    async def messages(request: Request) -> Response:
        body = await _object(request)
        if body is None:
            return _error(NOT_JSON)
        turn = conversations.take(_read(request, body, is_message=True))
        return Playing(turn, body, closing, abort)

    async def count_tokens(request: Request) -> Response:
        body = await _object(request) or {}
        conversations.requests.append(_read(request, body))
        return JSONResponse({"input_tokens": len(json.dumps(body)) // CHARACTERS_PER_TOKEN})

    async def anything_else(request: Request) -> Response:
        conversations.requests.append(_read(request, await _object(request) or {}))
        return Response() if request.method == "HEAD" else _error(NOT_FOUND)

    return Starlette(
        routes=[
            Route("/v1/messages", messages, methods=["POST"]),
            Route("/v1/messages/count_tokens", count_tokens, methods=["POST"]),
            Route("/{path:path}", anything_else, methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]),
        ]
    )


class Playing(Response):
    """A turn, played until its end, the client's or the endpoint's."""

    def __init__(self, turn: Turn, body: Mapping[str, Any], closing: asyncio.Event, abort: Abort) -> None:
        super().__init__()
        self._turn = turn
        self._closing = closing
        self._abort = abort
        self._is_streamed = body.get("stream") is True
        self._model = str(body.get("model", ""))
        self._has_started = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Play it. Returning without a last chunk makes the server close the connection: that is a drop."""
        async with anyio.create_task_group() as tasks:

            async def stop_after(waiting: Awaitable[object]) -> None:
                await waiting
                tasks.cancel_scope.cancel()

            tasks.start_soon(stop_after, _disconnected(receive))
            tasks.start_soon(stop_after, self._closing.wait())
            await self._play(send)
            tasks.cancel_scope.cancel()
        if not self._has_started:
            self._abort(scope)

    async def _play(self, send: Send) -> None:
        turn = self._turn
        await anyio.sleep(turn.delay)
        if turn.stall == "start":
            await anyio.sleep_forever()
        if turn.drop == "start":
            return
        await self._start(send)
        for chunk in self._until_cut():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await anyio.sleep(turn.pace)
        if turn.stall:
            await anyio.sleep_forever()
        if not turn.drop:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _start(self, send: Send) -> None:
        self._has_started = True
        error = self._turn.error
        headers = {"content-type": self._content_type()}
        if error is not None:
            headers |= {name.lower(): str(value) for name, value in error.headers.items()}
        await send(
            {
                "type": "http.response.start",
                "status": 200 if error is None else error.status,
                "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
            }
        )

    def _content_type(self) -> str:
        if self._turn.body is not None:
            return self._turn.content_type
        return EVENTS if self._is_streamed and self._turn.error is None else JSON

    def _until_cut(self) -> Iterable[bytes]:
        if not (self._turn.stall or self._turn.drop):
            return self._chunks()
        chunks = list(self._chunks())
        return chunks[: len(chunks) // 2]

    def _chunks(self) -> Iterable[bytes]:
        turn = self._turn
        if turn.error is not None:
            return [error_body(turn.error)]
        if turn.body is not None:
            return [turn.body.encode("utf-8", "surrogatepass")]
        if self._is_streamed:
            return streamed(turn, self._model)
        answer = whole(turn, self._model)
        half = len(answer) // 2
        return [answer[:half], answer[half:]]


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _object(request: Request) -> dict[str, Any] | None:
    try:
        body = json.loads(await request.body())
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _read(request: Request, body: Mapping[str, Any], *, is_message: bool = False) -> ModelRequest:
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return read_request(request.method, path, dict(request.headers), body, is_message=is_message)


def _error(error: ApiError) -> Response:
    return Response(error_body(error), error.status, media_type=JSON)
