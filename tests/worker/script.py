"""What a fake CLI says, and clients and workers that run one."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tests.ending import ending

from agentcell_protocol.result import SessionResult
from agentcell_worker.client import AgentClient, create_client

FAKE_CLI = Path(__file__).parent.parent / "faults" / "workers" / "fake_cli.py"

WORKER_SECONDS = 60
"""A worker of these tests ends in three seconds; it is waited for as long as a busy machine may take."""

Step = dict[str, Any]

OPENING: list[Step] = [
    {"await": "initialize"},
    {"await": "prompt"},
    {
        "say": {
            "type": "system",
            "subtype": "init",
            "session_id": "$SESSION",
            "model": "m-1",
            "claude_code_version": "2.1.332",
        }
    },
]


def said(*blocks: dict[str, Any], message_id: str = "msg_1", model: str = "m-1", **members: Any) -> Step:
    """An assistant message."""
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"id": message_id, "role": "assistant", "model": model, "content": list(blocks), "usage": usage}
    return {"say": {"type": "assistant", "message": message, "session_id": "$SESSION", **members}}


def text(text: str) -> dict[str, Any]:
    """A block of text."""
    return {"type": "text", "text": text}


def tool(name: str, use_id: str, **arguments: Any) -> dict[str, Any]:
    """A block that calls a tool."""
    return {"type": "tool_use", "id": use_id, "name": name, "input": arguments}


def result(answer: str | None = "hello", **members: Any) -> Step:
    """A result message, of a success unless the members say otherwise."""
    return {
        "say": {
            "type": "result",
            "subtype": "success",
            "duration_ms": 10,
            "duration_api_ms": 5,
            "is_error": False,
            "num_turns": 1,
            "session_id": "$SESSION",
            "stop_reason": "end_turn",
            "terminal_reason": "completed",
            "total_cost_usd": 0.5,
            "usage": {"input_tokens": 10, "output_tokens": 7},
            "result": answer,
            "permission_denials": [],
            "user_message_uuid": "$PROMPT",
            **members,
        }
    }


def system(subtype: str, **members: Any) -> Step:
    """A system message."""
    return {"say": {"type": "system", "subtype": subtype, "session_id": "$SESSION", "uuid": "u", **members}}


ENDING: list[Step] = [{"await": "eof"}, {"exit": 0}]

SUCCESS: list[Step] = [*OPENING, said(text("hello")), result(), *ENDING]


def fake_cli(folder: Path) -> str:
    """An executable that runs the fake CLI with this Python."""
    path = folder / "claude"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {FAKE_CLI} "$@"\n')
    path.chmod(stat.S_IRWXU)
    return str(path)


def scripted(steps: Sequence[Step]) -> dict[str, str]:
    """The environment that makes the fake CLI take these steps."""
    return {"FAKE_CLI": json.dumps(list(steps))}


def fake_client(folder: Path, steps: Sequence[Step], **options: Any) -> AgentClient:
    """A client whose CLI takes these steps."""
    environment = {**scripted(steps), **options.pop("env", {})}
    client = create_client(folder, None, None, cli_path=fake_cli(folder), env=environment, **options)
    assert isinstance(client, AgentClient)
    return client


def request(folder: Path, **members: Any) -> dict[str, Any]:
    """A request that a worker accepts."""
    basic = {"session_name": "s", "agent_type": "coder", "project_dir": str(folder), "starting_message": "hi"}
    return {**basic, **members}


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """What a worker of these tests gets: nothing of the surrounding environment but the path."""
    home = {"HOME": str(folder), "TMPDIR": str(folder), "ANTHROPIC_API_KEY": "sk-ant-test"}
    return {"PATH": os.environ["PATH"], **home, **variables}


def start_worker(folder: Path, **variables: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """Start a bare worker with all its streams piped; what it gives ends it."""
    command = [sys.executable, "-P", "-m", "agentcell_worker"]
    pipe = subprocess.PIPE
    worker = subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder, env=environment(folder, **variables)
    )
    return ending(worker, WORKER_SECONDS)


def run_worker(folder: Path, line: bytes, **variables: str) -> tuple[int, list[dict[str, Any]], str]:
    """A worker that was sent this on stdin: its exit code, the lines on stdout, and what is on stderr."""
    with start_worker(folder, **variables) as worker:
        out, errors = worker.communicate(line, timeout=WORKER_SECONDS)
    return worker.returncode, [json.loads(line) for line in out.splitlines()], errors.decode(errors="replace")


def as_result(line: dict[str, Any]) -> SessionResult:
    """The line, which the protocol must accept."""
    return SessionResult.model_validate(line)
