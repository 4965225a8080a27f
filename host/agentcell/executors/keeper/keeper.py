"""The loop: connections become attempts, and stdin says who is still wanted, until nobody is."""

import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass

import anyio

from agentcell import memory
from agentcell.executors.keeper.attempts import Attempts
from agentcell.executors.keeper.control import Control
from agentcell.executors.keeper.desk import Desk
from agentcell.executors.keeper.ending import Ending, Lease
from agentcell.executors.keeper.headroom import PATIENCE_SECONDS, Headroom
from agentcell.executors.keeper.listening import accept, listening
from agentcell.executors.local import LocalExecutor
from agentcell.executors.wire import LEASE_SECONDS, READY
from agentcell.inlet import hear
from agentcell.lifeline import watch_death
from agentcell.outlet import Outlet
from agentcell.spawn import WORKER
from agentcell.standard import STDIN, STDOUT
from agentcell_protocol.version import __version__

LAST_LINES_SECONDS = 2.0
"""For the results of what was ended to be taken, by whoever is still there."""


@dataclass(frozen=True, slots=True)
class KeeperSettings:
    """Whose keeper it is (the process `starter`), and how cells start on its node."""

    starter: int
    _: KW_ONLY
    lease_seconds: float = LEASE_SECONDS
    min_free_mb: float = 0.0
    patience_seconds: float = PATIENCE_SECONDS
    max_starts: int | None = None
    worker_command: Sequence[str] = WORKER
    stdin: int = STDIN
    stdout: int = STDOUT


class Keeper:
    """Makes attempts until its `ending` begins; then it ends them. To be made inside a loop."""

    def __init__(
        self, settings: KeeperSettings, ending: Ending, *, free_mb: Callable[[], float] = memory.free_mb
    ) -> None:
        self._settings = settings
        self._ending = ending
        self._attempts = Attempts()
        self._headroom = Headroom(
            settings.min_free_mb,
            at_once=settings.max_starts,
            free_mb=free_mb,
            patience_seconds=settings.patience_seconds,
        )
        self._outlet = Outlet(settings.stdout)
        self._lease = Lease(settings.lease_seconds)

    async def run(self) -> None:
        """All of it, once; nothing that it began is left afterwards."""
        settings = self._settings
        local = LocalExecutor(max_starts=settings.max_starts, worker_command=settings.worker_command)
        with listening() as (listener, address):
            async with local, anyio.create_task_group() as tasks:
                control = Control(local, self._attempts, self._lease, self._outlet, tasks)
                for work in (self._outlet.run, self._mind_starter, self._mind_lease):
                    tasks.start_soon(work)
                tasks.start_soon(self._hear, control)
                tasks.start_soon(self._headroom.watch, self._attempts.make_room)
                self._outlet.put({"type": READY, "address": address, "pid": os.getpid(), "version": __version__})
                await self._serve(listener, Desk(local, self._attempts, self._headroom))
                tasks.cancel_scope.cancel()

    async def _serve(self, listener: socket.socket, desk: Desk) -> None:
        """Serve whoever connects; at the end, see that every attempt has its own."""
        async with anyio.create_task_group() as connections:
            async with anyio.create_task_group() as accepting:
                accepting.start_soon(accept, listener, connections, desk.serve)
                await self._ending.begun.wait()
                accepting.cancel_scope.cancel()
            await self._attempts.end(self._ending.hurried)
            connections.cancel_scope.deadline = anyio.current_time() + LAST_LINES_SECONDS

    async def _hear(self, control: Control) -> None:
        await hear(self._settings.stdin, control.take, lambda: None)
        self._ending.begin()

    async def _mind_starter(self) -> None:
        with anyio.CancelScope() as lifetime:
            await watch_death(self._settings.starter, lifetime)
        if lifetime.cancel_called:
            self._ending.begin()

    async def _mind_lease(self) -> None:
        await self._lease.end()
        self._ending.begin()
