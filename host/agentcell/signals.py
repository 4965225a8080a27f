"""A session that a user ends with a signal, and that still has a result then."""

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

import anyio
from anyio.abc import TaskStatus

from agentcell.limits import Limits
from agentcell.listener import OnEvent
from agentcell.orders import Order
from agentcell.run import run_attempt
from agentcell.transcripts import Keep
from agentcell_protocol.exitcodes import CANCEL_SIGNALS
from agentcell_protocol.request import SessionRequest
from agentcell_protocol.result import SessionResult


class Cancellable(Protocol):
    """What hears of each signal by its name."""

    def cancel(self, reason: str) -> object:
        """Make of the first what is made of it, and of the next ones."""


async def run_until_signalled(
    request: SessionRequest,
    limits: Limits,
    environment: dict[str, str],
    on_event: OnEvent | None = None,
    keep: Keep = True,
) -> SessionResult:
    """Run one session; SIGINT, SIGTERM and SIGHUP cancel it, the result is `cancelled` then."""
    order = Order(request, environment=environment, limits=limits, on_event=on_event, keep=keep)
    async with cancelling_on_signals(order.stop):
        return await run_attempt(order)


@asynccontextmanager
async def cancelling_on_signals(stop: Cancellable) -> AsyncIterator[None]:
    """Within, each of SIGINT, SIGTERM and SIGHUP goes to `stop`: a session is cancelled, and killed by the second.

    A signal that this process was started to ignore (as under nohup) stays ignored; one that is blocked is heard.
    """
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        await tasks.start(_forward, stop)
        try:
            yield
        except Exception as raised:  # noqa: BLE001 - raised again as it is: the group would wrap it
            failure = raised
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _forward(stop: Cancellable, *, task_status: TaskStatus[None]) -> None:
    heeded = heeded_signals()
    if not heeded:
        task_status.started()
        return
    signal.pthread_sigmask(signal.SIG_UNBLOCK, heeded)  # who started this process may have had them blocked
    with anyio.open_signal_receiver(*heeded) as received:
        task_status.started()
        async for number in received:
            stop.cancel(number.name)


def heeded_signals() -> list[signal.Signals]:
    """The cancelling signals that this process was not started to ignore."""
    numbers = [signal.Signals[name] for name in CANCEL_SIGNALS]
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
