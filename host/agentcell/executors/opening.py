"""Waiting for an executor to open, for as long as somebody wants it."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from agentcell.errors import ExecutorError

T = TypeVar("T")


async def unless(over: Callable[[], Awaitable[object]], opening: Callable[[], Awaitable[T]]) -> T | None:
    """What the opening gives; None when `over` returned first, and it was cancelled. Raises its ExecutorError."""
    opened: T | None = None
    failure: ExecutorError | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_cancel_when, over, tasks.cancel_scope)
        try:
            opened = await opening()
        except ExecutorError as raised:  # raised again as it is: the group would wrap it
            failure = raised
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return opened


async def _cancel_when(over: Callable[[], Awaitable[object]], scope: anyio.CancelScope) -> None:
    await over()
    scope.cancel()
