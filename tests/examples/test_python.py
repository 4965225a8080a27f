"""The Python examples do what they say."""

import json
import os
import re
import select
import socket
from pathlib import Path
from typing import Any

import pytest
from tests.examples.clients import BOUND_SECONDS, EXAMPLES, STALLS, User, python

from agentcell.offline import offline_model

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PLAN = '{"subtasks": [{"status": "%s"}]}'


def bash(command: str) -> dict[str, Any]:
    return {"tools": [{"name": "Bash", "input": {"command": command}}]}


def test_the_app_answers_while_a_session_runs_and_builds_until_the_plan_is_done(tmp_path: Path) -> None:
    finishes = bash(f"echo '{PLAN % 'completed'}' > spec/implementation_plan.json")
    waits = [{"text": "I wait."}, bash("echo up > up; read line < go"), {"text": "Half of it."}]
    script = {
        "sessions": [
            {"session": 1, "turns": [{**waits[0], **waits[1]}, waits[2]]},
            {"session": 2, "turns": [finishes, {"text": "All of it."}]},
        ]
    }
    with offline_model(script) as endpoint:
        user = User.at(tmp_path, endpoint)
        spec = user.project / "spec"
        spec.mkdir()
        (spec / "implementation_plan.json").write_text(PLAN % "pending")
        for name in ("up", "go"):
            os.mkfifo(user.project / name)
        up = os.open(user.project / "up", os.O_RDONLY | os.O_NONBLOCK)
        try:
            with user.starting(python("coder_phase", ".", "spec")) as process:
                assert process.stdout is not None
                port = int(process.stdout.readline().rpartition(b":")[2])
                assert select.select([up], [], [], BOUND_SECONDS)[0], "the tool did not start"
                assert asked(port) == "uses Bash\n"
                (user.project / "go").write_text("go\n")
                out, err = process.communicate(timeout=BOUND_SECONDS)
        finally:
            os.close(up)
    assert (process.returncode, err) == (0, b"")
    lines = out.decode().splitlines()
    assert [re.sub(r"\d+ tokens", "N tokens", line) for line in lines] == [
        "continue: Half of it. (N tokens)",
        "complete: All of it. (N tokens)",
    ]
    user.nothing_is_left()


def asked(port: int) -> str:
    """What the app says of its session."""
    with socket.create_connection(("127.0.0.1", port), BOUND_SECONDS) as connection, connection.makefile() as answer:
        return answer.read()


def test_the_listener_of_each_row_of_a_batch_hears_its_own_session(tmp_path: Path) -> None:
    reads = {"text": "I look.", "tools": [{"name": "Read", "input": {"file_path": "shop.py"}}]}
    script = {
        "sessions": [
            {"match": "What is here", "turns": [reads, {"text": "A shop."}]},
            {"match": "overload", "turns": [{"error": {"status": 401}, "times": "always"}]},
        ]
    }
    rows = [
        {"session_name": "here", "agent_type": "planner", "project_dir": ".", "starting_message": "What is here?"},
        {"session_name": "fails", "agent_type": "planner", "project_dir": ".", "starting_message": "overload"},
        {"session_name": "wrong", "agent_type": "planer", "project_dir": ".", "starting_message": "hi"},
    ]
    with offline_model(script) as endpoint:
        user = User.at(tmp_path, endpoint)
        (user.project / "shop.py").write_text("total = 1\n")
        (user.project / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        ended = user.run(python("batch", "rows.jsonl"))
    assert (ended.returncode, ended.stderr) == (1, "")
    told = ended.stdout.splitlines()
    assert [line for line in told if line.startswith("here ")] == [
        "here says: I look.",
        "here uses Read",
        "here says: A shop.",
        "here ended: complete; tools: Read 1; 10 tokens",
    ]
    failed = [line for line in told if line.startswith("fails ")][-1]
    assert failed.startswith("fails ended: authentication, ")
    assert failed.endswith("; tools: none; 0 tokens")
    [refused] = [line for line in told if line.startswith("wrong ")]
    assert refused.startswith("wrong was refused: agent_type: 'planer' is not known; ")


def test_an_agent_type_of_ones_own_has_its_role_and_its_tools(tmp_path: Path) -> None:
    with offline_model({"turns": [{"text": "Nothing is wrong."}]}) as endpoint:
        ended = User.at(tmp_path, endpoint).run(python("own_agent_type", "Review it."))
        [turn] = [request for request in endpoint.requests if request.kind == "turn"]
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "Nothing is wrong.\n", "")
    role = (EXAMPLES / "python" / "agents" / "reviewer.md").read_text("utf-8").partition("---\n\n")[2].strip()
    assert turn.prompt == f"{role}\n\nReview it."
    tools = {tool["name"] for tool in turn.body["tools"]}
    assert tools >= {"Read", "Grep", "Glob", "Bash"}
    assert tools & {"Write", "Edit", "WebFetch", "WebSearch"} == set()


def test_a_session_that_fails_is_the_exit_code_of_the_example(tmp_path: Path) -> None:
    with offline_model({"turns": [{"error": {"status": 401}, "times": "always"}, STALLS]}) as endpoint:
        ended = User.at(tmp_path, endpoint).run(python("own_agent_type"))
    assert ended.returncode == 1
    assert "401" in ended.stdout
