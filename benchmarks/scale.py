"""What a hundred thousand rows on a thousand nodes cost their driver, with sessions and nodes that fail meanwhile.

The nodes are simulated, everything else is the command's own. Takes about twenty minutes.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.meta.source import ROOT

from benchmarks import simulation
from benchmarks.measure import Figure, Spread

MANY = 100_000
FEW = 1_000
NODES = 1_000

CPU_GOAL = 1.2
MEMORY_GOAL = 1.25
"""Of the most memory to that when all nodes came to be in use: an index of eighty bytes a row is all that grows."""


def run() -> list[Figure]:
    """Of the driver's process; every row has ended once, whatever it met."""
    many, few = _play(MANY), _play(FEW)
    cost = Spread.of([many["cpu_seconds_an_attempt"] / few["cpu_seconds_an_attempt"]])
    memory = Spread.of([many["most_mb"] / many["early_mb"]])
    each = 1000 * many["cpu_seconds_an_attempt"]
    spent = f"{each:.1f} ms an attempt, {1000 * few['cpu_seconds_an_attempt']:.1f} ms with {FEW:,} rows"
    pace = f"{many['attempts_a_second']:.0f} attempts a second, {many['lost_nodes']} nodes lost"
    journal = f"journal {many['journal_bytes'] / MANY:.0f} bytes a row, results {many['results_bytes'] / MANY:.0f}"
    taken = f"{many['early_mb']:.0f} MB with all nodes in use, {many['most_mb']:.0f} MB at most"
    what = f"CPU per attempt of {MANY:,} rows on {NODES:,} nodes"
    return [
        Figure("scale", what, f"{FEW:,} rows", cost, CPU_GOAL, detail=f"{spent}; {pace}; {journal}"),
        Figure("scale", "most memory of that driver", "all nodes in use", memory, MEMORY_GOAL, detail=taken),
    ]


def _play(rows: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        ended = subprocess.run(
            [sys.executable, "-m", simulation.__name__, folder, str(rows), str(NODES)],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "HOME": folder, "TMPDIR": folder},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        _check(Path(folder), rows)
    seen: dict[str, Any] = json.loads(ended.stdout)
    return seen


def _check(folder: Path, rows: int) -> None:
    """Every row has one result, with all attempts that the journal has of it."""
    begun = 0
    with (folder / "rows.run/journal.jsonl").open() as journal:
        for line in journal:
            begun += json.loads(line)["event"] == "started"
    ids, recorded, count = set[str](), 0, 0
    with (folder / "rows.run/results.jsonl").open() as results:
        for line in results:
            count += 1
            result = json.loads(line)
            ids.add(result["id"])
            recorded += len(result["attempts"])
    assert len(ids) == count == rows
    assert recorded == begun
