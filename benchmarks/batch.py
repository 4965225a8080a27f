"""What memory a batch takes after its first rows."""

import json
import os
import subprocess
import sys
import tempfile

from tests.faults import long_batch
from tests.meta.source import ROOT

from benchmarks.row import Row

ROWS = 10_000
GROWTH_MB = 20.0
BOUND = 1.0


def run() -> list[Row]:
    """A batch whose cells are played, so that nothing but the batch itself is measured."""
    with tempfile.TemporaryDirectory() as folder:
        ended = subprocess.run(
            [sys.executable, "-m", long_batch.__name__, folder, str(ROWS)],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "HOME": folder, "TMPDIR": folder},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
        )
    seen = json.loads(ended.stdout)
    early, late = seen["early_mb"], seen["late_mb"]
    detail = f"{early:.1f} MB after {long_batch.FIRST} rows, then at most {late:.1f} MB"
    return [Row("batch", f"growth over {ROWS:,} rows, to {GROWTH_MB:g} MB", (late - early) / GROWTH_MB, BOUND, detail)]
