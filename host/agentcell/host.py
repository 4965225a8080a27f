"""A host for many sessions: at most so many at a time, and none left when it closes."""

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import Self, get_args

import anyio

from agentcell.environment import cell_environment
from agentcell.errors import HostClosedError, HostOpenError
from agentcell.forkserver import starting
from agentcell.gate import Gate
from agentcell.limits import Limits
from agentcell.listener import OnEvent
from agentcell.meter import Meter
from agentcell.run import Request, checked, run_attempt
from agentcell.spawn import WORKER, Spawn
from agentcell.stop import Stop
from agentcell.transcripts import Keep
from agentcell_protocol.cell import Start
from agentcell_protocol.request import parse_request
from agentcell_protocol.result import SessionResult


class Host:
    """Runs sessions, each in a cell of its own, `max_sessions` (the number of cores) at a time.

    Of those, `max_starts` (the number of cores) start at a time; the wait for that is not the session's own.

    To be entered with `async with`; leaving it cancels the sessions that still run and waits for their ends.
    On Linux the cells are forks of a process that has the SDK loaded, which the first session waits for; with
    `start="cold"` each loads it anew. `worker_command` starts another worker than ours, such as
    `agentcell.testing.stand_in`, always cold. Raises ValueError for a `max_sessions` or `max_starts` under one.
    """

    def __init__(
        self,
        max_sessions: int | None = None,
        *,
        max_starts: int | None = None,
        start: Start = "fork",
        worker_command: Sequence[str] = WORKER,
    ) -> None:
        for name, value in (("max_sessions", max_sessions), ("max_starts", max_starts)):
            if value is not None and value < 1:
                raise ValueError(f"{name} must be positive")
        if start not in get_args(Start):
            raise ValueError(f"start must be one of {', '.join(get_args(Start))}")
        self._max_sessions = max_sessions or os.cpu_count() or 1
        self._max_starts = max_starts
        self._starting = partial(starting, start, command=worker_command)
        self._lifetime = AsyncExitStack()
        self._spawn: Spawn | None = None
        self._meter = Meter()
        self._gate: Gate | None = None
        self._limiter: anyio.CapacityLimiter | None = None
        self._stops: set[Stop] = set()
        self._ended = anyio.Event()

    async def __aenter__(self) -> Self:
        if self._limiter is not None:
            raise HostOpenError
        self._limiter = anyio.CapacityLimiter(self._max_sessions)
        self._gate = Gate(self._max_starts)
        self._spawn = await self._lifetime.enter_async_context(self._starting())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._limiter = None
        for stop in self._stops:
            stop.cancel()
        with anyio.CancelScope(shield=True):
            while self._stops:
                self._ended = anyio.Event()
                await self._ended.wait()
            await self._lifetime.aclose()

    async def run(
        self,
        request: Request,
        *,
        limits: Limits | None = None,
        on_event: OnEvent | None = None,
        env: Mapping[str, str] | None = None,
        pass_env: Iterable[str] = (),
        keep: Keep = True,
    ) -> SessionResult:
        """As `run_session`, as soon as there is room. Raises HostClosedError outside the `async with` block, too."""
        if self._limiter is None:
            raise HostClosedError
        session = parse_request(request)
        environment = cell_environment(os.environ, env=env, pass_env=pass_env)
        attempt = partial(
            run_attempt, session, limits or Limits(), environment=environment, on_event=on_event, keep=keep
        )
        async with self._limiter:
            return checked(await self._run(attempt))

    async def _run(self, attempt: Callable[..., Awaitable[SessionResult]]) -> SessionResult:
        if self._limiter is None:
            raise HostClosedError
        stop = Stop()
        self._stops.add(stop)
        try:
            return await attempt(stop=stop, spawn=self._spawn, meter=self._meter, gate=self._gate)
        finally:
            self._stops.discard(stop)
            self._ended.set()
