"""The results of attempts that no node has told the end of."""

from errno import EHOSTUNREACH

from agentcell.attempt import cancelled, listener_failed, not_started
from agentcell.errors import ExecutorError
from agentcell.orders import Order
from agentcell.result_file import write_result_file
from agentcell_protocol.errors import Category, session_error
from agentcell_protocol.masking import Mask
from agentcell_protocol.result import SessionResult


def not_begun(order: Order) -> SessionResult:
    """It was cancelled before there was a node for it."""
    return not_started(order.request, cancelled(str(order.stop.reason)))


def no_room(order: Order, reason: str, remedy: str) -> SessionResult:
    """No node will ever have room for it."""
    return not_started(order.request, session_error(Category.SPAWN_FAILED, reason, hint=remedy))


def no_node(order: Order, failure: ExecutorError) -> SessionResult:
    """No node can be reached at the moment."""
    message = f"no node can be reached: {failure.reason}"
    error = session_error(Category.SPAWN_FAILED, message, hint=failure.remedy, errno=EHOSTUNREACH)
    return not_started(order.request, error)


async def given(order: Order, result: SessionResult, failure: BaseException | None) -> SessionResult:
    """The result as it is given, and put into its file, by the driver; `failure` is what `on_event` raised."""
    if failure is not None:
        result = listener_failed(result, failure)
    masked = result.masked(Mask(order.environment, order.request.env or {}))
    return await write_result_file(order.request, masked)
