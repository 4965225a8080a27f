"""From an order as it came to a node to its result: whatever is wrong with it is a result, too."""

import platform
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from errno import ENOENT
from functools import partial
from typing import Any

import anyio
from pydantic import ValidationError

from agentcell.attempt import not_started, spawn_failed
from agentcell.executors.executor import Executor
from agentcell.executors.keeper.attempts import Attempt
from agentcell.executors.keeper.headroom import Headroom, NoHeadroomError
from agentcell.executors.paths import SHARE, directories, missing
from agentcell.executors.wire import unpacked
from agentcell.listener import OnEvent
from agentcell.orders import Order
from agentcell.reap import in_thread
from agentcell.result_file import put_into, write_result_file
from agentcell.stop import Stop
from agentcell_protocol.errors import Category, RequestError, SessionError, internal_error, session_error
from agentcell_protocol.request import SessionRequest
from agentcell_protocol.result import SessionResult, failed, names_in, refused

SAME_VERSION = "install the same version of agentcell on every node"
"""What to do about a line that this version cannot read."""

Tell = Callable[[dict[str, Any]], Awaitable[None] | None]


class Making:
    """Makes attempts by an executor, each as soon as there is room for it."""

    def __init__(self, executor: Executor, headroom: Headroom) -> None:
        self._executor = executor
        self._headroom = headroom

    async def result(self, marker: str, packed: dict[str, Any], attempt: Attempt, tell: Tell) -> SessionResult:
        """How the attempt at this order (as `wire.packed` makes it) ended."""
        names = names_in(packed["request"]) if isinstance(packed.get("request"), dict) else {}
        try:
            # beside the loop: a file system that is on another machine may not answer
            order = await in_thread(partial(opened, marker, packed, tell, attempt.stop))
            return await self._made(order, attempt) if isinstance(order, Order) else order
        except RequestError as mistake:
            return refused(mistake, names)
        except Exception as mistake:  # noqa: BLE001 - ours, and the other attempts of this node go on
            traceback.print_exc()
            return failed(internal_error(mistake), **names)

    async def _made(self, order: Order, attempt: Attempt) -> SessionResult:
        try:
            async with self._headroom.entered(order.stop) as started:
                attempt.began = anyio.current_time()
                attempted = await self._executor.attempt(replace(order, on_event=_noticing(order.on_event, started)))
        except NoHeadroomError as problem:
            return await write_result_file(order.request, spawn_failed(order.request, problem))
        return attempted.result


def opened(marker: str, packed: dict[str, Any], tell: Tell, stop: Stop) -> Order | SessionResult:
    """The order, or the result where this node has not the places that it names. Raises RequestError. Blocks."""
    try:
        request = SessionRequest.model_validate(packed["request"])
        if (error := _missing_place(packed)) is not None:
            result = not_started(request, error)
            return result if request.result_file is None else put_into(request.result_file, result)
        return unpacked(marker, packed, on_event=tell, stop=stop)
    except RequestError:
        raise
    except (KeyError, TypeError, ValueError) as mistake:
        reason = f"the order cannot be read: {_told(mistake)}"
        raise RequestError(None, reason, SAME_VERSION) from None


def _missing_place(packed: Mapping[str, Any]) -> SessionError | None:
    for member, directory in directories(packed):
        if missing([directory]):
            node = platform.node()
            message = f"{member}: the directory {directory} is not there on node {node}"
            return session_error(Category.SPAWN_FAILED, message, hint=SHARE, errno=ENOENT, path=directory, node=node)
    return None


def _told(mistake: Exception) -> str:
    """What is wrong; of a request only where, since what stands there may be a secret."""
    if not isinstance(mistake, ValidationError):
        return repr(mistake)
    return "; ".join(f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in mistake.errors())


def _noticing(on_event: OnEvent | None, started: Callable[[], object] | None) -> OnEvent | None:
    """The listener, which also tells that the session has started, if that is waited for."""
    if started is None:
        return on_event

    def hear(event: dict[str, Any]) -> object:
        if event["type"] == "session_started":
            started()
        return None if on_event is None else on_event(event)

    return hear
