"""A batch on a cluster of two nodes: every row ends once, whoever dies meanwhile."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.executors_ray.clusters import RAY, RayCluster

from agentcell.offline import offline_model
from agentcell_protocol.cell import marked

pytestmark = [pytest.mark.ray, pytest.mark.slow]

PROGRAM = str(Path(__file__).with_name("batch_program.py"))

SECRET = "sk-ant-test-that-nobody-else-has"

ROWS = 24
BOUND_SECONDS = 180
LOOK_SECONDS = 0.05

AT_ONCE = 8
"""What the two nodes have room for."""

LONG_SECONDS = 15
"""A session that is under way when its node's raylet is killed does not end before Ray has noticed."""


def steps(seconds: float) -> list[dict[str, Any]]:
    """A session that takes so long and leaves something behind."""
    return [{"spawn": ["setsid", "sleep", "600"]}, {"tool": {"name": "Bash"}}, {"wait": seconds}, {"text": "done"}]


def rows(folder: Path, first_seconds: float = 1) -> Path:
    """A file of rows, each with a project of its own; as many as there is room for take longer."""
    file = folder / "rows.jsonl"
    with file.open("w") as lines:
        for number in range(ROWS):
            project = folder / f"project-{number}"
            project.mkdir()
            taken = first_seconds if number < AT_ONCE else 1
            row = {"session_name": f"row-{number}", "agent_type": "coder", "project_dir": str(project)}
            lines.write(json.dumps({**row, "starting_message": "hi", "context": {"stand_in": steps(taken)}}) + "\n")
    return file


@contextmanager
def batch(cluster: RayCluster, file: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """The command, under way."""
    home = str(file.parent)
    environment = {"PATH": "/usr/bin:/bin", "HOME": home, "ANTHROPIC_API_KEY": "sk-ant-test", **RAY}
    with subprocess.Popen(
        [sys.executable, "-P", PROGRAM, cluster.address, str(file), "--progress", "none"],
        cwd=home,
        env=environment,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def lines(file: Path) -> list[dict[str, Any]]:
    """The whole lines of a file that is being written."""
    text = file.read_text() if file.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def until(holds: Callable[[], bool]) -> None:
    """Look until it does, in bounded time."""
    deadline = time.monotonic() + BOUND_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(LOOK_SECONDS)


def markers(run: Path) -> list[str]:
    """Of all cells that were begun."""
    return [line["marker"] for line in lines(run / "journal.jsonl") if line["event"] == "started"]


def is_all_gone(run: Path) -> bool:
    """Whether nothing that the cells of the run have executed is left."""
    return not any(process for marker in markers(run) for process in marked(marker))


def lost(run: Path) -> set[str]:
    """The rows that have lost an attempt with its node."""
    ended = [line for line in lines(run / "journal.jsonl") if line["event"] == "ended"]
    return {line["id"] for line in ended if line["error"] and line["error"]["category"] == "host_lost"}


def assert_all_ended_once(run: Path) -> list[dict[str, Any]]:
    """Each row has one result, which is a success; the results."""
    results = lines(run / "results.jsonl")
    assert Counter(result["id"] for result in results) == Counter(f"row-{number}" for number in range(ROWS))
    assert {(result["status"], result["response"]) for result in results} == {("complete", "done")}
    return results


def test_whoever_dies_every_row_ends_once_and_nothing_is_left(cluster: RayCluster, tmp_path: Path) -> None:
    """First one of the nodes, then the driver, both while sessions are under way; then the same command again."""
    file = rows(tmp_path, LONG_SECONDS)
    run = file.with_suffix(".run")
    *_, second = cluster.raylets or {}
    with batch(cluster, file) as process:
        until(lambda: len(list(run.glob("cells/*/1/events.jsonl"))) == AT_ONCE)
        cluster.kill(second)
        until(lambda: bool(lost(run)))
        process.send_signal(signal.SIGKILL)
        process.wait(BOUND_SECONDS)
    before = (run / "results.jsonl").read_bytes()
    until(lambda: is_all_gone(run))
    cluster.add()
    with batch(cluster, file) as process:
        _, told = process.communicate(timeout=BOUND_SECONDS)
    assert process.returncode == 0, told.decode()
    results = assert_all_ended_once(run)
    assert (run / "results.jsonl").read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    begun = [(line["id"], line["attempt"]) for line in lines(run / "journal.jsonl") if line["event"] == "started"]
    recorded = [(result["id"], one["number"]) for result in results for one in result["attempts"]]
    assert sorted(begun) == sorted(recorded)
    assert {result["id"] for result in results if len(result["attempts"]) > 1} >= lost(run)
    assert is_all_gone(run)


def test_the_command_runs_real_sessions_and_ray_learns_no_key(cluster: RayCluster, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    asked = {"agent_type": "planner", "project_dir": str(tmp_path), "tools": ["Read"], "starting_message": "hi"}
    file.write_text("".join(json.dumps({**asked, "session_name": name}) + "\n" for name in "ab"))
    with offline_model({"turns": [{"text": "Hello from a node."}]}) as endpoint:
        given = {**endpoint.environment(), "ANTHROPIC_API_KEY": SECRET}
        ended = subprocess.run(
            [str(Path(sys.executable).with_name("agentcell")), "batch", str(file), "--on", f"ray://{cluster.address}"],
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8", **given, **RAY},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=BOUND_SECONDS,
            check=False,
        )
    assert ended.returncode == 0, ended.stderr.decode()
    results = lines(file.with_suffix(".run") / "results.jsonl")
    assert {(result["id"], result["response"]) for result in results} == {(name, "Hello from a node.") for name in "ab"}
    assert [file for file in cluster.place.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()] == []
