"""A host for many sessions: at most so many at a time, and none left when it closes."""

import os
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio
from anyio.abc import TaskGroup

from agentcell.environment import cell_environment
from agentcell.errors import HostClosedError, HostOpenError
from agentcell.executors.local import LocalExecutor
from agentcell.interrupt import plain_interrupt
from agentcell.limits import Limits
from agentcell.listener import OnEvent
from agentcell.orders import Order
from agentcell.run import Attempted, Request, checked
from agentcell.spawn import WORKER
from agentcell.stream import Answer, Answers, Stream
from agentcell.transcripts import Keep
from agentcell_protocol.cell import Start
from agentcell_protocol.errors import RequestError
from agentcell_protocol.request import parse_request
from agentcell_protocol.result import NAMING, SessionResult, refused

if TYPE_CHECKING:
    from agentcell.executors.executor import Executor
    from agentcell.stop import Stop


def _nothing(*_: object) -> None:
    """Where nobody is to be told."""


class Host:
    """Runs sessions, each in a cell of its own, `max_sessions` (the number of cores) at a time.

    Of those, `max_starts` (the number of cores) start at a time; the wait for that is not the session's own.

    To be entered with `async with`, and left by the task that entered it; that cancels the sessions that still run and
    waits for their ends.
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
        self._local = LocalExecutor(max_sessions, max_starts=max_starts, start=start, worker_command=worker_command)
        self._lifetime = AsyncExitStack()
        self._open: _Open | None = None

    async def __aenter__(self) -> Self:
        if self._open is not None:
            raise HostOpenError
        async with AsyncExitStack() as lifetime:
            await lifetime.enter_async_context(self._local)
            tasks = anyio.create_task_group()
            await tasks.__aenter__()
            self._lifetime = lifetime.pop_all()
        self._open = _Open(tasks, _Lane(self._local))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        host, self._open = self._opened, None
        host.close()
        try:
            with plain_interrupt():
                with anyio.CancelScope(shield=True):
                    await host.ended()
                await host.leave(error)
        finally:
            with anyio.CancelScope(shield=True):
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
        executor: "Executor | None" = None,
    ) -> SessionResult:
        """As `run_session`, as soon as there is room; by another `executor` than the host's own, if one is given.

        Raises HostClosedError outside the `async with` block, too.
        """
        host = self._opened
        environment = cell_environment(os.environ, env=env, pass_env=pass_env)
        session = parse_request(request)
        order = Order(session, environment=environment, limits=limits or Limits(), on_event=on_event, keep=keep)
        return checked((await host.attempt(order, host.lane(executor))).get())

    def run_many(
        self,
        requests: Iterable[Request] | AsyncIterable[Request],
        *,
        limits: Limits | None = None,
        on_event: OnEvent | None = None,
        env: Mapping[str, str] | None = None,
        pass_env: Iterable[str] = (),
        keep: Keep = True,
        executor: "Executor | None" = None,
    ) -> Answers[SessionResult]:
        """Run them all, as many at a time as there is room for, and give each result as soon as it is there.

        Where they run, and how many at a time, is the host's own affair, or that of an `executor`, such as
        `agentcell.executors.ray.RayExecutor`, which is to stay open for as long as the host.

        The next request is taken when there is room for it and the results before have been dealt with, so there may
        be any number of them. What is wrong with one is its own result: `bad_request`, or `internal` when `on_event`
        raised. What `requests` raises is raised when those that run have ended. Leaving early cancels what runs and
        closes `requests` where it has `aclose`; with `async with` around it, it has ended then, and what its end raised
        is raised. Raises HostClosedError outside the host's `async with` block, and in a loop that the host's end cut
        short.
        """
        environment = cell_environment(os.environ, env=env, pass_env=pass_env)
        make = partial(Order, environment=environment, limits=limits or Limits(), on_event=on_event, keep=keep)
        host = self._opened
        lane = host.lane(executor)

        async def work(request: Request) -> SessionResult:
            try:
                order = make(parse_request(request))
            except RequestError as mistake:
                return refused(mistake, request if isinstance(request, Mapping) else {})
            return await host.result(order, lane)

        source = requests if isinstance(requests, AsyncIterable) else _each(requests)
        return host.answers(source, work, lane)

    def perform(
        self,
        orders: AsyncIterable[Order],
        *,
        executor: "Executor | None" = None,
        on_mistake: Callable[[Order, Exception], object] = _nothing,
    ) -> Answers[tuple[Order, SessionResult]]:
        """As `run_many`, for orders: each comes back with its result.

        A mistake of ours that ends one ends the stream, once those that run have ended; `on_mistake` is told at once.
        """
        host = self._opened
        lane = host.lane(executor)

        async def work(order: Order) -> tuple[Order, SessionResult]:
            try:
                return order, await host.result(order, lane)
            except Exception as mistake:
                on_mistake(order, mistake)
                raise

        return host.answers(orders, work, lane)

    @property
    def _opened(self) -> "_Open":
        if self._open is None:
            raise HostClosedError
        return self._open


class _Lane:
    """An executor, and the room that it has."""

    def __init__(self, executor: "Executor") -> None:
        self.executor = executor
        self.limiter = anyio.CapacityLimiter(executor.max_sessions)


class _Open:
    """A host from its opening to its end."""

    def __init__(self, tasks: TaskGroup, own: _Lane) -> None:
        self._tasks = tasks
        self._own = own
        self._is_closed = False
        self._stops: set[Stop] = set()
        self._streams: set[Stream[Any, Any]] = set()
        self._ended = anyio.Event()

    def lane(self, executor: "Executor | None") -> _Lane:
        """That of the executor; the host's own if there is none."""
        return self._own if executor is None else _Lane(executor)

    async def attempt(self, order: Order, lane: _Lane) -> Attempted:
        """Make it as soon as there is room. Raises HostClosedError when there is none any more."""
        async with lane.limiter:
            self._check()
            self._stops.add(order.stop)
            try:
                return await lane.executor.attempt(order)
            finally:
                self._stops.discard(order.stop)
                self._ended.set()

    async def result(self, order: Order, lane: _Lane) -> SessionResult:
        """The same, where nobody is there to be told of a mistake but in the result."""
        try:
            attempted = await self.attempt(order, lane)
        except RequestError as mistake:
            return refused(mistake, order.request.model_dump(include=set(NAMING)))
        return attempted.result if isinstance(attempted.failure, Exception) else attempted.get()

    def answers(
        self, source: AsyncIterable[Any], work: Callable[[Any], Awaitable[Answer]], lane: _Lane
    ) -> Answers[Answer]:
        """What comes of working on each that the source gives."""
        width = int(lane.limiter.total_tokens)
        return Answers(Stream(source, work, width=width, has_room=partial(self._has_room, lane)), self._begin)

    def close(self) -> None:
        """Cancel what runs, and begin nothing more."""
        self._is_closed = True
        for stream in self._streams:
            stream.close()
        for stop in self._stops:
            if stop.reason is None:
                stop.cancel()

    async def ended(self) -> None:
        """Wait for the end of what was cancelled."""
        while self._stops or self._streams:
            self._ended = anyio.Event()
            await self._ended.wait()

    async def leave(self, error: BaseException | None) -> None:
        """Leave the task group, in which nothing runs any more, with no exception but a cancellation."""
        if isinstance(error, anyio.get_cancelled_exc_class()):
            await self._tasks.__aexit__(type(error), error, error.__traceback__)
        else:
            await self._tasks.__aexit__(None, None, None)

    async def _has_room(self, lane: _Lane) -> None:
        async with lane.limiter:
            self._check()

    def _begin(self, stream: Stream[Any, Any]) -> None:
        self._check()
        self._streams.add(stream)
        self._tasks.start_soon(self._run, stream)

    async def _run(self, stream: Stream[Any, Any]) -> None:
        try:
            await stream.run()
        finally:
            self._streams.discard(stream)
            self._ended.set()

    def _check(self) -> None:
        if self._is_closed:
            raise HostClosedError


async def _each(requests: Iterable[Request]) -> AsyncIterator[Request]:
    for request in requests:
        yield request
