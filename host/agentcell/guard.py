"""`agentcell-worker`: one request line in, the cell's lines out, and one true result whatever happens to the cell."""

import os
import signal
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

import anyio

from agentcell.attempt import cancelled, fit
from agentcell.environment import inherited_environment
from agentcell.lifeline import watch_lifeline
from agentcell.limits import Limits
from agentcell.lines import LineWriter
from agentcell.orders import Order
from agentcell.run import run_attempt
from agentcell.signals import cancelling_on_signals, heeded_signals
from agentcell.standard import STDIN, STDOUT, hold_standard_streams
from agentcell.stop import Stop
from agentcell_protocol.errors import RequestError, SessionError, internal_error
from agentcell_protocol.exitcodes import exit_code
from agentcell_protocol.intake import read_message
from agentcell_protocol.request import SessionRequest, parse_request
from agentcell_protocol.result import Notice, SessionResult, failed, names_in


class _Cancelled(BaseException):
    def __init__(self, reason: str) -> None:
        self.reason = reason


def main() -> int:
    """Run the session that the first line of stdin asks for, print its result as one line; the exit code.

    With options it is the legacy interface.
    """
    if len(sys.argv) > 1:
        from agentcell import legacy  # noqa: PLC0415 - the other interface, loaded only when it is used

        return legacy.main(sys.argv[1:])
    parent = os.getppid()
    hold_standard_streams()
    message: dict[str, Any] = {}
    try:
        with _cancelling():
            notices = _take_message(message)
            limits = Limits.from_mapping(message.pop("limits", None))
            return anyio.run(partial(_serve, parse_request(message), limits, notices, parent=parent))
    except RequestError as refused:
        error = refused.as_session_error()
    except _Cancelled as early:
        error = cancelled(early.reason)
    except Exception as mistake:  # noqa: BLE001 - the outermost frame
        traceback.print_exc()
        error = internal_error(mistake)
    return _answer(_not_run(error, message), LineWriter(STDOUT))


async def _serve(request: SessionRequest, limits: Limits, notices: Iterable[Notice], *, parent: int) -> int:
    stop = Stop()
    writer = LineWriter(STDOUT)
    async with cancelling_on_signals(stop), anyio.create_task_group() as tasks:
        if request.lifeline:
            tasks.start_soon(watch_lifeline, STDIN, parent, stop)
        result = await _run(request, limits, writer, stop)
        tasks.cancel_scope.cancel()
        code = _answer(fit(result.noting(*notices)) if notices else result, writer)
        signal.pthread_sigmask(signal.SIG_BLOCK, heeded_signals())  # what was said is how this process ends
    return code


async def _run(request: SessionRequest, limits: Limits, writer: LineWriter, stop: Stop) -> SessionResult:
    environment = inherited_environment(os.environ)
    on_event = None if request.events == "none" else writer.write
    try:
        return await run_attempt(Order(request, environment=environment, limits=limits, on_event=on_event, stop=stop))
    except RequestError as refused:
        return _not_run(refused.as_session_error(), request.model_dump())


def _take_message(message: dict[str, Any]) -> tuple[Notice, ...]:
    """Read the request's members into `message`; what was odd about the way they came."""
    intake = read_message(STDIN)
    message.update(intake.message)
    if message.get("type") == "run" and "request" in message:
        raise RequestError("type", "is of a line for agentcell serve", "send what is in its `request`, by itself")
    return intake.notices


def _not_run(error: SessionError, message: Mapping[str, Any]) -> SessionResult:
    """The result of a request that came to nothing, with what it said of itself."""
    names = names_in(message)
    return failed(error, **{"id": names.get("session_name"), **names})


def _answer(result: SessionResult, writer: LineWriter) -> int:
    writer.write_now(result.to_message())
    return exit_code(result.error)


@contextmanager
def _cancelling() -> Iterator[None]:
    """Within, the first signal that cancels a session raises `_Cancelled`, until the session itself heeds it."""

    def cancel(number: int, _frame: FrameType | None) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, heeded_signals())  # what is said now is how this process ends
        raise _Cancelled(signal.Signals(number).name)

    before = {number: signal.signal(number, cancel) for number in heeded_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
