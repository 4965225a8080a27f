"""`agentcell-worker` with options: the legacy interface, through the host."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.host.command_line import BOUND_SECONDS, command_line, gate, run_command, started

from agentcell.testing import stand_in


def options(tmp_path: Path) -> list[str]:
    return ["--project-dir", str(tmp_path), "--spec-dir", str(tmp_path / "spec"), "--agent-type", "coder"]


def answer_of(line: bytes) -> dict[str, Any]:
    """The one line, with its time checked and taken off."""
    assert line.count(b"\n") == 1
    answer: dict[str, Any] = json.loads(line)
    assert list(answer) == ["success", "output", "error", "execution_time"]
    assert answer.pop("execution_time") >= 0
    return answer


def test_a_session_that_ends_well_is_a_success(tmp_path: Path) -> None:
    (tmp_path / "message.txt").write_text("do it")
    arguments = [*options(tmp_path), "--message-file", "message.txt", "--session-name", "n"]
    with stand_in([{"text": "done"}]) as worker:
        ended = run_command(command_line(worker, *arguments, module="guard"), tmp_path)
    output = {"response": "done", "agent_type": "coder", "session_name": "n"}
    assert answer_of(ended.stdout) == {"success": True, "output": output, "error": None}
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_session_that_fails_says_why_in_its_own_words(tmp_path: Path) -> None:
    with stand_in([{"fail": {"category": "billing", "message": "no credit"}}]) as worker:
        ended = run_command(command_line(worker, *options(tmp_path), "--message", "x", module="guard"), tmp_path)
    assert answer_of(ended.stdout) == {"success": False, "output": None, "error": "no credit"}
    assert ended.returncode == 1


def test_a_cell_that_is_killed_still_gives_the_line(tmp_path: Path) -> None:
    with stand_in([{"die": "SIGKILL"}]) as worker:
        ended = run_command(command_line(worker, *options(tmp_path), "--message", "x", module="guard"), tmp_path)
    answer = answer_of(ended.stdout)
    assert (answer["success"], answer["output"], ended.returncode) == (False, None, 1)
    assert "SIGKILL" in answer["error"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ["--message", "x"],
            "Fatal error: the following arguments are required: --project-dir, --spec-dir, --agent-type",
        ),
        (["OPTIONS"], "Fatal error: one of the arguments --message --message-file is required"),
        (["OPTIONS", "--message", " "], "Fatal error: starting_message: is blank; say what the agent is to do"),
        (
            ["OPTIONS", "--message", "x", "--project-dir", "/nowhere"],
            "Fatal error: project_dir: /nowhere is not a directory; name the directory the agent works in",
        ),
    ],
)
def test_bad_arguments_give_the_line_too(tmp_path: Path, arguments: list[str], error: str) -> None:
    given = [part for name in arguments for part in (options(tmp_path) if name == "OPTIONS" else [name])]
    ended = run_command(command_line([], *given, module="guard"), tmp_path)
    assert answer_of(ended.stdout) == {"success": False, "output": None, "error": error}
    assert (ended.returncode, ended.stderr) == (1, b"")


def test_what_only_the_cell_can_refuse_is_a_bad_argument_as_well(tmp_path: Path) -> None:
    refusal = {"category": "bad_request", "message": "agent_type: 'x' is not known"}
    with stand_in([{"fail": refusal}]) as worker:
        ended = run_command(command_line(worker, *options(tmp_path), "--message", "x", module="guard"), tmp_path)
    error = "Fatal error: agent_type: 'x' is not known"
    assert answer_of(ended.stdout) == {"success": False, "output": None, "error": error}
    assert ended.returncode == 1


def test_a_signal_cancels_the_session_and_the_line_says_so(tmp_path: Path) -> None:
    with gate(tmp_path / "gate") as (opener, wait), stand_in([{"spawn": opener}, {"hang": True}]) as worker:
        argv = command_line(worker, *options(tmp_path), "--message", "x", module="guard")
        with started(argv, tmp_path) as process:
            wait()
            process.send_signal(signal.SIGTERM)
            line, _ = process.communicate(timeout=BOUND_SECONDS)
    answer = answer_of(line)
    assert (answer["success"], answer["output"], process.returncode) == (False, None, 1)
    assert "SIGTERM" in answer["error"]
