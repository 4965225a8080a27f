"""How a worker keeps its protocol stream to itself, and what it says to input that is no request."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.worker.script import WORKER_SECONDS, as_result, request, run_worker, start_worker

from agentcell_protocol.framing import LINE_LIMIT

NOISE = """
import os, subprocess, sys
from agentcell_worker import stdio
wire = stdio.claim()
print("printed", '{"type": "result", "status": "complete"}', flush=True)
os.write(1, b"no line end")
subprocess.run(["/bin/sh", "-c", "echo from a child; cat; echo forged >&1"], check=True)
sys.__stdout__.write("buffered")
os.write(wire.writes, b"mine")
"""


def test_nothing_that_is_printed_reaches_the_protocol(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-c", NOISE]
    ended = subprocess.run(
        command, input=b"not for a child", capture_output=True, cwd=tmp_path, timeout=WORKER_SECONDS, check=True
    )
    said = b'printed {"type": "result", "status": "complete"}\nno line endfrom a child\nforged\nbuffered'
    assert (ended.stdout, ended.stderr) == (b"mine", said)


@pytest.mark.slow
def test_a_line_over_the_limit_is_refused_by_a_worker(tmp_path: Path) -> None:
    code, (line,), _ = run_worker(tmp_path, b'{"a": "' + b"x" * LINE_LIMIT + b'"}\n')
    result = as_result(line)
    assert (code, result.error and result.error.category) == (2, "bad_request")
    assert "longer than the limit" in result.response


def test_a_bad_request_is_answered_without_the_sdk(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('the project is imported')")
    line = b'{"session_name": "a", "agent_type": "painter", "project_dir": ".", "starting_message": "hi"}\n'
    code, (answer,), errors = run_worker(tmp_path, line, PYTHONPROFILEIMPORTTIME="1")
    assert (code, list(answer)[:3]) == (2, ["status", "response", "session_name"])
    assert (answer["session_name"], answer["agent_type"], answer["id"]) == ("a", "painter", "a")
    assert "use one of planner, coder, qa_reviewer, qa_fixer" in answer["response"]
    assert "agentcell_worker" in errors
    assert "claude_agent_sdk" not in errors


@pytest.mark.parametrize(
    ("members", "member"),
    [
        ({"starting_message": None}, "starting_message"),
        ({"context": {"module": "a"}}, "context.module"),
        ({"colour": "red"}, "colour"),
        ({"protocol": 2}, "protocol"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(tmp_path: Path, members: dict[str, Any], member: str) -> None:
    code, (answer,), _ = run_worker(tmp_path, json.dumps(request(tmp_path, **members)).encode() + b"\n")
    assert (code, answer["error"]["category"], answer["error"]["details"]["member"]) == (2, "bad_request", member)


def test_a_worker_without_stdin_answers(tmp_path: Path) -> None:
    command = ["/bin/sh", "-c", 'exec "$0" -P -m agentcell_worker <&-', sys.executable]
    ended = subprocess.run(command, capture_output=True, cwd=tmp_path, timeout=WORKER_SECONDS, check=False)
    assert ended.returncode == 2
    assert b"stdin ended without a line" in ended.stdout


def test_a_worker_whose_reader_is_gone_ends_with_its_code(tmp_path: Path) -> None:
    with start_worker(tmp_path) as worker:
        assert worker.stdout is not None
        worker.stdout.close()
        _, errors = worker.communicate(b"[]\n", timeout=WORKER_SECONDS)
    assert (worker.returncode, errors) == (2, b"")


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130), ("SIGHUP", 129)])
def test_a_worker_that_waits_for_its_request_can_be_cancelled(tmp_path: Path, name: str, code: int) -> None:
    with start_worker(tmp_path, PYTHONPROFILEIMPORTTIME="1") as worker:
        assert worker.stderr is not None
        for line in worker.stderr:  # its first own import: the signals are handled from then on
            if b"agentcell_worker.stdio" in line:
                break
        worker.send_signal(signal.Signals[name])
        out, _ = worker.communicate(timeout=WORKER_SECONDS)
    assert worker.returncode == code
    assert b'"category":"cancelled"' in out
    assert f'"signal":"{name}"'.encode() in out
