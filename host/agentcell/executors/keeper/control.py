"""What a keeper is told through its stdin: who is still there, and which attempts are to end."""

from collections.abc import Sequence
from typing import Any

from anyio.abc import TaskGroup

from agentcell.executors.executor import Executor
from agentcell.executors.keeper.attempts import Attempts
from agentcell.executors.keeper.ending import Lease
from agentcell.executors.wire import ALIVE, CANCEL, SETTLE, SETTLED
from agentcell.outlet import Outlet
from agentcell_protocol.codec import decode
from agentcell_protocol.errors import WireError
from agentcell_protocol.framing import Overlong


class Control:
    """Does what each line says; what takes time becomes a task, so that the next line is heard."""

    def __init__(self, executor: Executor, attempts: Attempts, lease: Lease, outlet: Outlet, tasks: TaskGroup) -> None:
        self._executor = executor
        self._attempts = attempts
        self._lease = lease
        self._outlet = outlet
        self._tasks = tasks

    def take(self, line: bytes | Overlong) -> None:
        """Do it; what is no message of ours is nobody's."""
        if isinstance(line, Overlong):
            return
        try:
            message = decode(line)
        except WireError:
            return
        self._do(message)

    def _do(self, message: dict[str, Any]) -> None:
        match message:
            case {"type": str(kind)} if kind == ALIVE:
                self._lease.renew()
            case {"type": str(kind), "marker": str(marker), "reason": str(reason)} if kind == CANCEL:
                self._attempts.cancel(marker, reason)
            case {"type": str(kind), "markers": list(markers)} if kind == SETTLE:
                self._tasks.start_soon(self._settle, [marker for marker in markers if isinstance(marker, str)])

    async def _settle(self, markers: Sequence[str]) -> None:
        await self._attempts.settle(markers)
        swept = await self._executor.sweep(markers)
        self._outlet.put({"type": SETTLED, "markers": list(markers), "swept": swept})
