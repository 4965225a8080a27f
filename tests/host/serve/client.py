"""A program at the other ends of a serving host's pipes, in one loop with it."""

import json
import os
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from agentcell.serve.serving import Serving, Settings

BOUND_SECONDS = 60.0
"""For anything a test waits for; it takes a second."""

HANG: dict[str, Any] = {"hang": True}


class Client:
    """Sends lines and reads lines; `code` is the exit code, once it has `ended`."""

    def __init__(self, stdin: int, stdout: int, home: Path) -> None:
        self.code: int | None = None
        self.ended = anyio.Event()
        self._stdin = stdin
        self._stdout = stdout
        self._home = home
        self._rest = b""
        self._lines: deque[dict[str, Any]] = deque()

    def request(self, *steps: dict[str, Any], **members: Any) -> dict[str, Any]:
        """One for a stand-in that does these steps."""
        known = {"session_name": "a", "agent_type": "coder", "project_dir": str(self._home), "starting_message": "hi"}
        return {**known, "context": {"stand_in": list(steps)}, **members}

    async def run(self, run_id: str, *steps: dict[str, Any], **members: Any) -> None:
        """Ask for a run of these steps."""
        await self.send({"type": "run", "id": run_id, "request": self.request(*steps, **members)})

    async def send(self, *messages: dict[str, Any] | bytes) -> None:
        """Write lines; bytes as they are."""
        for message in messages:
            left = memoryview(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
            while left:
                await anyio.wait_writable(self._stdin)
                left = left[os.write(self._stdin, left) :]

    def end(self) -> None:
        """Close its stdin."""
        self._stdin = _closed(self._stdin)

    def leave(self) -> None:
        """Close its stdout."""
        self._stdout = _closed(self._stdout)

    async def next(self) -> dict[str, Any]:
        """The next line."""
        while not self._lines:
            if not await self._read():
                raise EOFError
        return self._lines.popleft()

    async def until(self, kind: str, run_id: str | None = None) -> dict[str, Any]:
        """The next line of that type, and of that run."""
        return (await self.all_until(kind, run_id))[-1]

    async def all_until(self, kind: str, run_id: str | None = None) -> list[dict[str, Any]]:
        """All lines to the next of that type, and of that run."""
        seen = [await self.next()]
        while seen[-1]["type"] != kind or run_id not in {None, seen[-1].get("id")}:
            seen.append(await self.next())
        return seen

    async def rest(self) -> list[dict[str, Any]]:
        """All lines that are still to come, when it ends."""
        while await self._read():
            pass
        assert self._rest == b""
        seen, self._lines = list(self._lines), deque()
        return seen

    async def _read(self) -> bool:
        await anyio.wait_readable(self._stdout)
        chunk = os.read(self._stdout, 1 << 16)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self._lines.extend(map(json.loads, lines))
        return bool(chunk)

    def close(self) -> None:
        """Close what is open."""
        self.end()
        self.leave()


@asynccontextmanager
async def serving(
    home: Path, max_sessions: int = 2, *, prepare: Callable[[Serving], object] | None = None
) -> AsyncIterator[Client]:
    """A client whose host ends, at the latest, when the block does."""
    stdin, to_host = os.pipe()
    from_host, stdout = os.pipe()
    os.set_blocking(to_host, False)
    client = Client(to_host, from_host, home)
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home)}
    host = Serving(Settings(stdin, stdout, os.getpid(), max_sessions, environment))
    if prepare is not None:
        prepare(host)

    async def serve() -> None:
        try:
            client.code = await host.run()
        finally:
            os.close(stdin)
            os.close(stdout)
            client.ended.set()

    try:
        with anyio.fail_after(BOUND_SECONDS):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(serve)
                yield client
                client.close()
    finally:
        client.close()


def _closed(fd: int) -> int:
    if fd >= 0:
        anyio.notify_closing(fd)
        os.close(fd)
    return -1


def ends(messages: list[dict[str, Any]]) -> dict[str, str]:
    """How each run has ended: its status, or the category of its error. Each has one end."""
    results = [message for message in messages if message["type"] == "result"]
    assert len({result["id"] for result in results}) == len(results)
    return {result["id"]: (result["error"] or {}).get("category", result["status"]) for result in results}
