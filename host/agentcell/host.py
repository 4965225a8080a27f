"""A host for many sessions: at most so many at a time, and none left when it closes."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import Self, get_args

import anyio

from agentcell.environment import cell_environment
from agentcell.errors import HostClosedError
from agentcell.forkserver import starting
from agentcell.limits import Limits
from agentcell.listener import OnEvent
from agentcell.meter import Meter
from agentcell.run import Request, checked, run_attempt
from agentcell.spawn import WORKER, Spawn, Start
from agentcell.stop import Stop
from agentcell_protocol.request import SessionRequest, parse_request
from agentcell_protocol.result import SessionResult


class Host:
    """Runs sessions, each in a cell of its own, `max_sessions` (the number of cores) at a time.

    To be entered with `async with`; leaving it cancels the sessions that still run and waits for their ends.
    On Linux the cells are forks of a process that has the SDK loaded, which the first session waits for; with
    `start="cold"` each loads it anew. `worker_command` starts another worker than ours, such as
    `agentcell.testing.stand_in`, always cold. Raises ValueError for a `max_sessions` under one.
    """

    def __init__(
        self, max_sessions: int | None = None, *, start: Start = "fork", worker_command: Sequence[str] = WORKER
    ) -> None:
        if max_sessions is not None and max_sessions < 1:
            raise ValueError("max_sessions must be positive")
        if start not in get_args(Start):
            raise ValueError(f"start must be one of {', '.join(get_args(Start))}")
        self._max_sessions = max_sessions or os.cpu_count() or 1
        self._starting = partial(starting, start, command=worker_command)
        self._lifetime = AsyncExitStack()
        self._spawn: Spawn | None = None
        self._meter = Meter()
        self._limiter: anyio.CapacityLimiter | None = None
        self._stops: set[Stop] = set()
        self._ended = anyio.Event()

    async def __aenter__(self) -> Self:
        self._limiter = anyio.CapacityLimiter(self._max_sessions)
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
    ) -> SessionResult:
        """As `run_session`, as soon as there is room. Raises HostClosedError outside the `async with` block, too."""
        if self._limiter is None:
            raise HostClosedError
        session = parse_request(request)
        environment = cell_environment(os.environ, env=env, pass_env=pass_env)
        async with self._limiter:
            return checked(await self._run(session, limits or Limits(), environment, on_event))

    async def _run(
        self,
        request: SessionRequest,
        limits: Limits,
        environment: Mapping[str, str],
        on_event: OnEvent | None,
    ) -> SessionResult:
        if self._limiter is None:
            raise HostClosedError
        stop = Stop()
        self._stops.add(stop)
        try:
            return await run_attempt(
                request,
                limits,
                environment=environment,
                on_event=on_event,
                stop=stop,
                spawn=self._spawn,
                meter=self._meter,
            )
        finally:
            self._stops.discard(stop)
            self._ended.set()
