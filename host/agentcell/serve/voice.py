"""What one run has to say, under its id."""

from collections.abc import Awaitable, Mapping
from typing import Any

from agentcell.outlet import Outlet
from agentcell_protocol.result import SessionResult
from agentcell_protocol.serving import of_run, thinned


class Voice:
    """Writes the lines of a run. An event that there is no room for is dropped, and told of with the next line."""

    def __init__(self, run_id: str, outlet: Outlet) -> None:
        self._id = run_id
        self._outlet = outlet
        self._dropped = 0

    def tell(self, event: Mapping[str, Any]) -> Awaitable[None] | None:
        """Write an event of the run; what is left to be awaited of that."""
        message = of_run(event, self._id)
        if self._outlet.has_room:
            self._write(message)
            return None
        self._dropped += 1  # unless there will be room: who waits may be cancelled
        return self._write_when_there_is_room(message)

    def end(self, result: SessionResult) -> None:
        """Write its result."""
        self._write({**result.to_message(), "id": self._id}, result_of=self._id)

    async def _write_when_there_is_room(self, message: Mapping[str, Any]) -> None:
        if await self._outlet.room():
            self._dropped -= 1
            self._write(message)

    def _write(self, message: Mapping[str, Any], *, result_of: str | None = None) -> None:
        if self._dropped:
            self._outlet.put(thinned(self._id, self._dropped))
            self._dropped = 0
        self._outlet.put(message, result_of=result_of)
