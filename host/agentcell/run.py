"""One session: a request in, a cell around it, one result out."""

import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from os import environ
from typing import Any

import anyio

from agentcell.attempt import Ending, cancelled, decide, fit, listener_failed, not_started, spawn_failed
from agentcell.environment import cell_environment
from agentcell.errors import RunningLoopError, request_error
from agentcell.gate import Turn
from agentcell.interrupt import plain_interrupt
from agentcell.limits import Limits
from agentcell.listener import Listener, OnEvent
from agentcell.log import Log
from agentcell.orders import Order
from agentcell.reap import sweep
from agentcell.record import Record
from agentcell.resources import Resources, sharing
from agentcell.result_file import write_result_file
from agentcell.spawn import Child
from agentcell.supervise import Supervision
from agentcell.surroundings import Surroundings
from agentcell.timers import inner_timers
from agentcell.transcripts import Keep, OccupiedError
from agentcell_protocol.cell import MARKER
from agentcell_protocol.codec import encode
from agentcell_protocol.errors import RequestError
from agentcell_protocol.events import Detail
from agentcell_protocol.framing import LINE_LIMIT
from agentcell_protocol.masking import Mask
from agentcell_protocol.request import SessionRequest, parse_request, with_session_id
from agentcell_protocol.result import Notice, SessionResult

Request = SessionRequest | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Attempted:
    """How a session ended; `failure` is what its `on_event` raised, which the result tells, too."""

    result: SessionResult
    failure: BaseException | None = None

    def get(self) -> SessionResult:
        """The result. Raises the failure."""
        if self.failure is not None:
            raise self.failure
        return self.result


async def run_session(
    request: Request,
    *,
    limits: Limits | None = None,
    on_event: OnEvent | None = None,
    env: Mapping[str, str] | None = None,
    pass_env: Iterable[str] = (),
    keep: Keep = True,
) -> SessionResult:
    """Run one session in a cell of its own and return how it ended; a session that fails is a result, too.

    `on_event` is called with each event, in order: a summary, or whatever the request's `events` asks for. The
    cell's environment is built from what may pass (see `cell_environment`), the variables named in `pass_env`,
    and `env`. The conversation is kept for a week in the user's state directory, or, with `keep`, not at all or in
    a directory of the caller's. Raises RequestError for a request that is not one, and whatever `on_event` raises.
    Cancelling the task ends the cell before it propagates.
    """
    session, environment = parse_request(request), cell_environment(environ, env=env, pass_env=pass_env)
    order = Order(session, environment=environment, limits=limits or Limits(), on_event=on_event, keep=keep)
    return checked(await run_attempt(order))


def run_session_sync(
    request: Request,
    *,
    limits: Limits | None = None,
    on_event: OnEvent | None = None,
    env: Mapping[str, str] | None = None,
    pass_env: Iterable[str] = (),
    keep: Keep = True,
) -> SessionResult:
    """`run_session` for programs without an event loop. Raises RunningLoopError inside of one."""
    if _is_in_loop():
        raise RunningLoopError
    session = partial(run_session, request, limits=limits, on_event=on_event, env=env, pass_env=pass_env, keep=keep)
    return anyio.run(session)


async def run_attempt(order: Order, resources: Resources | None = None) -> SessionResult:
    """Run the session of the order once; what starts its cell lives no longer when no `resources` are given.

    Raises RequestError for a request too long for its line, and whatever `on_event` raises.
    """
    return (await attempt(order, resources)).get()


async def attempt(order: Order, resources: Resources | None = None) -> Attempted:
    """`run_attempt` for callers who want the result of a session whose `on_event` raised."""
    is_fresh = order.request.session_id is None and order.request.resume is None
    order = replace(order, request=with_session_id(order.request))
    line = request_line(order.request, order.on_event, order.limits)
    surroundings = Surroundings(order.request, order.environment, keep=order.keep, is_fresh=is_fresh)
    listener = Listener(order.on_event, heard(order.request))
    with plain_interrupt():
        async with (
            sharing() if resources is None else nullcontext(resources) as shared,
            shared.gate.turn(order.stop) as turn,
        ):
            if order.stop.reason is not None:
                result = not_started(order.request, cancelled(order.stop.reason))
            else:
                result = await _Cell(order, surroundings, listener, shared, turn).run(line)
    return Attempted(await write_result_file(order.request, result), listener.failure)


def checked(result: SessionResult) -> SessionResult:
    """The result; a `bad_request` that only the cell could find is raised as the RequestError it stands for."""
    if (error := request_error(result.error)) is not None:
        raise error
    return result


def request_line(request: SessionRequest, on_event: OnEvent | None, limits: Limits) -> bytes:
    """The request as its worker gets it: with the events the host needs, and stdin as its lifeline."""
    wants_all = on_event is not None and request.events == "full"
    detail: Detail = "full" if wants_all or limits.idle_seconds is not None else "summary"
    line = encode({**request.model_dump(exclude_defaults=True), "events": detail, "lifeline": True})
    if len(line) > LINE_LIMIT:
        reason = f"is {len(line)} bytes long as a line, the limit is {LINE_LIMIT}"
        raise RequestError(None, reason, "put large inputs into files and name them in the message")
    return line


def heard(request: SessionRequest) -> Detail:
    """What a listener hears that did not say what it wants."""
    return "summary" if request.events == "none" else request.events


@dataclass(frozen=True, slots=True)
class _Cell:
    """One cell, from before its start until nothing is left of it."""

    order: Order
    surroundings: Surroundings
    listener: Listener
    shared: Resources
    turn: Turn
    began: float = field(default_factory=time.monotonic)

    async def run(self, line: bytes) -> SessionResult:
        """Start it, see it to its end, and tell how it ended."""
        with ExitStack() as lifetime:
            try:
                lifetime.enter_context(self.surroundings)
                child = self._start()
            except OccupiedError as occupied:
                return not_started(self.order.request, occupied.as_session_error())
            except OSError as problem:
                return spawn_failed(self.order.request, problem)
            lifetime.callback(child.close)
            mask = Mask(self.order.environment, self.order.request.env or {})
            log = lifetime.enter_context(closing(Log(self.order.stderr_file, mask)))
            supervision = self._supervision(child, log)
            swept = await self._supervise(supervision, child, line)
            log.close()
            if child.failure is not None and supervision.cause is None:
                return spawn_failed(self.order.request, child.failure)
            ending = self._ending(supervision, child, swept, mask, log.notices)
            result = self.surroundings.described(decide(self.order.request, ending))
            if self.listener.failure is not None:
                result = listener_failed(result, self.listener.failure)
            return fit(result.masked(mask))

    def _start(self) -> Child:
        order = self.order
        settings = {MARKER: order.marker, **inner_timers(order.limits)}
        variables = {**order.environment, **self.surroundings.variables, **settings}
        return self.shared.spawn(variables, order.request.project_dir)

    def _supervision(self, child: Child, log: Log) -> Supervision:
        record = Record(self.order.request.session_name, self.order.request.identity)
        return Supervision(
            child, record, self.listener, self.order, log=log, meter=self.shared.meter, on_started=self.turn.end
        )

    async def _supervise(self, supervision: Supervision, child: Child, line: bytes) -> int:
        """Watch it to its end, and end whatever it left, also when cancelled; how many strays there were."""
        swept = 0
        try:
            await supervision.run(line)
        finally:
            with anyio.CancelScope(shield=True):
                below, clear = supervision.seen_below, self.surroundings.clear
                swept = await sweep(child, self.order.marker, below, self.order.stop.forced, afterwards=clear)
        return swept

    def _ending(
        self, supervision: Supervision, child: Child, swept: int, mask: Mask, notices: Iterable[Notice]
    ) -> Ending:
        gauge = supervision.gauge
        return Ending(
            record=supervision.record,
            status=child.status,
            cause=supervision.cause,
            stderr_tail=supervision.tail.text(mask),
            execution_time=round(time.monotonic() - self.began, 3),
            swept=swept,
            start=child.start,
            mask=mask,
            peak_memory_mb=gauge.peak_memory_mb and round(gauge.peak_memory_mb, 1),
            notices=(*gauge.notices, *notices),
            violated=tuple(gauge.violated),
        )


def _is_in_loop() -> bool:
    try:
        anyio.get_cancelled_exc_class()
    except RuntimeError:
        return False
    return True
