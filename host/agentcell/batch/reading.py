"""What a run directory tells of its batch, be it running, cut or over. Nothing in it is changed."""

import os
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Literal

import orjson

from agentcell.batch.counts import RATE_ROWS, Rows, Spending, rate
from agentcell.batch.directory import CELLS, JOURNAL, RESULTS, read_description
from agentcell.batch.history import History, OpenAttempt
from agentcell.batch.identity import slug
from agentcell.batch.index import Index
from agentcell.batch.journal import FINISHED
from agentcell.batch.lock import Holder, holder, in_force, was_left
from agentcell.batch.recovery import EVENTS
from agentcell.batch.repair import BUFFER_BYTES, read_whole, scan
from agentcell.batch.results import note
from agentcell.batch.summary import Failures, failures_in
from agentcell.batch.tally import Running, Snapshot, snapshot
from agentcell.batch.values import amount, number

State = Literal["running", "finished", "stopped", "interrupted"]
"""It runs; or every row has its result; or it ended with rows left, and said why; or its process died."""

UNSAID = "it ended without writing why"
"""The reason where there is no `closed` line, and the lock was given back: the disk was full, say."""

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
    seen = _snapshot(directory, history, counted, clock, now if is_running else None)
    state, reason = _state(history, is_running=is_running, was_left=was_left(directory))
    return Reading(state, seen, failures_in(counted.finished, directory), holder(directory), reason)


@dataclass(slots=True)
class _Counted:
    """The results, and what they come to."""

    finished: Index = field(default_factory=Index)
    rows: Rows = field(default_factory=Rows)

    def add(self, offset: int, message: Mapping[str, Any]) -> None:
        """Count a line of the results, unless it is none."""
        if note(self.finished, offset, message):
            self.rows.took(message["id"], _seconds(message))

    def counted(self) -> Rows:
        """All of them, once."""
        for (status, category), count in self.finished.kinds.items():
            self.rows.add(status, category, count)
        return self.rows


@dataclass(slots=True)
class _Clock:
    """When the batch was begun or gone on with the last time, when it last did something, and when rows finished since.

    `taken` are the seconds of the runs before that; `starts` those attempts that were not seen to end. Of `finishes`
    there are as many as a rate is made of.
    """

    taken: float = 0.0
    began: float | None = None
    last: float = 0.0
    starts: dict[str, float] = field(default_factory=dict)
    finishes: deque[float] = field(default_factory=lambda: deque(maxlen=RATE_ROWS))

    def see(self, message: Mapping[str, Any]) -> None:
        """Look at a line of the journal."""
        at, id_ = amount(message.get("at")), message.get("id")
        if at is None:
            return
        did = at
        match message.get("event"):
            case "opened":
                self.taken = self.elapsed(self.last)
                self.began = at
                self.finishes.clear()
            case "started" if isinstance(id_, str):
                self.starts[id_] = at
            case "ended" if isinstance(id_, str):
                if message.get("retry_at") is None:
                    self.finishes.append(at)
                # who went on may have noted it, long after the death of the process that made the attempt
                did = min(at, self.starts.pop(id_, at) + (amount(message.get("execution_time")) or 0.0))
        self.last = max(self.last, did)

    def elapsed(self, now: float) -> float:
        """Seconds that all runs have taken until then, without the time between them."""
        return self.taken + (0.0 if self.began is None else max(0.0, now - self.began))

    def rate(self, now: float) -> float:
        """Rows a second, in the last run."""
        return rate([*self.finishes], self.began or 0.0, now)


def _snapshot(directory: Path, history: History, counted: _Counted, clock: _Clock, now: float | None) -> Snapshot:
    """The batch `now`, or (None) when it last was seen to do something."""
    config = (history.opened or {}).get("config")
    return snapshot(
        counted.counted(),
        history.spending if now is not None else _spending_of_the_dead(history),
        total=number(config.get("rows")) if isinstance(config, dict) else None,
        running=() if now is None else _running(directory, history),
        elapsed=clock.elapsed(clock.last if now is None else now),
        rate=0.0 if now is None else clock.rate(now),
        pause=None if now is None or history.paused is None else _pause(history.paused),
    )


def _spending_of_the_dead(history: History) -> Spending:
    """What was spent when nobody runs it: of attempts that nobody saw the end of the cost is not known."""
    spending = history.spending.copy()
    for _ in history.open_attempts():
        spending.add(None, None)
    return spending


def _pause(message: Mapping[str, Any]) -> tuple[str, float | None]:
    return str(message.get("reason")), amount(message.get("until"))


def _seconds(message: Mapping[str, Any]) -> float:
    """How long all attempts at a row took, as its result says."""
    attempts = message.get("attempts")
    if not isinstance(attempts, list):
        return 0.0
    return sum(amount(one.get("execution_time")) or 0.0 for one in attempts if isinstance(one, dict))


def _state(history: History, *, is_running: bool, was_left: bool) -> tuple[State, str | None]:
    if is_running:
        return "running", None
    if history.closed is None:
        return ("interrupted", None) if was_left else ("stopped", UNSAID)
    reason = str(history.closed.get("reason"))
    return ("finished", None) if reason == FINISHED else ("stopped", reason)


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
