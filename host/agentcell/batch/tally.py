"""What a batch has come to so far. Pure: the clock comes in."""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentcell_protocol.result import COST_DIGITS, SessionResult, Usage

SLOWEST = 5
"""Rows that are named for the time they took."""

RATE_ROWS = 50
"""The rate is that of so many rows that finished last: a pause an hour ago says nothing of the time left."""


@dataclass(frozen=True, slots=True)
class Running:
    """A row whose cell runs, since when (Unix seconds), and the last that was heard of it."""

    id: str
    attempt: int
    since: float
    last_event: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A batch at one moment, former runs of its directory included.

    `total` and `pending` are None while rows still come from a stream. `pending` rows have not finished and do not
    run. `cost_usd` is what is known, None when nothing is; `unknown_costs` counts the attempts without one. `elapsed`
    and `eta` are in seconds, `rate` in rows a second. `slowest` are ids with seconds. `paused` says why nothing is
    admitted, and `paused_until` until when (Unix seconds), if that is known.
    """

    total: int | None = None
    done: int = 0
    failed: int = 0
    running: tuple[Running, ...] = ()
    pending: int | None = None
    retries: int = 0
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = 0.0
    unknown_costs: int = 0
    elapsed: float = 0.0
    rate: float = 0.0
    eta: float | None = None
    by_status: Mapping[str, int] = field(default_factory=dict)
    by_category: Mapping[str, int] = field(default_factory=dict)
    slowest: tuple[tuple[str, float], ...] = ()
    paused: str | None = None
    paused_until: float | None = None


@dataclass(slots=True)
class Tally:
    """Counts a batch as it goes; `now` is always in Unix seconds."""

    began: float
    total: int | None = None
    _running: dict[str, Running] = field(default_factory=dict)
    _by_status: Counter[str] = field(default_factory=Counter)
    _by_category: Counter[str] = field(default_factory=Counter)
    _usage: Usage = field(default_factory=Usage)
    _known_costs: int = 0
    _unknown_costs: int = 0
    _cost_usd: float = 0.0
    _retries: int = 0
    _slowest: list[tuple[str, float]] = field(default_factory=list)
    _finish_times: deque[float] = field(default_factory=lambda: deque(maxlen=RATE_ROWS))
    _paused: tuple[str, float | None] | None = None

    @property
    def cost_usd(self) -> float:
        """What is known to have been spent."""
        return round(self._cost_usd, COST_DIGITS)

    @property
    def failed(self) -> int:
        """Rows that have finished with an error."""
        return self._by_status["error"]

    @property
    def finished(self) -> int:
        """Rows that have finished, well or not."""
        return self._by_status.total()

    def started(self, row_id: str, attempt: int, now: float) -> None:
        """A cell is about to start for the row."""
        self._running[row_id] = Running(row_id, attempt, now)
        self._retries += attempt > 1
        self._paused = None

    def heard(self, row_id: str, event: Mapping[str, Any]) -> None:
        """Something happened in the row's cell."""
        if (running := self._running.get(row_id)) is not None:
            self._running[row_id] = Running(row_id, running.attempt, running.since, event)

    def ended(self, row_id: str, usage: Usage, cost_usd: float | None) -> None:
        """An attempt at the row is over."""
        self._running.pop(row_id, None)
        self.spent(usage, cost_usd)

    def spent(self, usage: Usage, cost_usd: float | None) -> None:
        """An attempt took this, be it one of a former run."""
        self._usage += usage
        if cost_usd is None:
            self._unknown_costs += 1
        else:
            self._known_costs += 1
            self._cost_usd += cost_usd

    def finished_before(self, status: str, category: str | None, count: int = 1) -> None:
        """A row, or so many, have such results from a former run."""
        self._count(status, category, count)

    def has_finished(self, row_id: str, result: SessionResult, now: float) -> None:
        """The row has its result."""
        self._count(result.status, None if result.error is None else result.error.category)
        self._finish_times.append(now)
        took = sum(attempt.execution_time for attempt in result.attempts) or result.execution_time
        self._slowest = _slowest([*self._slowest, (row_id, took)])

    def paused(self, reason: str | None, until: float | None = None) -> None:
        """Nothing is admitted for the time being; None: it is again."""
        self._paused = None if reason is None else (reason, until)

    def snapshot(self, now: float) -> Snapshot:
        """All of it at this moment."""
        left = None if self.total is None else max(0, self.total - self.finished)
        rate = self._rate(now)
        reason, until = self._paused or (None, None)
        return Snapshot(
            total=self.total,
            done=self.finished - self.failed,
            failed=self.failed,
            running=tuple(self._running.values()),
            pending=None if left is None else max(0, left - len(self._running)),
            retries=self._retries,
            usage=self._usage,
            cost_usd=None if self._unknown_costs and not self._known_costs else self.cost_usd,
            unknown_costs=self._unknown_costs,
            elapsed=now - self.began,
            rate=rate,
            eta=None if left is None or rate == 0 else left / rate,
            by_status=dict(self._by_status),
            by_category=dict(self._by_category),
            slowest=tuple(self._slowest),
            paused=reason,
            paused_until=until,
        )

    def _count(self, status: str, category: str | None, count: int = 1) -> None:
        self._by_status[status] += count
        if category is not None:
            self._by_category[str(category)] += count

    def _rate(self, now: float) -> float:
        """Rows a second; the time since the last one counts, so that it falls while nothing finishes."""
        times = self._finish_times
        since = times[0] if len(times) == RATE_ROWS else self.began
        return len(times) / (now - since) if now > since else 0.0


def _slowest(rows: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    return sorted(rows, key=lambda row: -row[1])[:SLOWEST]
