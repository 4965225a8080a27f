"""What a run directory tells of its batch, be it running, cut or over. Nothing in it is changed."""

import os
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Literal

import orjson
from pydantic import ValidationError

from agentcell.batch.directory import CELLS, JOURNAL, RESULTS, read_description
from agentcell.batch.history import History, OpenAttempt
from agentcell.batch.identity import slug
from agentcell.batch.lock import Holder, holder, in_force
from agentcell.batch.recovery import EVENTS
from agentcell.batch.repair import BUFFER_BYTES, read_whole, scan
from agentcell.batch.results import Finished, note
from agentcell.batch.summary import Failures, failures_in
from agentcell.batch.tally import RATE_ROWS, SLOWEST, Running, Snapshot
from agentcell_protocol.result import COST_DIGITS, Attempt, Usage

State = Literal["running", "finished", "stopped", "interrupted"]
"""It runs; or every row has its result; or it ended with rows left, and said why; or its process died."""

FINISHED_REASON = "finished"
"""What the journal's `closed` line says when no rows are left."""

TAIL_BYTES = 65536
"""Of the events of a cell that runs, in which the last one is looked for."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A batch as its run directory tells of it: `reason` says why rows are left, `holder` who runs it or ran it."""

    state: State
    snapshot: Snapshot
    failures: Failures
    holder: Holder | None = None
    reason: str | None = None


def read_batch(directory: Path, now: float) -> Reading:
    """Read a run directory as it is `now` (Unix seconds). Raises RunDirectoryError and OSError. Blocks."""
    read_description(directory)
    is_running = in_force(directory)
    counted, clock = _Counted(), _Clock()
    history = History(counted.finished)
    with _opened(directory / RESULTS) as results:
        for offset, message in _whole_lines(results):
            counted.add(offset, message)
        for _, message in read_whole(directory / JOURNAL):
            history.apply(message)
            clock.see(message)
        start = results.tell()
        for line in scan(results):  # what has finished since: no row is lost between the two files
            counted.add(start + line.offset, line.message or {})
    for id_ in history.pending():
        counted.spent(history.of(id_).attempts)  # type: ignore[union-attr]
    snapshot = _snapshot(directory, history, counted, clock, now if is_running else None)
    state, reason = _state(history, is_running=is_running)
    return Reading(state, snapshot, failures_in(counted.finished), holder(directory), reason)


@dataclass(slots=True)
class _Counted:
    """What the results come to, with the attempts at rows that have none."""

    finished: dict[str, Finished] = field(default_factory=dict)
    by_status: Counter[str] = field(default_factory=Counter)
    by_category: Counter[str] = field(default_factory=Counter)
    slowest: list[tuple[str, float]] = field(default_factory=list)
    usage: Counter[str] = field(default_factory=Counter)
    cost_usd: float = 0.0
    known_costs: int = 0
    unknown_costs: int = 0
    retries: int = 0

    def add(self, offset: int, message: Mapping[str, Any]) -> None:
        """Count a line of the results, unless it is none."""
        if not note(self.finished, offset, message):
            return
        id_ = message["id"]
        finished, attempts = self.finished[id_], _attempts(message)
        self.by_status[finished.status] += 1
        if finished.category is not None:
            self.by_category[str(finished.category)] += 1
        self.spent(attempts)
        took = (id_, sum(attempt.execution_time for attempt in attempts))
        self.slowest = sorted([*self.slowest, took], key=lambda row: -row[1])[:SLOWEST]

    def spent(self, attempts: list[Attempt]) -> None:
        """Count what these attempts at one row took."""
        self.retries += max(0, len(attempts) - 1)
        for attempt in attempts:
            self.usage.update(attempt.usage.model_dump())
            if attempt.cost_usd is None:
                self.unknown_costs += 1
            else:
                self.known_costs += 1
                self.cost_usd += attempt.cost_usd


@dataclass(slots=True)
class _Clock:
    """When the batch was begun or gone on with the last time, when rows ended since, and what came last."""

    began: float = 0.0
    last: float = 0.0
    ends: deque[tuple[str, float]] = field(default_factory=lambda: deque(maxlen=RATE_ROWS))

    def see(self, message: Mapping[str, Any]) -> None:
        """Look at a line of the journal."""
        at, id_ = message.get("at"), message.get("id")
        if not isinstance(at, int | float):
            return
        self.last = max(self.last, at)
        if message.get("event") == "opened":
            self.began = at
            self.ends.clear()
        elif message.get("event") == "ended" and isinstance(id_, str):
            self.ends.append((id_, at))

    def rate(self, finished: Mapping[str, Finished], now: float) -> float:
        """Rows a second."""
        times = [at for id_, at in self.ends if id_ in finished]
        since = times[0] if len(times) == RATE_ROWS else self.began
        return len(times) / (now - since) if now > since else 0.0


def _snapshot(directory: Path, history: History, counted: _Counted, clock: _Clock, now: float | None) -> Snapshot:
    """The batch `now`, or (None) when it last was seen to do something."""
    running = () if now is None else tuple(_running(directory, history))
    config = (history.opened or {}).get("config")
    total = config.get("rows") if isinstance(config, dict) else None
    total = total if isinstance(total, int) else None
    left = None if total is None else max(0, total - len(counted.finished))
    rate = 0.0 if now is None else clock.rate(counted.finished, now)
    paused = (now is not None and history.paused) or {}
    return Snapshot(
        total=total,
        done=counted.by_status.total() - counted.by_status["error"],
        failed=counted.by_status["error"],
        running=running,
        pending=None if left is None else max(0, left - len(running)),
        retries=counted.retries,
        usage=Usage(**counted.usage),
        cost_usd=None if counted.unknown_costs and not counted.known_costs else round(counted.cost_usd, COST_DIGITS),
        unknown_costs=counted.unknown_costs,
        elapsed=(clock.last if now is None else now) - clock.began,
        rate=rate,
        eta=left / rate if left is not None and rate else None,
        by_status=+counted.by_status,
        by_category=counted.by_category,
        slowest=tuple(counted.slowest),
        paused=paused.get("reason"),
        paused_until=paused.get("until"),
    )


def _state(history: History, *, is_running: bool) -> tuple[State, str | None]:
    if is_running:
        return "running", None
    if history.closed is None:
        return "interrupted", None
    reason = str(history.closed.get("reason"))
    return ("finished", None) if reason == FINISHED_REASON else ("stopped", reason)


def _running(directory: Path, history: History) -> Iterator[Running]:
    """The attempts under way; those at rows that have finished meanwhile are none."""
    for id_, attempt in history.open_attempts():
        if id_ not in history.finished:
            yield Running(id_, attempt.number, attempt.at, _last_event(directory, id_, attempt))


def _last_event(directory: Path, id_: str, attempt: OpenAttempt) -> dict[str, Any] | None:
    """The last whole event of a cell, if it is not longer than what is looked at."""
    try:
        with (directory / CELLS / slug(id_) / str(attempt.number) / EVENTS).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            found = [line.message for line in scan(file) if line.message is not None]
    except OSError:
        return None
    return found[-1] if found else None


def _attempts(message: Mapping[str, Any]) -> list[Attempt]:
    try:
        return [Attempt.model_validate(attempt) for attempt in message.get("attempts") or []]
    except (ValidationError, TypeError):
        return []


def _opened(path: Path) -> BinaryIO:
    """The file, or an empty one where the batch has none yet."""
    try:
        return path.open("rb", BUFFER_BYTES)
    except FileNotFoundError:
        return BytesIO()


def _whole_lines(file: BinaryIO) -> Iterator[tuple[int, dict[str, Any]]]:
    """The messages of a file with their offsets, up to a line that may still be written; that is left to be read."""
    offset = 0
    while (content := file.readline()).endswith(b"\n"):
        try:
            message = orjson.loads(content)
        except orjson.JSONDecodeError:
            message = None
        if isinstance(message, dict):
            yield offset, message
        offset += len(content)
    file.seek(offset)
