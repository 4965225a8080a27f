"""What memory a batch takes after its first rows: thousands of rows must not need more than hundreds do."""

import tempfile
from pathlib import Path

from tests.faults import long_batch

from benchmarks.measure import Figure, Spread
from benchmarks.played import play

ROWS = 10_000

GROWTH_MB = 20.0
"""What the process may have gained by the last row."""


def run() -> list[Figure]:
    """A batch whose cells are played, so that nothing but the batch itself is measured."""
    with tempfile.TemporaryDirectory() as folder:
        seen = play(Path(folder), ROWS)
    growth = Spread.of([(seen["late_mb"] - seen["early_mb"]) / GROWTH_MB])
    what = f"memory gained from row {long_batch.FIRST} to row {ROWS:,} of a batch"
    detail = f"{seen['early_mb']:.1f} MB after {long_batch.FIRST} rows, then at most {seen['late_mb']:.1f} MB"
    return [Figure("batch_memory", what, f"{GROWTH_MB:g} MB", growth, 1.0, detail=detail)]
