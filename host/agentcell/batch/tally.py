"""What a batch has come to so far. Pure: the clock comes in."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentcell.batch.counts import RATE_ROWS, Rows, Spending, rate
from agentcell_protocol.result import SessionResult, Usage


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


def snapshot(
    rows: Rows,
    spending: Spending,
    *,
    total: int | None,
    running: Iterable[Running],
    elapsed: float,
    rate: float,
    pause: tuple[str, float | None] | None,
) -> Snapshot:
    """The batch at the moment at which this was counted; a `pause` is why nothing is admitted, and until when."""
    running = tuple(running)
    left = None if total is None else max(0, total - rows.finished)
    reason, until = pause or (None, None)
    return Snapshot(
        total=total,
        done=rows.finished - rows.failed,
        failed=rows.failed,
        running=running,
        pending=None if left is None else max(0, left - len(running)),
        retries=spending.retries,
        usage=spending.usage,
        cost_usd=spending.cost_usd,
        unknown_costs=spending.unknown_costs,
        elapsed=elapsed,
        rate=rate,
        eta=left / rate if left is not None and rate else None,
        by_status=dict(+rows.by_status),
        by_category=dict(rows.by_category),
        slowest=tuple(rows.slowest),
        paused=reason,
        paused_until=until,
    )


@dataclass(slots=True)
class Tally:
    """Counts a batch as it goes; `now` is always in Unix seconds. `spending` is that of former runs, too."""

    began: float
    total: int | None = None
    spending: Spending = field(default_factory=Spending)
    _rows: Rows = field(default_factory=Rows)
    _running: dict[str, Running] = field(default_factory=dict)
    _finish_times: list[float] = field(default_factory=list)
    _pause: tuple[str, float | None] | None = None

    @property
    def cost_usd(self) -> float:
        """What is known to have been spent."""
        return self.spending.cost_usd or 0.0

    @property
    def failed(self) -> int:
        """Rows that have finished with an error."""
        return self._rows.failed

    def started(self, row_id: str, attempt: int, now: float, *, is_retry: bool = False) -> None:
        """A cell is about to start for the row, which `is_retry` if it had one since it was first run or reopened."""
        self._running[row_id] = Running(row_id, attempt, now)
        self.spending.retries += is_retry
        self._pause = None

    def heard(self, row_id: str, event: Mapping[str, Any]) -> None:
        """Something happened in the row's cell."""
        if (running := self._running.get(row_id)) is not None:
            self._running[row_id] = Running(row_id, running.attempt, running.since, event)

    def ended(self, row_id: str, usage: Usage, cost_usd: float | None) -> None:
        """An attempt at the row is over."""
        self._running.pop(row_id, None)
        self.spending.add(usage.model_dump(), cost_usd)

    def finished_before(self, status: str, category: str | None, count: int = 1) -> None:
        """A row, or so many, have such results from a former run."""
        self._rows.add(status, category, count)

    def has_finished(self, row_id: str, result: SessionResult, now: float) -> None:
        """The row has its result."""
        self._rows.add(result.status, None if result.error is None else result.error.category)
        self._finish_times = [*self._finish_times, now][-RATE_ROWS:]
        self._rows.took(row_id, sum(attempt.execution_time for attempt in result.attempts) or result.execution_time)

    def paused(self, reason: str | None, until: float | None = None) -> None:
        """Nothing is admitted for the time being; None: it is again."""
        self._pause = None if reason is None else (reason, until)

    def snapshot(self, now: float) -> Snapshot:
        """All of it at this moment."""
        return snapshot(
            self._rows,
            self.spending,
            total=self.total,
            running=self._running.values(),
            elapsed=now - self.began,
            rate=rate(self._finish_times, self.began, now),
            pause=self._pause,
        )
