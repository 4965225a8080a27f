"""What one cell takes of memory, CPU and the like, held against its limits."""

import os
from collections import deque
from collections.abc import Callable, Sequence

from agentcell.causes import Exceeded
from agentcell.limits import Limits
from agentcell.processes import RENEWAL_SECONDS, Row, count_descriptors, kill
from agentcell_protocol.result import Notice

QUICKEST_SECONDS = 0.02
"""Between two looks at a cell that is near its memory limit."""

SLOWEST_SECONDS = 0.5
"""Between two looks at a cell that is far from its limits or has none; its peak is seen at this resolution."""

CROWD_SECONDS = 0.1
"""Between two looks at a cell with a limit on processes or threads: a fork bomb doubles in less."""

GROWTH_MB_PER_SECOND = 4000.0
"""How fast a cell may grow at the most, on two cores that touch new memory: the next look comes before it is over."""

CPU_WINDOW_SECONDS = 10.0
"""Over which `max_cpu_percent` is an average: a start or a short compilation is no news."""

GROWING = frozenset({"max_memory_mb", "max_processes", "max_threads", "max_file_descriptors"})
"""Limits on what would go on growing while a cell is asked to end: what is below its worker is killed at once."""


ENDING = ("max_memory_mb", "max_cpu_seconds", "max_threads", "max_processes", "max_file_descriptors")
"""Limits that end a session, in the order in which they are named when it is over more than one."""


class Gauge:
    """The readings of one cell; `pid` tells its worker's once it is known.

    `peak_memory_mb` is None until there was a reading; `notices` are for the result; `violated` names the limits
    that were passed without ending the session. `last` is the last reading in which the worker lived.
    """

    def __init__(self, pid: Callable[[], int | None], limits: Limits) -> None:
        self._pid = pid
        self.peak_memory_mb: float | None = None
        self.notices: list[Notice] = []
        self.violated: list[str] = []
        self.rows: Sequence[Row] = ()
        self.last: Sequence[Row] = ()
        self._limits = limits
        limited = {name: getattr(limits, name) for name in ENDING}
        self._allowed = {name: allowed for name, allowed in limited.items() if allowed is not None}
        self._resident_mb = 0.0
        self._start: float | None = None
        self._began: float | None = None
        self._now = 0.0
        self._cpu_seconds = 0.0
        self._cpu_samples: deque[tuple[float, float]] = deque()
        self._shared_mb = 0.0
        self._weighed_at = 0.0

    @property
    def pid(self) -> int | None:
        """The worker's; None while it is not known."""
        return self._pid()

    def read(self, rows: Sequence[Row], now: float) -> None:
        """Take the rows of the cell's processes, the worker's first, as they are `now` (seconds)."""
        if rows and self._start is None:
            self._start, self._began = rows[0].start, now
        self.rows = rows if rows and rows[0].start == self._start else ()
        self.last = self.rows or self.last
        self._resident_mb = sum([row.memory_mb for row in self.rows])
        self._now = now
        self._note_peak()
        self._cpu_seconds = max(self._cpu_seconds, sum([row.cpu_seconds for row in self.rows]))
        self._watch_cpu_share()

    @property
    def memory_mb(self) -> float:
        """Resident size of all its processes; what they share counts once, as far as that has been found out."""
        return self._resident_mb - self._shared_mb

    @property
    def needs_weighing(self) -> bool:
        """Whether it seems to be over its memory limit, and it must be found out what its processes share."""
        limit = self._limits.max_memory_mb
        if limit is None or not self.rows:
            return False
        is_stale = self._now - self._weighed_at > RENEWAL_SECONDS
        return self.memory_mb > limit or (is_stale and self.memory_mb + self._shared_mb > limit)

    def take_weight(self, rows: Sequence[Row], memory_mb: float) -> None:
        """Take what `processes.weigh` found the rows to have without counting twice what they share."""
        self._shared_mb = max(0.0, sum(row.memory_mb for row in rows) - memory_mb)
        self._weighed_at = self._now
        self.peak_memory_mb = max(self.peak_memory_mb or 0.0, memory_mb)
        self._note_peak()  # of the rows that were read since, less is shared than was thought

    def exceeded(self) -> Exceeded | None:
        """The limit it is over, if it is and lives."""
        if not self.rows:
            return None
        for name, allowed in self._allowed.items():
            if (value := self._reached(name)) > allowed:
                return self._exceeded(name, allowed, value)
        return None

    def _reached(self, limit: str) -> float:
        match limit:
            case "max_memory_mb":
                return self.memory_mb
            case "max_cpu_seconds":
                return self._cpu_seconds
            case "max_threads":
                return sum(row.threads for row in self.rows)
            case "max_processes":
                return len(self.rows)
            case _:
                return count_descriptors(self.rows)

    def stop_growth(self, exceeded: Exceeded) -> None:
        """Kill all that is below the worker, which lives to tell how far it came unless it is itself the largest."""
        for row in self.rows:
            if row is not self.rows[0] or row.pid == exceeded.pid:
                kill(row)

    def patience(self) -> float:
        """Seconds until it should be looked at again."""
        if self._began is None:
            return CROWD_SECONDS
        age = self._now - self._began
        wait = min(SLOWEST_SECONDS, max(CROWD_SECONDS, age))
        if self._limits.max_processes is not None or self._limits.max_threads is not None:
            wait = min(wait, CROWD_SECONDS)
        if self._limits.max_memory_mb is not None:
            wait = min(wait, (self._limits.max_memory_mb - self.memory_mb) / GROWTH_MB_PER_SECOND)
        return max(wait, QUICKEST_SECONDS)

    def _note_peak(self) -> None:
        if self.rows:
            self.peak_memory_mb = max(self.peak_memory_mb or 0.0, self.memory_mb)

    def _watch_cpu_share(self) -> None:
        samples, limit = self._cpu_samples, self._limits.max_cpu_percent
        if limit is None or self.violated:
            return
        samples.append((self._now, self._cpu_seconds))
        while len(samples) > 1 and samples[1][0] <= self._now - CPU_WINDOW_SECONDS:
            samples.popleft()
        began, before = samples[0]
        if (seconds := self._now - began) < CPU_WINDOW_SECONDS:
            return
        percent = 100 * (self._cpu_seconds - before) / (seconds * _cores())
        if percent > limit:
            text = f"the session took {percent:.0f} % of the CPU over {seconds:.0f} s; max_cpu_percent is {limit:g}"
            self.notices.append(Notice(code="max_cpu_percent", message=text))
            self.violated.append("max_cpu_percent")

    def _exceeded(self, name: str, allowed: float, value: float) -> Exceeded:
        if name != "max_memory_mb":
            return Exceeded(name, allowed, round(value, 3))
        largest = max(self.rows, key=lambda row: row.memory_mb)
        return Exceeded(name, allowed, round(value, 1), pid=largest.pid, process=largest.name)


def _cores() -> int:
    """The cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
