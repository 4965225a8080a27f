"""A batch from its first row to its last: all that time nothing else writes its journal and its results."""

import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from inspect import isawaitable
from typing import Any

import anyio

from agentcell.attempts import Tried
from agentcell.batch import ending, journal, memory
from agentcell.batch.account import after_error, after_success, has_its_own, is_the_accounts
from agentcell.batch.admission import MEMORY_LOOK_SECONDS, Admission, Closing, Hold
from agentcell.batch.boot import boot_id
from agentcell.batch.directory import RunDirectory
from agentcell.batch.ending import BatchEnd
from agentcell.batch.flights import EventLog, Flight, write_request
from agentcell.batch.interruption import CANCEL, DRAIN, KILL, Interruption
from agentcell.batch.items import TO_BE_RUN, Again, Cut, Finished, Item, plan, verdict
from agentcell.batch.rows import Problem, Row
from agentcell.batch.settings import Settings
from agentcell.batch.sources import Source
from agentcell.batch.tally import Snapshot, Tally
from agentcell.host import Host
from agentcell.orders import Order
from agentcell.reap import in_thread
from agentcell.result_file import write_result_file
from agentcell.retry import RetryPolicy
from agentcell_protocol.result import SessionResult

TICK_SECONDS = 1.0
"""Between two snapshots for whoever watches, where nothing changes but the time."""

TELL_SECONDS = 1.0
"""For a callback to take what it gets, once everything is to end: a reader may have stopped reading."""

REST_SECONDS = 0.1
"""Between two snapshots at least: nobody sees more, and each costs as much as there are cells."""

OnChange = Callable[[Snapshot], Awaitable[object] | object]
OnResult = Callable[[SessionResult], Awaitable[object] | object]


async def run_batch(
    source: Source,
    host: Host,
    run: RunDirectory,
    settings: Settings,
    *,
    tally: Tally | None = None,
    interruption: Interruption | None = None,
    on_change: OnChange | None = None,
    on_result: OnResult | None = None,
    free_mb: Callable[[], float] = memory.free_mb,
    chance: Callable[[], float] = random.random,
) -> BatchEnd:
    """Run the rows that have not finished, each until it has its result or nothing is admitted any more.

    `on_change` gets a snapshot whenever something changed, `on_result` each result once it is on the disk. What one of
    them raises ends the batch and is then raised; rows that were cut by it are pending. Every row's own failure is a
    result, and what ends the batch from outside an end.
    """
    batch = _Batch(
        source,
        host,
        run,
        settings,
        tally=tally or Tally(time.time()),
        interruption=interruption or Interruption(),
        on_change=on_change,
        on_result=on_result,
        free_mb=free_mb,
        chance=chance,
    )
    return await batch.run()


class _Batch:
    def __init__(
        self,
        source: Source,
        host: Host,
        run: RunDirectory,
        settings: Settings,
        *,
        tally: Tally,
        interruption: Interruption,
        on_change: OnChange | None,
        on_result: OnResult | None,
        free_mb: Callable[[], float],
        chance: Callable[[], float],
    ) -> None:
        self._host = host
        self._run = run
        self._settings = settings
        self._tally = tally
        self._interruption = interruption
        self._on_change = on_change
        self._on_result = on_result
        self._free_mb = free_mb
        self._chance = chance
        self._admission = Admission(source, settings, tally, on_hold=self._held, free_mb=free_mb)
        self._policy = RetryPolicy(max_attempts=settings.retries + 1)
        self._flights: dict[str, Flight] = {}
        self._refused: list[str] = []
        self._cut: Cut | None = None
        self._failure: BaseException | None = None
        self._unwritable: OSError | None = None
        self._results_turn = anyio.Lock()
        self._telling: set[anyio.CancelScope] = set()
        self._changed = anyio.Event()

    async def run(self) -> BatchEnd:
        """All of it."""
        async with anyio.create_task_group() as tasks:
            for watch in (self._fetch, self._heed, self._watch_memory, self._show):
                tasks.start_soon(watch)
            async with self._host.perform(self._orders()) as answers:
                async for order, result in answers:
                    await self._settle(order.tag, result)
            tasks.cancel_scope.cancel()
        end = self._end()
        await self._write(journal.closed(time.time(), reason=end.reason or "finished"))
        if self._failure is not None:
            raise self._failure
        return end

    # what goes in

    async def _orders(self) -> AsyncIterator[Order]:
        while (found := await self._admission.next()) is not None:
            if (order := await self._begin_one(found)) is None:
                self._admission.done_with()
            else:
                yield order

    async def _begin_one(self, found: Item | Row | Problem) -> Order | None:
        match found:
            case Item():
                return await self._begin(found)
            case Row():
                return await self._begin_row(found)
            case Problem():
                await self._record(found)
        return None

    async def _begin_row(self, row: Row) -> Order | None:
        """The order for a row that is new to this run, if it is to be run at all."""
        history = self._run.history.of(row.id)
        what = plan(
            row.digest,
            history,
            retry_failed=self._settings.retry_failed,
            rerun_changed=self._settings.rerun_changed,
        )
        if what == "refused":
            self._refused.append(row.id)
        if what == "finished" and history is not None:
            self._tally.finished_before(history.status or "error", history.category)
        if what not in TO_BE_RUN or row.id in self._flights:
            return None
        if what in {"again", "changed"}:
            await self._reopen(row.id)
        past = history.past if history is not None and what == "resumed" else ()
        last = 0 if history is None else history.last_attempt
        return await self._begin(Item(row, past, last))

    async def _begin(self, item: Item) -> Order | None:
        """The order for the next attempt; that it is made is on the disk by then."""
        flight = Flight.of(item, time.time())
        try:
            folder = (await in_thread(partial(self._run.folder, flight.id, flight.number))).absolute()
            await in_thread(partial(write_request, folder, flight.request, self._settings.environment))
        except OSError as problem:
            self._fail_to_write(problem)
            return None
        if not await self._write(self._started(flight)):
            return None
        self._flights[flight.id] = flight
        self._tally.started(flight.id, flight.number, flight.began)
        if self._cut is not None:
            flight.end(self._cut, self._interruption.reason or "SIGTERM")
        self._stir()
        log = EventLog(folder, partial(self._heard, flight.id))
        return flight.order(folder, self._settings.environment, self._run.keep_root(flight.id).absolute(), log)

    def _heard(self, row_id: str, event: Mapping[str, Any]) -> None:
        self._tally.heard(row_id, event)
        self._stir()

    async def _record(self, problem: Problem) -> None:
        """A line that is no row has its result, too."""
        if (before := self._run.results.index.get(problem.id)) is None:
            await self._finish(problem.id, problem.digest, problem.number, problem.as_result())
        else:
            self._tally.finished_before(before.status, before.category)

    # what comes out

    async def _settle(self, flight: Flight, result: SessionResult) -> None:
        """What becomes of the row; all of it is on the disk before it counts."""
        now, item, row = time.time(), flight.item, flight.item.row
        tried = Tried.of(result, flight.number, flight.mode)
        becomes = verdict(item, tried, result, flight.cut, self._policy, now=now, chance=self._chance())
        if isinstance(becomes, Again):
            tried = replace(tried, is_counted=becomes.is_counted)
        self._tally.ended(row.id, result.usage, result.cost_usd)
        self._learn(flight, result, now)
        if isinstance(becomes, Finished):
            final = await write_result_file(row.request, becomes.result)
            await self._finish(row.id, row.digest, row.number, final)
        due = now + becomes.delay if isinstance(becomes, Again) else None
        await self._write(journal.ended(now, id=row.id, tried=tried, retry_at=due))
        del self._flights[row.id]
        if due is None:
            self._admission.done_with()
        else:
            put_backs = item.put_backs + (flight.cut == "memory")
            self._admission.put_back(Item(row, (*item.past, tried), flight.number, due, put_backs))
        self._stir()

    async def _finish(self, row_id: str, digest: str | None, line: int, result: SessionResult) -> None:
        """Put the result where it stays, and only then say so."""
        if self._unwritable is not None:
            return
        try:
            async with self._results_turn:
                await self._run.results.add(row_id, digest, line, result)
        except OSError as problem:
            self._fail_to_write(problem)
            return
        self._tally.has_finished(row_id, result, time.time())
        self._stir()
        await self._call(self._on_result, result)

    async def _reopen(self, row_id: str) -> None:
        try:
            async with self._results_turn:
                await in_thread(partial(self._run.reopen, [row_id]))
        except OSError as problem:
            self._fail_to_write(problem)

    def _learn(self, flight: Flight, result: SessionResult, now: float) -> None:
        """What the end of a session says about the account."""
        account, request = self._admission.account, flight.item.row.request
        if result.error is None and not has_its_own(request):
            self._admission.account = after_success(account, started=flight.began)
        elif result.error is not None and is_the_accounts(result.error, request):
            patient = self._settings.waits_for_quota
            account = after_error(account, result.error, started=flight.began, now=now, waits_for_quota=patient)
            self._admission.account = account
            if account.closed is not None:
                self._admission.close(Closing("account", account.closed))

    # what goes on meanwhile

    async def _fetch(self) -> None:
        try:
            await self._admission.fetch()
        except OSError as unreadable:
            self._abort(unreadable)

    async def _heed(self) -> None:
        """Do as whoever interrupts says: once, twice, three times."""
        interruption = self._interruption
        await interruption.reached(DRAIN)
        self._admission.close(Closing("interrupted", f"interrupted by {interruption.reason}"))
        self._tally.paused(f"interrupted by {interruption.reason}: waiting for what runs")
        self._stir()
        with anyio.move_on_after(self._settings.grace_seconds):
            await interruption.reached(CANCEL)
        self._end_all("interrupted")
        await interruption.reached(KILL)
        for flight in self._flights.values():
            flight.stop.cancel()

    async def _watch_memory(self) -> None:
        """End the youngest cell while memory is scarce, one at a time."""
        least = self._settings.min_free_mb
        while least:
            await anyio.sleep(MEMORY_LOOK_SECONDS)
            flights = self._flights.values()
            if any(flight.cut == "memory" for flight in flights) or not memory.is_scarce(self._free_mb(), least):
                continue
            youngest = max(flights, key=lambda flight: flight.began, default=None)
            if youngest is not None:
                youngest.end("memory", "SIGTERM")

    async def _show(self) -> None:
        """Tell whoever watches, whenever something changed and every second."""
        while self._on_change is not None:
            self._changed = anyio.Event()
            await self._call(self._on_change, self._tally.snapshot(time.time()))
            await anyio.sleep(REST_SECONDS)
            with anyio.move_on_after(TICK_SECONDS - REST_SECONDS):
                await self._changed.wait()

    async def _held(self, hold: Hold | None) -> None:
        now = time.time()
        if hold is None:
            self._tally.paused(None)
            await self._write(journal.resumed(now))
        else:
            self._tally.paused(hold.reason, hold.until)
            await self._write(journal.paused(now, reason=hold.reason, until=hold.until))
        self._stir()

    # what ends it

    def _end_all(self, cut: Cut) -> None:
        self._cut = cut
        for scope in self._telling:
            scope.deadline = anyio.current_time() + TELL_SECONDS
        for flight in self._flights.values():
            flight.end(cut, self._interruption.reason or "SIGTERM")

    def _abort(self, failure: BaseException) -> None:
        """End the batch for a mistake that is no row's."""
        self._failure = self._failure or failure
        self._admission.close(Closing("aborted", str(failure)))
        self._end_all("aborted")

    def _fail_to_write(self, problem: OSError) -> None:
        """Nothing can be written down any more, so nothing may go on."""
        self._unwritable = self._unwritable or problem
        self._admission.close(Closing("aborted", f"{self._run.path} cannot be written: {problem.strerror}"))
        self._end_all("aborted")

    async def _call(self, callback: Callable[[Any], Awaitable[object] | object] | None, value: object) -> None:
        """Have the caller told; what it raises ends the batch."""
        if callback is None or self._failure is not None:
            return
        try:
            answer = callback(value)
            if isawaitable(answer):
                await self._while_it_may_last(answer)
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException as failure:  # noqa: BLE001 - foreign code; raised again once everything has ended
            self._abort(failure)

    async def _while_it_may_last(self, answer: Awaitable[object]) -> None:
        """Wait for a callback; once everything is to end, for no more than a moment."""
        with anyio.CancelScope() as scope:
            self._telling.add(scope)
            try:
                if self._cut is not None:
                    scope.deadline = anyio.current_time() + TELL_SECONDS
                await answer
            finally:
                self._telling.discard(scope)

    async def _write(self, message: journal.Message) -> bool:
        """Put a line into the journal; whether it is there."""
        if self._unwritable is not None:
            return False
        try:
            await self._run.journal.append(message)
        except OSError as problem:
            self._fail_to_write(problem)
            return False
        return True

    def _started(self, flight: Flight) -> journal.Message:
        return journal.started(
            flight.began,
            id=flight.id,
            digest=flight.item.row.digest,
            line=flight.item.row.number,
            attempt=flight.number,
            mode=flight.mode,
            session_id=flight.request.session_id or flight.request.resume,
            marker=flight.marker,
            host_pid=os.getpid(),
            boot_id=boot_id(),
        )

    def _stir(self) -> None:
        self._changed.set()

    def _end(self) -> BatchEnd:
        snapshot, refused = self._tally.snapshot(time.time()), tuple(self._refused)
        closing = self._admission.closing
        if closing is None or (self._admission.is_complete and closing.kind != "aborted"):
            return ending.finished(snapshot, refused)
        return ending.closed(snapshot, closing, refused, signal=self._interruption.reason)
