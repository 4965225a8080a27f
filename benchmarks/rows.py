"""What a row of a long batch costs against a row of a short one: the cost of a row must not grow with their number."""

import tempfile
from pathlib import Path

from benchmarks.measure import Figure, Measured, compare
from benchmarks.played import play

MANY = 10_000
FEW = 100
PAIRS = 3
GOAL = 1.2


def run() -> list[Figure]:
    """CPU of the batch's process, its start and its first rows left out; the cells are played."""
    seen = compare(_cost(MANY), _cost(FEW), pairs=PAIRS)
    what = f"CPU per row of a batch of {MANY:,}"
    detail = f"{seen.ours.median * 1000:.2f} ms a row, {seen.theirs.median * 1000:.2f} ms with {FEW} rows"
    return [Figure("rows", what, f"a batch of {FEW}", seen.ratio, GOAL, noise=seen.noise, detail=detail)]


def _cost(rows: int) -> Measured:
    def measured() -> float:
        with tempfile.TemporaryDirectory() as folder:
            return float(play(Path(folder), rows)["row_cpu_seconds"])

    return measured
