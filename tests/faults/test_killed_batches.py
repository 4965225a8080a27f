"""A batch that is killed again and again, at any moment, comes to what it would have come to in one go."""

import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.faults import batch_stand_ins
from tests.faults.batches import BOUND_SECONDS, check_attempts, kill, outcomes, wait_for_rows
from tests.host.command_line import write_rows
from tests.meta.source import ROOT

pytestmark = pytest.mark.slow

KILLS = 20

ROWS = 72
"""More than are done before most of the kills."""

RETRIES = 1

MOST_ROWS = 2
"""Finished in one go before a kill; with none it may come before anything has begun."""

MOST_SECONDS = 0.3
"""After that."""

SEED = 20


def steps(number: int, chance: random.Random) -> Sequence[dict[str, Any]]:
    """What a row's cell does: most take a moment and succeed, some have used a tool by then, some fail or crash."""
    wait = {"wait": round(chance.uniform(0.05, 0.35), 3)}
    if number % 11 == 0:
        return [{"tool": {"name": "Read"}}, wait, {"die": "SIGKILL"}]
    if number % 7 == 0:
        return [wait, {"fail": {"category": "refusal", "message": f"not {number}"}}]
    tool = [{"tool": {"name": "Read"}}] if number % 2 else []
    return [*tool, wait, {"text": f"{number} is done"}]


@contextmanager
def batch(home: Path, run_dir: str, jobs: int) -> Iterator["subprocess.Popen[bytes]"]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home), "PYTHONPATH": str(ROOT)}
    options = ["--run-dir", run_dir, "-j", str(jobs), "--retries", str(RETRIES), "--progress", "json"]
    argv = [sys.executable, "-m", batch_stand_ins.__name__, "batch", "rows.jsonl", "--min-free-mb", "0", *options]
    with subprocess.Popen(argv, cwd=home, env=environment, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def run_to_its_end(home: Path, run_dir: str, jobs: int) -> None:
    with batch(home, run_dir, jobs) as process:
        _, told = process.communicate(timeout=BOUND_SECONDS)
    assert process.returncode == 1, told.decode()  # rows that fail are among them


def kill_at_any_moment(home: Path, run_dir: str, jobs: int, chance: random.Random) -> None:
    """Begin or go on, and kill it."""
    with batch(home, run_dir, jobs) as process:
        assert process.stderr is not None
        if rows := chance.randint(0, MOST_ROWS):
            wait_for_rows(process.stderr, rows)
        with suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0, MOST_SECONDS))
        kill(process, home)


def test_whenever_it_is_killed_nothing_is_lost_and_nothing_done_twice(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    write_rows(tmp_path / "rows.jsonl", *((f"row-{number}", steps(number, chance)) for number in range(ROWS)))
    run_to_its_end(tmp_path, "clean.run", jobs=8)
    whole = outcomes(tmp_path / "clean.run")
    before: dict[str, Any] = {}
    amid = 0
    for _ in range(KILLS):
        kill_at_any_moment(tmp_path, "rows.run", 2, chance)
        results = tmp_path / "rows.run" / "results.jsonl"
        now = outcomes(tmp_path / "rows.run") if results.exists() and results.read_bytes().endswith(b"\n") else before
        assert before.items() <= now.items() <= whole.items()
        before = now
        amid += 0 < len(now) < ROWS
    assert amid >= KILLS // 2
    run_to_its_end(tmp_path, "rows.run", jobs=2)
    assert outcomes(tmp_path / "rows.run") == whole
    check_attempts(tmp_path / "rows.run", RETRIES + 1)
