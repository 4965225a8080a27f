"""`agentcell-worker`: one request line in, the cell's lines out, and one true result whatever happens to the cell."""

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

import anyio

from agentcell.attempt import cancelled
from agentcell.environment import inherited_environment
from agentcell.limits import Limits
from agentcell.lines import LineWriter
from agentcell.run import run_attempt
from agentcell.signals import cancelling_on_signals, heeded_signals
from agentcell.stop import HOST_LOST, Stop
from agentcell_protocol.errors import RequestError, SessionError
from agentcell_protocol.exitcodes import exit_code
from agentcell_protocol.intake import read_message
from agentcell_protocol.request import SessionRequest, parse_request
from agentcell_protocol.result import Notice, SessionResult, failed

STDIN = 0
STDOUT = 1

READ_BYTES = 64 * 1024
"""Of what comes after the request line, which is thrown away."""

LATER_LINES = Notice(code="later_lines", message="stdin held more than one line; only the first is the request")


class _Cancelled(BaseException):
    def __init__(self, reason: str) -> None:
        self.reason = reason


def main() -> int:
    """Run the session that the first line of stdin asks for, print its result as one line; the exit code.

    With options it is the older interface.
    """
    if len(sys.argv) > 1:
        from agentcell import older  # noqa: PLC0415 - the other interface, loaded only when it is used

        return older.main(sys.argv[1:])
    message: dict[str, Any] = {}
    try:
        with _cancelling():
            has_more = _take_message(message)
            limits = Limits.from_mapping(message.pop("limits", None))
            request = parse_request(message)
    except RequestError as refused:
        return _answer(_not_run(refused.as_session_error(), message), LineWriter(STDOUT))
    except _Cancelled as early:
        return _answer(_not_run(cancelled(early.reason), message), LineWriter(STDOUT))
    return anyio.run(partial(_serve, request, limits, has_more=has_more))


async def _serve(request: SessionRequest, limits: Limits, *, has_more: bool) -> int:
    stop = Stop()
    writer = LineWriter(STDOUT)
    environment = inherited_environment(os.environ)
    on_event = None if request.events == "none" else writer.write
    async with cancelling_on_signals(stop), anyio.create_task_group() as tasks:
        if request.lifeline:
            tasks.start_soon(_watch_lifeline, stop)
        result = await run_attempt(request, limits, environment=environment, on_event=on_event, stop=stop)
        tasks.cancel_scope.cancel()
    if has_more:
        result = result.model_copy(update={"warnings": [*result.warnings, LATER_LINES]})
    return _answer(result, writer)


async def _watch_lifeline(stop: Stop) -> None:
    """End the session when stdin ends: whoever wanted it is gone."""
    while await _has_more_input():
        pass
    stop.cancel(HOST_LOST)


async def _has_more_input() -> bool:
    """Wait for stdin's next bytes and drop them; False at its end."""
    try:
        await anyio.wait_readable(STDIN)
        return bool(os.read(STDIN, READ_BYTES))
    except OSError:  # a file, which has no more than it had, or a stream that broke
        return False


def _take_message(message: dict[str, Any]) -> bool:
    """Read the request's members into `message`; whether more lines came with them."""
    intake = read_message(STDIN)
    message.update(intake.message)
    return intake.has_more


def _not_run(error: SessionError, message: Mapping[str, Any]) -> SessionResult:
    """The result of a request that came to nothing, with what it said of itself."""
    names = ("session_name", "id", "agent_type")
    return failed(error, **{name: message[name] for name in names if isinstance(message.get(name), str)})


def _answer(result: SessionResult, writer: LineWriter) -> int:
    writer.write_now(result.to_message())
    return exit_code(result.error)


@contextmanager
def _cancelling() -> Iterator[None]:
    """Within, a signal that cancels a session raises `_Cancelled`."""

    def cancel(number: int, _frame: FrameType | None) -> None:
        raise _Cancelled(signal.Signals(number).name)

    before = {number: signal.signal(number, cancel) for number in heeded_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
