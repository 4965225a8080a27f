"""A host that has run hundreds of sessions, and a batch of thousands of rows, are as they were after the first ones."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults import endurance, long_batch
from tests.meta.source import ROOT

pytestmark = pytest.mark.slow

SESSIONS = 200

ENDS = {
    "fork": {"fork complete 0": 140, "fork crashed 0": 40, "fork complete 1": 20},
    "cold": {"cold complete 0": 200},
}
"""How they start and end, with how many strays, and how often."""

GROWTH_MB = 5

ROWS = 2_000

BATCH_GROWTH_MB = 20

BOUND_SECONDS = 240
"""A multiple of what it takes on an idle machine."""


@pytest.mark.parametrize("start", ["fork", "cold"])
def test_hundreds_of_sessions_leave_no_process_no_descriptor_and_no_memory(tmp_path: Path, start: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", endurance.__name__, start, str(tmp_path), str(SESSIONS)],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        timeout=BOUND_SECONDS,
        check=True,
    )
    early, late = json.loads(ended.stdout)
    assert late["ends"] == ENDS[start]
    server = {"fork": 1, "cold": 0}[start]
    assert (len(early["processes"]), late["processes"]) == (server, early["processes"])
    assert late["descriptors"] <= early["descriptors"]
    assert late["memory_mb"] < early["memory_mb"] + GROWTH_MB
    assert [path.name for path in tmp_path.iterdir()] == []


def test_thousands_of_rows_take_no_more_memory_than_hundreds(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", long_batch.__name__, str(tmp_path), str(ROWS)],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        timeout=BOUND_SECONDS,
        check=True,
    )
    seen = json.loads(ended.stdout)
    assert (seen["exit_code"], seen["rows"]) == (0, ROWS)
    assert seen["late_mb"] < seen["early_mb"] + BATCH_GROWTH_MB
    results = [json.loads(line)["id"] for line in (tmp_path / "rows.run" / "results.jsonl").read_bytes().splitlines()]
    assert sorted(results) == sorted(f"row-{number}" for number in range(ROWS))
