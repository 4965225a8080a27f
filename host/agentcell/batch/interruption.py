"""The end of a batch, asked for from outside: politely, then firmly, then at once."""

import anyio

DRAIN, CANCEL, KILL = 1, 2, 3
"""How often somebody has asked: nothing more is begun; what runs is cancelled; what runs is killed."""


class Interruption:
    """Set by a signal handler or a command. `reason` is the name of the first signal; None until then."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self._levels = [anyio.Event() for _ in range(KILL)]

    def cancel(self, reason: str = "SIGTERM") -> None:
        """Ask for the end; the reason of the first call counts."""
        self.reason = self.reason or reason
        for level in self._levels:
            if not level.is_set():
                level.set()
                return

    async def reached(self, level: int) -> None:
        """Wait until it was asked for that often."""
        await self._levels[level - 1].wait()
