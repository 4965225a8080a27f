"""`agentcell batch` on the real SDK and the real CLI: whatever its rows meet, and whenever it is killed."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.scenes import living
from tests.e2e.test_limits_kept import GROWS
from tests.ending import ending
from tests.faults.batches import BOUND_SECONDS, check_attempts, kill, lines, outcomes, wait_for_rows

from agentcell.offline import Endpoint, offline_environment, offline_model

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

DRIVER = """
import sys
from agentcell.batch import account
from agentcell.cli import main
account.FIRST_PAUSE_SECONDS = 3.0
sys.exit(main())
"""
"""The console script, with less patience after a rate limit."""

KILL_WORKER = {"tools": [{"name": "Bash", "input": {"command": "kill -9 $(cut -d' ' -f4 /proc/$PPID/stat)"}}]}

REFUSES = {"error": {"status": 401}, "times": "always"}
TOO_MANY = {"error": {"status": 429}, "times": "always"}
STALLS = {"stall": "start", "times": "always"}

SCRIPTS: dict[str, list[dict[str, Any]]] = {
    "burst-1": [],
    "burst-2": [],
    "key": [REFUSES],
    "crash": [KILL_WORKER],
    "slow": [STALLS],
    "hungry": [GROWS, STALLS],
    "plain": [],
}

MEMBERS: dict[str, dict[str, Any]] = {
    "key": {"env": {"ANTHROPIC_API_KEY": "sk-ant-own"}},
    "slow": {"limits": {"max_execution_seconds": 8}},
    "hungry": {"limits": {"max_memory_mb": 1024}},
}

ENDINGS = {
    **{name: ("complete", f"{name} is done.", None) for name in ("burst-1", "burst-2", "crash", "plain")},
    "key": ("error", "authentication"),
    "slow": ("error", "timeout"),
    "hungry": ("error", "memory_limit"),
}


def mark(name: str) -> str:
    return f"[{name}]"


def script(rows: dict[str, list[dict[str, Any]]], *first: dict[str, Any]) -> dict[str, Any]:
    """Every row says at last that it is done, whenever it is gone on with; the first sessions may have others."""
    sessions = [
        {"match": mark(name), "turns": [*turns, {"text": f"{name} is done.", "times": "always"}]}
        for name, turns in rows.items()
    ]
    return {"sessions": [*({"session": n + 1, "turns": [turn]} for n, turn in enumerate(first)), *sessions]}


def write_rows(home: Path, rows: dict[str, list[dict[str, Any]]]) -> None:
    (home / "project").mkdir()
    common = {"agent_type": "coder", "project_dir": "project"}
    written = [
        {"id": name, **common, "starting_message": f"Go on. {mark(name)}", **MEMBERS.get(name, {})} for name in rows
    ]
    (home / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in written))


@contextmanager
def command(endpoint: Endpoint, home: Path, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    environment = {**offline_environment(endpoint, home), "TMPDIR": str(home)}
    argv = [sys.executable, "-c", DRIVER, *arguments]
    starting = subprocess.Popen(
        argv, cwd=home, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with ending(starting, BOUND_SECONDS) as process:
        yield process


def ended(endpoint: Endpoint, home: Path, *arguments: str) -> tuple[int, str, str]:
    """The exit code, stdout and stderr."""
    with command(endpoint, home, *arguments) as process:
        out, told = process.communicate(timeout=BOUND_SECONDS)
    return process.returncode, out.decode(), told.decode()


BATCH = ("batch", "rows.jsonl", "-j", "2", "--min-free-mb", "0", "--retries", "1")


def test_every_row_is_in_its_right_state_whatever_it_met(tmp_path: Path) -> None:
    write_rows(tmp_path, SCRIPTS)
    with offline_model(script(SCRIPTS, TOO_MANY, TOO_MANY)) as endpoint:
        code, _, told = ended(endpoint, tmp_path, *BATCH, "--progress", "none")
        shown = ended(endpoint, tmp_path, "status", "rows.run", "--json")[1]
    found = outcomes(tmp_path / "rows.run")
    assert code == 1
    assert {name: end if end[0] == "complete" else (end[0], end[2]) for name, end in found.items()} == ENDINGS
    check_attempts(tmp_path / "rows.run", most=2)
    results = {line["id"]: line for line in lines(tmp_path / "rows.run" / "results.jsonl")}
    attempts = {
        name: [(one["mode"], (one["error"] or {}).get("category")) for one in results[name]["attempts"]]
        for name in SCRIPTS
    }
    assert attempts == {
        "burst-1": [("fresh", "rate_limit"), ("fresh", None)],
        "burst-2": [("fresh", "rate_limit"), ("fresh", None)],
        "key": [("fresh", "authentication")],
        "crash": [("fresh", "crashed"), ("resumed", None)],
        "slow": [("fresh", "timeout")],
        "hungry": [("fresh", "memory_limit")],
        "plain": [("fresh", None)],
    }
    failed = [f"error ({category}): 1" for category in ("authentication", "memory_limit", "timeout")]
    assert {"rows: 7: 4 done, 3 failed", "complete: 4", *failed} <= set(told.splitlines())
    status = json.loads(shown)
    assert (status["state"], status["done"], status["failed"], status["pending"]) == ("finished", 4, 3, 0)
    assert status["by_category"] == {"authentication": 1, "timeout": 1, "memory_limit": 1}
    assert {one["id"]: one["category"] for one in status["failures"]} == {
        "key": "authentication",
        "slow": "timeout",
        "hungry": "memory_limit",
    }
    assert living(tmp_path) == []


def test_killed_again_and_again_it_comes_to_the_same(tmp_path: Path) -> None:
    rows: dict[str, list[dict[str, Any]]] = {
        f"row-{number}": [{"tools": [{"name": "Bash", "input": {"command": "echo one"}}]}] for number in range(12)
    }
    write_rows(tmp_path, rows)
    with offline_model(script(rows)) as endpoint:
        for more in (1, 2, 2):
            with command(endpoint, tmp_path, *BATCH, "--progress", "json") as process:
                assert process.stderr is not None
                wait_for_rows(process.stderr, more)
                kill(process, tmp_path)
        code, _, told = ended(endpoint, tmp_path, *BATCH, "--progress", "none")
    assert code == 0, told
    assert outcomes(tmp_path / "rows.run") == {name: ("complete", f"{name} is done.", None) for name in rows}
    check_attempts(tmp_path / "rows.run", most=1)
