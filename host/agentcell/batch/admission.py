"""What goes next, and when: a row that is due again before a new one, and nothing while something is against it."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import inf
from typing import Literal

import anyio

from agentcell import memory
from agentcell.batch import account, caps, machine
from agentcell.batch.account import Account
from agentcell.batch.items import Item
from agentcell.batch.machine import MOST_TRIES, Shortage
from agentcell.batch.rows import Problem, Row
from agentcell.batch.settings import Settings
from agentcell.batch.sources import Source
from agentcell.batch.tally import Tally
from agentcell_protocol.errors import SessionError
from agentcell_protocol.request import SessionRequest

WAITING_ROWS = 100
"""Rows that wait for another attempt before no new ones are begun: all that is known of them is in memory."""

MEMORY_PATIENCE_SECONDS = 600.0
"""Without memory and without a cell of ours that could give some back: then somebody has to be told."""

TO_START = "raise the limits on processes and open files, make room on the disk, or run fewer sessions at a time (-j)"


@dataclass(frozen=True, slots=True)
class Hold:
    """Why nothing is admitted for the time being, and until when (Unix seconds), if that is known."""

    reason: str
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Closing:
    """Why nothing is admitted any more, in one sentence."""

    kind: Literal["interrupted", "account", "cap", "machine", "aborted"]
    sentence: str


class Admission:
    """The queue of a batch: it gives rows out one at a time, and some of them are put back."""

    def __init__(
        self,
        source: Source,
        settings: Settings,
        tally: Tally,
        *,
        on_hold: Callable[[Hold | None], Awaitable[object]],
        free_mb: Callable[[], float] = memory.free_mb,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.closing: Closing | None = None
        self._busy = 0
        self._account = Account()
        self._shortage = Shortage()
        self._is_exhausted = False
        self._source = source
        self._settings = settings
        self._tally = tally
        self._on_hold = on_hold
        self._clock = clock
        self._free_mb = free_mb
        self._waiting: list[Item] = []
        self._ahead: Row | Problem | None = None
        self._hold: Hold | None = None
        self._starved_at: float | None = None
        self._changed = anyio.Event()
        self._wanted = anyio.Event()

    @property
    def is_complete(self) -> bool:
        """Whether every row was given out and is done with."""
        return self._is_exhausted and self._ahead is None and not self._waiting and self._busy == 0

    async def fetch(self) -> None:
        """Have one row ready, as soon as there is one, until there are no more. Raises what the source raises."""
        while (found := await self._source.next()) is not None:
            self._wanted = anyio.Event()
            self._ahead = found
            self._stir()
            await self._wanted.wait()
        self._is_exhausted = True
        self._stir()

    async def next(self) -> Item | Row | Problem | None:
        """What goes next, as soon as it may; None when nothing will any more."""
        while self.closing is None and not self.is_complete:
            now, self._changed = self._clock(), anyio.Event()
            self._look_at_caps(now)
            hold = self._held(now) if self._has_ready(now) else None
            if hold != self._hold:
                self._hold = hold
                await self._on_hold(hold)
                continue  # meanwhile something else may be against it
            if self.closing is None and hold is None and (found := self._take(now)) is not None:
                self._busy += 1
                self._shortage = machine.after_start(self._shortage, now)
                return found
            await self._wait(now, hold)
        return None

    def put_back(self, item: Item) -> None:
        """A row that was given out, and is not yet done with, is to go again when it is due."""
        self._waiting.append(item)

    def done_with(self) -> None:
        """One that was given out needs no cell at the moment."""
        self._busy -= 1
        self._stir()

    def close(self, closing: Closing) -> None:
        """Give out nothing more; the first reason counts, but a mistake is never passed over."""
        if self.closing is None or (closing.kind == "aborted" and self.closing.kind != "aborted"):
            self.closing = closing
        self._stir()

    def learn(self, request: SessionRequest, error: SessionError | None, *, began: float) -> None:
        """What the end of a session says about all others."""
        now, patient = self._clock(), self._settings.waits_for_quota
        self._shortage = machine.after_session(self._shortage, error, started=began, now=now)
        self._account = account.after_session(
            self._account, request, error, started=began, now=now, waits_for_quota=patient
        )
        if self._account.closed is not None:
            self.close(Closing("account", self._account.closed))

    def _stir(self) -> None:
        """Something is different: look again."""
        self._changed.set()

    def _look_at_caps(self, now: float) -> None:
        tally = self._tally
        sentence = caps.reached(
            self._settings.caps, cost_usd=tally.cost_usd, failed=tally.failed, total=tally.total, now=now
        )
        if sentence is not None:
            self.close(Closing("cap", sentence))

    def _has_ready(self, now: float) -> bool:
        return any(item.due <= now for item in self._waiting) or self._may_take_new

    @property
    def _may_take_new(self) -> bool:
        return self._ahead is not None and len(self._waiting) < WAITING_ROWS

    def _held(self, now: float) -> Hold | None:
        """What is against another cell."""
        if self._account.is_paused(now):
            return Hold("the account's rate limit", self._account.opens_at)
        if self._shortage.tries >= MOST_TRIES and not self._busy:
            sentence = f"{self._shortage.sentence}, with no session of ours running"
            self.close(Closing("machine", f"{sentence}: {self._shortage.remedy or TO_START}"))
        if now < self._shortage.until:
            return Hold(self._shortage.sentence, self._shortage.until)
        least = self._settings.min_free_mb
        if least and not memory.has_room(self._free_mb(), least):
            self._starve(now)
            return Hold(f"less than {least:g} MB of memory are free")
        self._starved_at = None
        return None

    def _starve(self, now: float) -> None:
        if self._busy:
            self._starved_at = None
        elif self._starved_at is None:
            self._starved_at = now
        elif now - self._starved_at > MEMORY_PATIENCE_SECONDS:
            sentence = f"less than {self._settings.min_free_mb:g} MB of memory are free, and no session of ours has it"
            self.close(Closing("machine", f"{sentence}: end something else, or lower --min-free-mb"))

    def _take(self, now: float) -> Item | Row | Problem | None:
        due = min((item for item in self._waiting if item.due <= now), key=lambda item: item.due, default=None)
        if due is not None:
            self._waiting.remove(due)
            return due
        if not self._may_take_new:
            return None
        found, self._ahead = self._ahead, None
        self._wanted.set()
        return found

    async def _wait(self, now: float, hold: Hold | None) -> None:
        """Until something is different, a row is due, or what is against it may be over."""
        if hold is None:
            until = min((item.due for item in self._waiting), default=inf)
        else:
            until = hold.until or now + memory.LOOK_SECONDS
        seconds = min(until, self._settings.caps.deadline or inf) - now
        with anyio.move_on_after(max(seconds, 0.0)):
            await self._changed.wait()
