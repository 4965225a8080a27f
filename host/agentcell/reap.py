"""Ending a cell: its worker first, in its own way if it can, then whatever is left of it, until it is gone."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from signal import SIGKILL, SIGTERM
from typing import TypeVar

import anyio
import psutil

from agentcell.spawn import Child
from agentcell_protocol import cell

GRACE_SECONDS = cell.TERM_SECONDS + cell.KILL_SECONDS + 1.0
"""From SIGTERM to SIGKILL of a worker: it ends its CLI and sweeps its strays in that time, and writes its result."""

T = TypeVar("T")


async def end_worker(child: Child, exited: anyio.Event, forced: anyio.Event) -> list[psutil.Process]:
    """Have the worker end itself, kill it after `GRACE_SECONDS` or when `forced`; what was below it when it was killed.

    Returns at the latest `GRACE_SECONDS + KILL_SECONDS` later, whether it is gone or not. To be shielded.
    """
    child.send(SIGTERM)
    with anyio.move_on_after(GRACE_SECONDS):
        await first_of(exited, forced)
    if exited.is_set():
        return []
    below = await in_thread(partial(_below, child.pid)) if child.pid is not None else []
    child.send(SIGKILL)
    with anyio.move_on_after(cell.KILL_SECONDS):
        await exited.wait()
    return below


async def sweep(
    child: Child,
    marker: str,
    below: Callable[[], Iterable[psutil.Process]],
    forced: anyio.Event,
    *,
    afterwards: Callable[[], object],
) -> int:
    """End what an ended child left: whatever its starter knows of, carries the marker or is `below`; how many.

    Where the kernel has told the starter that none of its descendants is left, the marker is looked for once, in what
    others may have started for it; otherwise twice. At once when `forced`. Bounded; to be shielded. `afterwards` is
    done when nothing is left, beside the loop, too.
    """
    async with anyio.create_task_group() as tasks:
        if not child.is_swept:
            tasks.start_soon(_hurry, child, forced)
        swept = await child.swept()
        tasks.cancel_scope.cancel()

    def find() -> list[psutil.Process]:
        return list({*cell.marked(marker), *filter(cell.is_alive, below())})

    term_seconds = 0.0 if forced.is_set() else cell.TERM_SECONDS
    clear_looks = 1 if child.is_clear else cell.CLEAR_LOOKS

    def finish() -> int:
        ended = cell.end(find, term_seconds=term_seconds, clear_looks=clear_looks)
        afterwards()
        return ended

    return swept + await in_thread(finish)


def _below(pid: int) -> list[psutil.Process]:
    with suppress(OSError):  # without a descriptor left: what was seen before, and the marker, have to do
        return cell.descendants(pid)
    return []


async def _hurry(child: Child, forced: anyio.Event) -> None:
    await forced.wait()
    child.hurry()


async def first_of(*events: anyio.Event) -> None:
    """Wait until one of the events is set."""
    async with anyio.create_task_group() as tasks:
        for event in events:
            tasks.start_soon(_cancel_after, event, tasks.cancel_scope)


async def _cancel_after(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


async def in_thread(function: Callable[[], T]) -> T:
    """Run it beside the loop, with a limiter of its own: a busy program's threads must not delay an end.

    On a machine that has no thread left it runs in the loop: what ends a cell, or is to be on the disk, still must.
    """
    has_begun = False

    def run() -> T:
        nonlocal has_begun
        has_begun = True
        return function()

    try:
        return await anyio.to_thread.run_sync(run, limiter=anyio.CapacityLimiter(1))
    except RuntimeError:
        if has_begun:
            raise
        return function()
