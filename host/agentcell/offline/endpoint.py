"""The offline model as an endpoint on 127.0.0.1, in a thread of its own."""

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

from agentcell.offline.application import application
from agentcell.offline.conversation import Conversations
from agentcell.offline.request import ModelRequest
from agentcell.offline.script import Script, load_script

HOST = "127.0.0.1"

DUMMY_KEY = "sk-ant-offline"
"""The endpoint asks for no credential, but the CLI does."""

BACKLOG = 128
"""Connections the kernel holds until the server accepts them."""

GRACE_SECONDS = 1
"""For answers under way when the endpoint stops; they are told to break off, so it is hardly ever used up."""

STOP_SECONDS = 5.0
"""For the server's thread to end."""

LOOK_SECONDS = 1.0
"""Between two looks whether a signal came: one that comes just before a wait does not end it."""

ScriptSource = Script | Mapping[str, Any] | Path | str


class Endpoint:
    """A running offline model; `url` is its address."""

    def __init__(self, url: str, conversations: Conversations) -> None:
        self.url = url
        self._conversations = conversations

    @property
    def requests(self) -> tuple[ModelRequest, ...]:
        """Everything that was asked until now, in order."""
        return tuple(self._conversations.requests)

    def environment(self) -> dict[str, str]:
        """The variables that make a session use this endpoint and nothing else."""
        return {
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": DUMMY_KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "NO_PROXY": HOST,
            "no_proxy": HOST,
        }


class _Server(uvicorn.Server):
    def __init__(self, conversations: Conversations) -> None:
        self._closing = asyncio.Event()
        app = application(conversations, self._closing, self._abort)
        super().__init__(
            uvicorn.Config(
                app,
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="critical",
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._closing.set()
        await super().shutdown(sockets)

    def _abort(self, scope: Scope) -> None:
        for connection in self.server_state.connections:
            if isinstance(connection, H11Protocol) and connection.client == tuple(scope["client"]):
                connection.transport.abort()


@contextmanager
def offline_model(script: ScriptSource, port: int = 0) -> Iterator[Endpoint]:
    """An endpoint that plays `script` (a dict, or a path to YAML or JSON) for as long as the context lasts.

    It runs in a thread, so it serves asyncio and trio programs as well. Port 0 takes a free one.
    Raises ScriptError, and OSError when the port is taken.
    """
    conversations = Conversations(load_script(script))
    with socket.create_server((HOST, port), backlog=BACKLOG) as listener:
        server = _Server(conversations)
        thread = threading.Thread(target=server.run, args=([listener],), name="offline-model", daemon=True)
        thread.start()
        try:
            yield Endpoint(f"http://{HOST}:{listener.getsockname()[1]}", conversations)
        finally:
            server.should_exit = True
            thread.join(STOP_SECONDS)


def serve_forever(script: ScriptSource, port: int, on_ready: Callable[[Endpoint], object]) -> None:
    """Play `script` until SIGINT or SIGTERM; `on_ready` is called once it listens. For the main thread."""
    stopped = threading.Event()
    before = {number: signal.signal(number, lambda *_: stopped.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with offline_model(script, port) as endpoint:
            on_ready(endpoint)
            while not stopped.wait(LOOK_SECONDS):
                pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
