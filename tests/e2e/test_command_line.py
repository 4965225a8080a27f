"""The commands, on the real SDK and the real CLI."""

import json
import os
import pty
import select
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.host.command_line import gate, started

from agentcell.offline import offline_environment, offline_model
from agentcell.offline.rehearsal import ANSWER

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

BOUND_SECONDS = 120.0
"""For a command; it takes a few seconds."""

SCRIPTS = Path(sys.executable).parent

WORKER_FILE = Path(__file__).parents[2] / "worker/agentcell_worker/agent_subprocess.py"


@pytest.fixture
def surrounding(tmp_path: Path) -> dict[str, str]:
    """An environment with a credential and an address that must not be used."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "ANTHROPIC_API_KEY": "sk-ant-test",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
    }


def run(argv: Sequence[str | Path], environment: dict[str, str], home: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        argv,
        env=environment,
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=BOUND_SECONDS,
        check=False,
    )


def legacy(door: str, project: Path) -> list[str]:
    """The argv of the legacy interface, through the host or without it."""
    command = [str(SCRIPTS / "agentcell-worker")] if door == "guarded" else [sys.executable, str(WORKER_FILE)]
    return [*command, "--project-dir", str(project), "--spec-dir", "spec", "--agent-type", "coder", "--message", "hi"]


def test_offline_a_session_looks_around_and_leaves_the_project_as_it_is(
    surrounding: dict[str, str], tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    ended = run([SCRIPTS / "agentcell", "run", "--offline", "--json", "-C", "project", "hi"], surrounding, tmp_path)
    result = json.loads(ended.stdout)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert (result["status"], result["response"], result["num_turns"]) == ("complete", ANSWER, 2)
    assert (result["tool_calls"], result["permission_denials"]) == (1, [])
    assert list(project.iterdir()) == []
    assert (result["swept_processes"], result["exit_code"]) == (0, 0)


def test_the_doctor_runs_a_session_of_its_own(surrounding: dict[str, str], tmp_path: Path) -> None:
    ended = run([SCRIPTS / "agentcell", "doctor", "--json"], surrounding, tmp_path)
    findings = {finding["subject"]: finding for finding in map(json.loads, ended.stdout.splitlines())}
    assert ended.returncode == 0
    assert (findings["CLI"]["grade"], findings["session"]["grade"]) == ("ok", "ok")
    assert findings["credentials"]["found"] == "ANTHROPIC_API_KEY"
    assert b"sk-ant-test" not in ended.stdout


@pytest.mark.parametrize("door", ["guarded", "bare"])
def test_the_legacy_interface_runs_a_session(tmp_path: Path, door: str) -> None:
    look = {"tools": [{"name": "Bash", "input": {"command": "env > seen.txt"}}]}
    with offline_model({"turns": [look, {"text": "hello"}]}) as endpoint:
        enclosing = {"CLAUDE_CODE_SESSION_ID": "outer", "CLAUDE_CODE_REMOTE": "outer", "TMPDIR": str(tmp_path)}
        ended = run(legacy(door, tmp_path), {**offline_environment(endpoint, tmp_path), **enclosing}, tmp_path)
    answer = json.loads(ended.stdout)
    assert "outer" not in (tmp_path / "seen.txt").read_text()
    assert answer.pop("execution_time") > 0
    assert answer == {
        "success": True,
        "output": {"response": "hello", "agent_type": "coder", "session_name": "agent-session"},
        "error": None,
    }
    assert ended.returncode == 0


def test_the_legacy_interface_says_that_a_signal_ended_it(tmp_path: Path) -> None:
    with gate(tmp_path / "gate") as (opener, wait):
        running = {"name": "Bash", "input": {"command": f"{shlex.join(opener)}; sleep 60"}}
        with offline_model({"turns": [{"tools": [running]}]}) as endpoint:
            environment = {**offline_environment(endpoint, tmp_path), "TMPDIR": str(tmp_path)}  # it leaves files
            with started(legacy("bare", tmp_path), tmp_path, env=environment) as process:
                wait()
                process.send_signal(signal.SIGTERM)
                line, _ = process.communicate(timeout=BOUND_SECONDS)
    answer = json.loads(line)
    assert answer.pop("execution_time") > 0
    assert answer == {"success": False, "output": None, "error": "the session was cancelled by SIGTERM"}
    assert process.returncode == 1


def test_a_terminal_sees_the_answer_before_it_is_whole_and_may_interrupt_it(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with offline_model({"turns": [{"text": "Once upon a time " * 8, "chunks": 8, "stall": "middle"}]}) as endpoint:
        argv = [str(SCRIPTS / "agentcell"), "run", "tell me"]
        terminal = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
        with started(argv, tmp_path, env=offline_environment(endpoint, tmp_path), **terminal) as process:
            os.close(theirs)
            shown = _read_until(ours, b"Once upon a time")
            process.send_signal(signal.SIGINT)
            shown += _read_until(ours, None)
            assert process.wait(BOUND_SECONDS) == 130
    os.close(ours)
    assert shown.decode().startswith("Once upon a time ")
    assert "error (cancelled): the session was cancelled by SIGINT" in shown.decode()
    assert "error · " in shown.decode().splitlines()[-1]


def _read_until(terminal: int, wanted: bytes | None) -> bytes:
    """What is shown up to and with `wanted`, or (None) until the other side is closed."""
    shown = b""
    while wanted is None or wanted not in shown:
        readable, _, _ = select.select([terminal], [], [], BOUND_SECONDS)
        assert readable, f"nothing more is shown after {shown!r}"
        try:
            shown += os.read(terminal, 65536)
        except OSError:  # Linux says so when the other side is closed
            break
    return shown
