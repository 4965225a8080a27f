"""The caller's `on_event`: told in order, and the only foreign code in the host."""

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any

import anyio

from agentcell.cancellation import is_cancelled
from agentcell.errors import CallbackCancelledError
from agentcell_protocol.events import Detail, is_wanted
from agentcell_protocol.summary import summarized

OnEvent = Callable[[dict[str, Any]], Awaitable[object] | object]
"""Called with each event, a plain dict. What it raises ends the session and is then raised to the caller."""


class Listener:
    """Passes events on until it is closed or its callback fails; `failure` is then what the callback raised."""

    def __init__(self, on_event: OnEvent | None, detail: Detail) -> None:
        self.failure: BaseException | None = None
        self.is_open = on_event is not None
        self._on_event = on_event
        self._detail = detail
        self._delivery: anyio.CancelScope | None = None

    def tell(self, event: dict[str, Any]) -> Awaitable[None] | None:
        """Have the callback take the event, if it is one the caller wants; what is left to be awaited of that."""
        if self._on_event is None or not self._is_wanted(event):
            return None
        try:
            is_long = self._detail != "full" and event["type"] == "tool_use"
            taken = self._on_event(dict(summarized(event)) if is_long else event)
            return self._finish(taken) if taken is not None and isawaitable(taken) else None
        except BaseException as failure:  # noqa: BLE001 - foreign code; raised again once the cell is gone
            self._fail(failure)
            return None

    async def _finish(self, taken: Awaitable[object]) -> None:
        try:
            with anyio.CancelScope() as self._delivery:
                await taken
        except BaseException as failure:  # noqa: BLE001 - as above
            self._fail(failure)

    def _fail(self, failure: BaseException) -> None:
        if isinstance(failure, anyio.get_cancelled_exc_class()):
            if is_cancelled():
                raise failure
            cancelled, failure = failure, CallbackCancelledError()
            failure.__cause__ = cancelled
        self.failure = failure
        self.close()

    def _is_wanted(self, event: dict[str, Any]) -> bool:
        """Not what only proves to the host that the model works."""
        kind = event["type"]
        is_sign_of_life = kind == "text_delta" and not event.get("text")
        return not is_sign_of_life and is_wanted(kind, self._detail)

    def close(self) -> None:
        """Deliver nothing more; a callback that still waits is cancelled."""
        self._on_event, self.is_open = None, False
        if self._delivery is not None:
            self._delivery.cancel()
