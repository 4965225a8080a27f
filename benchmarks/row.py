"""One line of the table, and how it is measured."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Row:
    """A ratio to something known, measured in the same run: a machine's speed falls out of it."""

    topic: str
    what: str
    ratio: float
    bound: float
    detail: str


def compare(work: Callable[[], object], baseline: Callable[[], object], *, rounds: int) -> tuple[float, float, float]:
    """The median of the ratios of `work` to `baseline`, taken in turns, and the median seconds of each."""
    pairs = [(_seconds(work), _seconds(baseline)) for _ in range(rounds)]
    ratio = median(mine / other for mine, other in pairs)
    return ratio, median(mine for mine, _ in pairs), median(other for _, other in pairs)


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
