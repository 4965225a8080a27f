"""A batch from its first row to its last: all that time nothing else writes its journal and its results."""

import random
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from agentcell import memory
from agentcell.attempts import Tried
from agentcell.batch import ending, phrases
from agentcell.batch.admission import Admission, Closing, Hold
from agentcell.batch.directory import RunDirectory
from agentcell.batch.ending import BatchEnd
from agentcell.batch.flights import EventLog, Flight, Flights
from agentcell.batch.history import ItemHistory
from agentcell.batch.interruption import CANCEL, DRAIN, KILL, Interruption
from agentcell.batch.items import Again, Cut, Item, is_another, is_spent, plan, verdict
from agentcell.batch.ledger import Ledger
from agentcell.batch.machine import had_to_make_room
from agentcell.batch.recovery import last_result
from agentcell.batch.rows import Problem, Row
from agentcell.batch.settings import Settings
from agentcell.batch.sources import Source
from agentcell.batch.tally import Tally
from agentcell.batch.telling import OnChange, OnResult, Telling
from agentcell.host import Host
from agentcell.orders import Order
from agentcell.reap import in_thread
from agentcell.result_file import write_result_file
from agentcell.retry import RetryPolicy
from agentcell_protocol.errors import Category
from agentcell_protocol.masking import Mask
from agentcell_protocol.result import SessionResult

if TYPE_CHECKING:
    from agentcell.executors.executor import Executor


class Batch:
    """The rows of a source that have not finished, each run until it has its result or nothing is admitted any more.

    `on_change` gets a snapshot whenever something changed, `on_result` each result once it is on the disk. What one of
    them raises ends the batch and is then raised; rows that were cut by it are pending. Every row's own failure is a
    result, and what ends the batch from outside an end.
    """

    def __init__(
        self,
        source: Source,
        host: Host,
        run: RunDirectory,
        settings: Settings,
        *,
        tally: Tally,
        interruption: Interruption,
        executor: "Executor | None" = None,
        on_change: OnChange | None = None,
        on_result: OnResult | None = None,
        free_mb: Callable[[], float] = memory.free_mb,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._host = host
        self._run = run
        self._settings = settings
        self._tally = tally
        self._interruption = interruption
        self._executor = executor
        self._free_mb = free_mb
        self._chance = chance
        self._policy = RetryPolicy(max_attempts=settings.retries + 1)
        self._admission = Admission(source, settings, self._tally, on_hold=self._held, free_mb=free_mb)
        self._flights = Flights()
        self._ledger = Ledger(run, self._cannot_write)
        self._telling = Telling(self._tally, on_change, on_result, self._has_raised)
        self._refused = self._unfit = 0
        self._failure: BaseException | None = None

    async def run(self) -> BatchEnd:
        """All of it, once."""
        if self._interruption.reason is not None:
            self._drain()
        async with anyio.create_task_group() as tasks:
            for watch in (self._fetch, self._heed, self._telling.watch):
                tasks.start_soon(watch)
            tasks.start_soon(memory.watch, self._free_mb, self._settings.min_free_mb, self._flights.make_room)
            async with self._host.perform(self._orders(), executor=self._executor) as answers:
                async for order, result in answers:
                    await self._settle(order.tag, result)
            tasks.cancel_scope.cancel()
        await self._ledger.closed(self._end().reason)
        if self._failure is not None:
            raise self._failure
        return self._end()

    # what goes in

    async def _orders(self) -> AsyncIterator[Order]:
        while (found := await self._admission.next()) is not None:
            if (order := await self._order(found)) is None:
                self._admission.done_with()
            else:
                yield order

    async def _order(self, found: Item | Row | Problem) -> Order | None:
        """The order for what was given out, if it is to be run now."""
        match found:
            case Item():
                return await self._begin(found)
            case Row():
                return await self._begin_row(found)
            case Problem():
                await self._record(found)
        return None

    async def _record(self, problem: Problem) -> None:
        """A line that is no row has its result, too."""
        if (before := self._run.results.index.get(problem.id)) is not None:
            self._tally.finished_before(before.status, before.category)
            was_row = before.category != Category.BAD_REQUEST
            self._unfit += was_row and is_another(problem.digest, before.digest)
        else:
            await self._finish(problem.id, problem.digest, problem.number, problem.as_result())

    async def _begin_row(self, row: Row) -> Order | None:
        """The order for a row that is new to this run."""
        history, settings = self._run.history.of(row.id), self._settings
        if history is None:
            return await self._begin(Item(row))
        match plan(row.digest, history, retry_failed=settings.retry_failed, rerun_changed=settings.rerun_changed):
            case "refused":
                self._refused += 1
            case "finished":
                self._tally.finished_before(history.status or "error", history.category)
            case "again" | "changed":
                await self._ledger.reopened(row.id)
                return await self._begin(Item(row, last_attempt=history.last_attempt))
            case "new" | "goes on":
                return await self._go_on(Item.of(row, history), history)
        return None

    async def _go_on(self, item: Item, history: ItemHistory) -> Order | None:
        """The order for a row that a former run has not finished, unless all that was left to do was to finish it."""
        now = time.time()
        if is_spent(item, self._policy, now=now):
            result = await in_thread(partial(last_result, self._run, history))
            if result is not None:
                await self._finish_row(item.row, result)
                return None
        if item.due > now:
            self._admission.put_back(item)
            return None
        return await self._begin(item)

    async def _begin(self, item: Item) -> Order | None:
        """The order for the next attempt; that it is made is on the disk by then."""
        flight, environment = Flight.of(item, time.time()), self._settings.environment
        if (folder := await self._ledger.began(flight, environment)) is None:
            return None
        self._tally.started(flight.id, flight.number, flight.began, is_retry=bool(flight.item.past))
        self._flights.add(flight)
        self._telling.stir()
        log = EventLog(folder, Mask(environment, flight.request.env or {}), partial(self._heard, flight.id))
        return flight.order(folder, environment, self._run.keep_root(flight.id).absolute(), log)

    def _heard(self, row_id: str, event: Mapping[str, Any]) -> None:
        self._tally.heard(row_id, event)
        self._telling.stir()

    # what comes out

    async def _settle(self, flight: Flight, result: SessionResult) -> None:
        """What becomes of the row; all of it is on the disk before it counts."""
        self._flights.remove(flight)
        now, item, row = time.time(), flight.item, flight.item.row
        tried = Tried.of(result, flight.number, flight.mode)
        cut = flight.cut or ("memory" if had_to_make_room(result.error) else None)
        becomes = verdict(item, tried, result, cut, self._policy, now=now, chance=self._chance())
        self._tally.ended(row.id, result.usage, result.cost_usd)
        self._admission.learn(row.request, result.error, began=flight.began)
        if isinstance(becomes, Again):
            item = item.after(replace(tried, is_counted=becomes.is_counted), now + becomes.delay, cut)
            await self._ledger.ended(row.id, item.past[-1], now, item.due)
            self._admission.put_back(item)
        else:
            await self._finish_row(row, becomes.result)
            await self._ledger.ended(row.id, tried, now, None)
        self._admission.done_with()
        self._telling.stir()

    async def _finish_row(self, row: Row, result: SessionResult) -> None:
        await self._finish(row.id, row.digest, row.number, await write_result_file(row.request, result))

    async def _finish(self, row_id: str, digest: str | None, line: int, result: SessionResult) -> None:
        """Put the result where it stays, and only then say so."""
        if await self._ledger.finished(row_id, digest, line, result):
            self._tally.has_finished(row_id, result, time.time())
            self._telling.stir()
            await self._telling.result(result)

    # what goes on meanwhile

    async def _fetch(self) -> None:
        try:
            await self._admission.fetch()
        except OSError as unreadable:
            self._abort(f"the rows cannot be read any further: {unreadable.strerror}")

    async def _heed(self) -> None:
        """Do as whoever interrupts says: once, twice, three times."""
        interruption = self._interruption
        await interruption.reached(DRAIN)
        self._drain()
        self._say(phrases.draining(interruption.reason, self._settings.grace_seconds))
        with anyio.move_on_after(self._settings.grace_seconds):
            await interruption.reached(CANCEL)
        self._say(phrases.cancelling(interruption.reason))
        self._end_all("interrupted")
        await interruption.reached(KILL)
        self._flights.kill_all()

    def _say(self, why: str) -> None:
        """Why nothing is admitted: to who watches, and not to the journal, which has the end."""
        self._tally.paused(why)
        self._telling.stir()

    def _drain(self) -> None:
        self._admission.close(Closing("interrupted", f"interrupted by {self._interruption.reason}"))

    async def _held(self, hold: Hold | None) -> None:
        if hold is None:
            self._tally.paused(None)
        else:
            self._tally.paused(hold.reason, hold.until)
        await self._ledger.held(hold)
        self._telling.stir()

    # what ends it

    def _cannot_write(self, problem: OSError) -> None:
        self._abort(f"{self._run.path} cannot be written: {problem.strerror}")

    def _has_raised(self, failure: BaseException) -> None:
        self._failure = failure
        self._abort(str(failure))

    def _abort(self, sentence: str) -> None:
        """End the batch for a mistake that is no row's."""
        self._admission.close(Closing("aborted", sentence))
        self._end_all("aborted")

    def _end_all(self, cut: Cut) -> None:
        self._telling.hurry()
        self._flights.end_all(cut, self._interruption.reason or "SIGTERM")

    def _end(self) -> BatchEnd:
        snapshot, changed = self._tally.snapshot(time.time()), phrases.changed(self._refused, self._unfit)
        closing = self._admission.closing
        if closing is None or (self._admission.is_complete and closing.kind != "aborted"):
            return ending.finished(snapshot, changed)
        return ending.closed(snapshot, closing, changed, signal=self._interruption.reason)
