"""`agentcell serve` as a program in another language uses it, on the real SDK and the real CLI."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.e2e.scenes import living
from tests.ending import ending
from tests.host.serve.client import ends

from agentcell.offline import Endpoint, offline_environment, offline_model

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

BOUND_SECONDS = 120

COMMAND = Path(sys.executable).with_name("agentcell")

SCRIPT = {
    "sessions": [
        {"match": "[quick]", "turns": [{"text": "Hello."}]},
        {"match": "[slow]", "turns": [{"text": "Never.", "stall": "start"}]},
    ]
}


@contextmanager
def serve(endpoint: Endpoint, home: Path, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [COMMAND, "serve", *arguments],
        env={**offline_environment(endpoint, home), "TMPDIR": str(home)},  # one that is killed does not clear it
        cwd=home,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with ending(process, BOUND_SECONDS):
        yield process


def line(run_id: str, mark: str, **members: Any) -> str:
    shared = {"session_name": "a", "agent_type": "coder", "project_dir": ".", "starting_message": f"Go on. [{mark}]"}
    return json.dumps({"type": "run", "id": run_id, "request": {**shared, **members}}) + "\n"


def test_several_runs_share_one_pipe_and_one_is_cancelled(tmp_path: Path) -> None:
    with offline_model(SCRIPT) as endpoint, serve(endpoint, tmp_path, "-j", "2") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line("slow", "slow", events="summary") + line("one", "quick") + line("two", "quick"))
        process.stdin.flush()
        lines = []
        for text in process.stdout:
            lines.append(json.loads(text))
            if lines[-1]["type"] == "session_started":
                process.stdin.write('{"type":"cancel","id":"slow"}\n{"type":"shutdown"}\n')
                process.stdin.flush()
        assert process.wait(BOUND_SECONDS) == 0
    assert ends(lines) == {"slow": "cancelled", "one": "complete", "two": "complete"}
    assert {one["response"] for one in lines if one["type"] == "result" and one["status"] == "complete"} == {"Hello."}
    assert living(tmp_path) == []


def test_when_it_is_killed_nothing_of_its_sessions_is_left(tmp_path: Path) -> None:
    with offline_model(SCRIPT) as endpoint, serve(endpoint, tmp_path, "-j", "2") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line("r1", "slow", events="summary") + line("r2", "slow", events="summary"))
        process.stdin.flush()
        started = 0
        while started < 2:
            started += json.loads(process.stdout.readline())["type"] == "session_started"
        session = living(tmp_path)
        assert len(session) >= 2 + 2 * 2  # serve and its server; worker and CLI
        process.kill()
        _, alive = psutil.wait_procs(session, timeout=BOUND_SECONDS)
    assert (alive, living(tmp_path)) == ([], [])
