"""When a keeper ends: nobody wants its attempts any more, or it was told to."""

import anyio

LAST_LOOK_SECONDS = 1.0
"""For what was said while this process, or its machine, stood still and the lease ran out."""


class Ending:
    """`begun` for whatever reason, and `hurried` when somebody asks a second time."""

    def __init__(self) -> None:
        self.begun = anyio.Event()
        self.hurried = anyio.Event()

    def begin(self) -> None:
        """Nobody is there any more."""
        self.begun.set()

    def cancel(self, _signal: str) -> None:
        """A signal has come."""
        (self.hurried if self.begun.is_set() else self.begun).set()


class Lease:
    """Runs out so many seconds after it was renewed last. To be made inside a loop."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = anyio.current_time() + seconds

    def renew(self) -> None:
        """Somebody is there."""
        self._until = anyio.current_time() + self._seconds

    @property
    def has_run_out(self) -> bool:
        """Whether nobody has renewed it in time."""
        return anyio.current_time() >= self._until

    async def end(self) -> None:
        """Wait until it has run out."""
        while True:
            await anyio.sleep_until(self._until)
            if self.has_run_out:
                await anyio.sleep(LAST_LOOK_SECONDS)
                if self.has_run_out:
                    return
