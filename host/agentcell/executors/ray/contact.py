"""A node as the bridge talks to it: through its actor, and not at all once that cannot be."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio

from agentcell.executors.wire import ALIVE, CANCEL, END_SECONDS, gone_seconds, line

ANSWER_SECONDS = 60.0
"""For an actor, which may just be starting its keeper, to answer."""

SETTLE_SECONDS = 90.0
"""For an actor to say that nothing is left: longer than it waits for its keeper, which it may have to start."""

ALIVES_PER_LEASE = 6
"""How often it is said within a lease that somebody is there: several may be late."""

TRIES = 2
"""A node's actor is asked, and when that does not answer, a new one."""


NO_IMPORT = re.compile("No module named|cannot import name")
"""What Ray says of a node on which agentcell, or this version of it, is not installed: what Python said there."""


class UnreachableError(Exception):
    """The node's actor does not answer, or answers that something went wrong; it `has_died` where that is known.

    It `is_for_good` where there can be no actor, as agentcell is not installed there.
    """

    def __init__(self, cause: Exception, *, has_died: bool = False) -> None:
        self.has_died = has_died
        self.is_for_good = NO_IMPORT.search(str(cause)) is not None
        self.cause = cause
        super().__init__(f"{type(cause).__name__}: {cause}")


class Contact:
    """A node. `make` makes an actor there in the place of another one, and gives None where the node is no more.

    Once it `is_given_up` nothing is said to its keeper any more, which then ends everything by itself.
    """

    def __init__(self, actor: Any, make: Callable[[Any], Awaitable[Any]], *, lease_seconds: float) -> None:
        self.is_given_up = False
        self.is_ready = False
        """Whether it has its keeper, and nothing of a former run."""
        self._actor = actor
        self._make = make
        self._lease_seconds = lease_seconds
        self._over_at = 0.0
        self._making = anyio.Lock()
        self._settling = anyio.Lock()
        self._markers: set[str] = set()

    @property
    def is_over(self) -> bool:
        """Whether it is given up, and its keeper has ended by now."""
        return self.is_given_up and anyio.current_time() >= self._over_at

    async def look(self, directories: Sequence[str]) -> dict[str, Any]:
        """What the node is. Raises UnreachableError."""
        seen: dict[str, Any] = await self._ask_anew("look", list(directories))
        return seen

    async def prepare(self, left: Sequence[str]) -> None:
        """Have a keeper there, and end what is `left` of a former run. Raises UnreachableError."""
        await self._ask_anew("address")
        if left:
            await self._ask_anew("settle", list(left), seconds=SETTLE_SECONDS)
        self.is_ready = True

    async def keep_alive(self) -> None:
        """Tell its keeper that somebody is there; an actor that is gone is made anew."""
        actor = self._actor
        try:
            await self._ask(actor, "say", line(ALIVE), seconds=self._lease_seconds / ALIVES_PER_LEASE)
        except UnreachableError as failure:
            if failure.has_died and not failure.is_for_good:
                await self._renew(actor)

    async def cancel(self, marker: str, reason: str) -> None:
        """Have the attempt cancelled; one that cannot be reached is lost anyway."""
        try:
            await self._ask(self._actor, "say", line(CANCEL, marker=marker, reason=reason))
        except UnreachableError:
            return

    async def settle(self, markers: Sequence[str]) -> int:
        """End what is left of these; how many processes were. Nothing is left when it returns, whatever the node does.

        Those that come while others are being settled are settled together.
        """
        self._markers |= set(markers)
        async with self._settling:
            together, self._markers = sorted(self._markers), set()
            return await self._settle(together) if together else 0

    def begin_giving_up(self) -> None:
        """Leave its keeper alone from now on."""
        if not self.is_given_up:
            self.is_given_up = True
            self._over_at = anyio.current_time() + gone_seconds(self._lease_seconds)

    async def begin_again(self) -> None:
        """Make another actor on a node that was given up, now that its keeper has ended; it may not be possible yet."""
        async with self._making:
            if self.is_given_up and (made := await self._make(self._actor)) is not None:
                self._actor, self.is_given_up, self.is_ready = made, False, False

    async def close(self) -> None:
        """End its keeper, and all that this has started."""
        try:
            await self._ask(self._actor, "close", seconds=END_SECONDS)
        except UnreachableError:
            return

    async def _settle(self, markers: list[str]) -> int:
        for _ in range(TRIES):
            if self.is_given_up:
                break
            actor = self._actor
            try:
                return int(await self._ask(actor, "settle", markers, seconds=SETTLE_SECONDS))
            except UnreachableError:
                await self._renew(actor)
        await self._give_up()
        return 0

    async def _renew(self, actor: Any) -> None:
        """Make another one in its place, unless that was done; where that cannot be, the node is given up."""
        async with self._making:
            if self._actor is not actor or self.is_given_up:
                return
            made = await self._make(actor)
            if made is None:
                self.begin_giving_up()
            else:
                self._actor = made

    async def _give_up(self) -> None:
        """Wait until its keeper has ended by itself."""
        self.begin_giving_up()
        await anyio.sleep_until(self._over_at)

    async def _ask_anew(self, method: str, *arguments: Any, seconds: float = ANSWER_SECONDS) -> Any:
        """Ask its actor, and another one if that has died."""
        actor = self._actor
        try:
            return await self._ask(actor, method, *arguments, seconds=seconds)
        except UnreachableError as failure:
            if failure.is_for_good or not failure.has_died:
                raise
        await self._renew(actor)
        return await self._ask(self._actor, method, *arguments, seconds=seconds)

    async def _ask(self, actor: Any, method: str, *arguments: Any, seconds: float = ANSWER_SECONDS) -> Any:
        from ray.exceptions import ActorDiedError, ActorUnschedulableError, RayError

        try:
            with anyio.fail_after(seconds):
                return await getattr(actor, method).remote(*arguments)
        except (RayError, TimeoutError) as failure:
            has_died = isinstance(failure, ActorDiedError | ActorUnschedulableError)
            raise UnreachableError(failure, has_died=has_died) from failure
