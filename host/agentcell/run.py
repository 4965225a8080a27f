"""One session: a request in, a cell around it, one result out."""

import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from os import environ
from typing import Any

import anyio

from agentcell.attempt import Ending, cancelled, decide, not_started, spawn_failed
from agentcell.environment import cell_environment
from agentcell.errors import RunningLoopError, request_error
from agentcell.forkserver import starting
from agentcell.gate import Gate, Turn
from agentcell.interrupt import plain_interrupt
from agentcell.limits import Limits
from agentcell.listener import Listener, OnEvent
from agentcell.meter import Meter
from agentcell.processes import survivors
from agentcell.reap import in_thread, sweep
from agentcell.record import Record
from agentcell.result_file import write_result_file
from agentcell.spawn import Child, Spawn
from agentcell.stop import Stop
from agentcell.supervise import Supervision
from agentcell.surroundings import Surroundings
from agentcell.timers import inner_timers
from agentcell.transcripts import Keep, OccupiedError
from agentcell_protocol.cell import MARKER, new_marker
from agentcell_protocol.codec import encode
from agentcell_protocol.errors import RequestError
from agentcell_protocol.events import Detail
from agentcell_protocol.framing import LINE_LIMIT
from agentcell_protocol.masking import Mask
from agentcell_protocol.request import SessionRequest, parse_request, with_session_id
from agentcell_protocol.result import SessionResult

Request = SessionRequest | Mapping[str, Any]


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
    result = await run_attempt(session, limits or Limits(), environment=environment, on_event=on_event, keep=keep)
    return checked(result)


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


async def run_attempt(
    request: SessionRequest,
    limits: Limits,
    *,
    environment: Mapping[str, str],
    on_event: OnEvent | None = None,
    stop: Stop | None = None,
    spawn: Spawn | None = None,
    meter: Meter | None = None,
    keep: Keep = True,
    gate: Gate | None = None,
) -> SessionResult:
    """Run the session once in a cell with this environment; `stop` cancels it and still gets its result.

    Without a `spawn` it is a fork of a server that lives no longer; sessions of one event loop may share a `meter` and
    a `gate`. Raises RequestError for a request too long for its line, and whatever `on_event` raises.
    """
    stop = stop or Stop()
    is_fresh = request.session_id is None and request.resume is None
    request = with_session_id(request)
    line = request_line(request, on_event, limits)
    surroundings = Surroundings(request, environment, keep=keep, is_fresh=is_fresh)
    starter = starting() if spawn is None else nullcontext(spawn)
    with plain_interrupt():
        async with starter as start_cell, (gate or Gate()).turn(stop) as turn:
            if stop.reason is not None:
                result = not_started(request, cancelled(stop.reason))
            else:
                listener = Listener(on_event, _heard(request))
                cell = _Cell(
                    request, limits, environment, surroundings, listener, stop, start_cell, meter or Meter(), turn
                )
                result = await cell.run(line)
    return await write_result_file(request, result)


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


def _heard(request: SessionRequest) -> Detail:
    """What a listener hears that did not say what it wants."""
    return "summary" if request.events == "none" else request.events


@dataclass(frozen=True, slots=True)
class _Cell:
    """One cell, from before its start until nothing is left of it."""

    request: SessionRequest
    limits: Limits
    environment: Mapping[str, str]
    surroundings: Surroundings
    listener: Listener
    stop: Stop
    spawn: Spawn
    meter: Meter
    turn: Turn
    marker: str = field(default_factory=new_marker)
    began: float = field(default_factory=time.monotonic)

    async def run(self, line: bytes) -> SessionResult:
        """Start it, see it to its end, and tell how it ended."""
        with ExitStack() as lifetime:
            try:
                lifetime.enter_context(self.surroundings)
                child = self._start()
            except OccupiedError as occupied:
                return not_started(self.request, occupied.as_session_error())
            except OSError as problem:
                return spawn_failed(self.request, problem)
            lifetime.callback(child.close)
            supervision = self._supervision(child)
            swept = await self._supervise(supervision, child, line)
            if child.failure is not None and supervision.cause is None:
                return spawn_failed(self.request, child.failure)
            if self.listener.failure is not None:
                raise self.listener.failure
            ending = self._ending(supervision, child, swept)
            return self.surroundings.described(decide(self.request, ending)).masked(ending.mask)

    def _start(self) -> Child:
        settings = {MARKER: self.marker, **inner_timers(self.limits)}
        return self.spawn({**self.environment, **self.surroundings.variables, **settings}, self.request.project_dir)

    def _supervision(self, child: Child) -> Supervision:
        record = Record(self.request.session_name, self.request.identity)
        return Supervision(
            child, record, self.listener, self.limits, self.stop, meter=self.meter, on_started=self.turn.end
        )

    async def _supervise(self, supervision: Supervision, child: Child, line: bytes) -> int:
        """Watch it to its end, and end whatever it left, also when cancelled; how many strays there were."""
        swept = 0
        try:
            await supervision.run(line)
        finally:
            with anyio.CancelScope(shield=True):
                below = [*supervision.below, *survivors(supervision.gauge.last)]
                swept = await sweep(child, self.marker, below, self.stop.forced)
                await in_thread(self.surroundings.clear)
        return swept

    def _ending(self, supervision: Supervision, child: Child, swept: int) -> Ending:
        mask = Mask(self.environment, self.request.env or {})
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
            notices=tuple(gauge.notices),
            violated=tuple(gauge.violated),
        )


def _is_in_loop() -> bool:
    try:
        anyio.get_cancelled_exc_class()
    except RuntimeError:
        return False
    return True
