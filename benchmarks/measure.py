"""How a figure is measured: against a peer, in turns with it, with the noise of the machine beside it."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

Measured = Callable[[], float]
"""Does its work once; what that took, in seconds or in whatever is compared."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some numbers, and the quartiles around it."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> "Spread":
        """Of one number, too."""
        if len(numbers) == 1:
            return cls(numbers[0], numbers[0], numbers[0])
        low, median, high = statistics.quantiles(numbers, n=4, method="inclusive")
        return cls(median, low, high)

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f}–{self.high:.2f})"


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table.

    `ratio` is what ours took of what the peer took, or the other way round where more is better (`at_least`). `goal`
    is None for what is shown for information. `noise` is the peer against itself. `detail` says what was seen.
    """

    topic: str
    what: str
    peer: str
    ratio: Spread
    goal: float | None = None
    at_least: bool = False
    noise: Spread | None = None
    detail: str = ""

    @property
    def is_met(self) -> bool:
        """Whether the median keeps to the goal."""
        if self.goal is None:
            return True
        return self.ratio.median >= self.goal if self.at_least else self.ratio.median <= self.goal


@dataclass(frozen=True, slots=True)
class Compared:
    """Ours to the peer's in each round, the peer's to itself, and what each took."""

    ratio: Spread
    noise: Spread
    ours: Spread
    theirs: Spread


def compare(ours: Measured, theirs: Measured, *, pairs: int) -> Compared:
    """Both in turns, after one round that does not count: the peer, ours, the peer again."""
    for warm in (theirs, ours):
        warm()
    rounds = [(theirs(), ours(), theirs()) for _ in range(pairs)]
    return Compared(
        ratio=Spread.of([mine / ((before + after) / 2) for before, mine, after in rounds]),
        noise=Spread.of([after / before for before, _, after in rounds]),
        ours=Spread.of([mine for _, mine, _ in rounds]),
        theirs=Spread.of([number for before, _, after in rounds for number in (before, after)]),
    )


def wall(work: Callable[[], object]) -> Measured:
    """Seconds by the clock."""

    def measured() -> float:
        started = time.perf_counter()
        work()
        return time.perf_counter() - started

    return measured


def cpu(work: Callable[[], object]) -> Measured:
    """CPU seconds of this process and of the children that it has waited for, and theirs."""

    def measured() -> float:
        started = _used()
        work()
        return _used() - started

    return measured


def _used() -> float:
    usages = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
