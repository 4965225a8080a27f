"""The stand-in worker speaks the protocol as the real one does, and misbehaves as it is told."""

import json
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from tests.ending import ending

from agentcell.host import Host
from agentcell.testing import Step, stand_in
from agentcell_protocol.result import SessionResult

SECONDS = 20.0
"""A bound on every wait here; what is waited for takes well under one second."""


def request_line(project: Path, **members: Any) -> bytes:
    base = {
        "session_name": "a",
        "agent_type": "coder",
        "project_dir": str(project),
        "starting_message": "hi",
        "session_id": "5a5e0b5e-0000-4000-8000-000000000001",
    }
    return orjson.dumps({**base, **members}) + b"\n"


def run(command: Sequence[str], request: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, input=request, capture_output=True, timeout=SECONDS, check=False)


def lines(output: bytes) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in output.splitlines()]


@contextmanager
def started(command: Sequence[str], request: bytes) -> Iterator[subprocess.Popen[bytes]]:
    """A worker with its stdin still open, that lives for `SECONDS` at most: no read from it takes longer."""
    with ending(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE), SECONDS) as worker:
        assert worker.stdin is not None
        worker.stdin.write(request)
        worker.stdin.flush()
        yield worker


def read_until(worker: subprocess.Popen[bytes], kind: str) -> dict[str, Any]:
    assert worker.stdout is not None
    for line in worker.stdout:
        message: dict[str, Any] = orjson.loads(line)
        if message["type"] == kind:
            return message
    raise AssertionError(f"no {kind} came")


def test_a_run_without_steps_is_one_truthful_result(tmp_path: Path) -> None:
    with stand_in() as command:
        ended = run(command, request_line(tmp_path))
    [message] = lines(ended.stdout)
    result = SessionResult.model_validate(message)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert result == SessionResult(
        status="complete",
        response="",
        session_name="a",
        id="a",
        agent_type="coder",
        session_id="5a5e0b5e-0000-4000-8000-000000000001",
        model="stand-in",
        cost_usd=0.0,
        num_turns=1,
        stop_reason="end_turn",
        execution_time=result.execution_time,
        working_time=result.working_time,
    )


def test_events_come_in_the_order_of_a_real_session(tmp_path: Path) -> None:
    steps: list[Step] = [{"text": "I look"}, {"tool": {"name": "Read", "input": {"file_path": "a"}}}, {"text": "done"}]
    with stand_in(steps) as command:
        ended = run(command, request_line(tmp_path, events="summary"))
    messages = lines(ended.stdout)
    assert [message["type"] for message in messages] == [
        *("hello", "session_started", "text", "tool_use", "tool_result", "text", "outcome", "result")
    ]
    assert messages[-2]["result"] == messages[-1]
    assert (messages[-1]["response"], messages[-1]["tool_calls"]) == ("done", 1)


def test_a_wrong_request_gets_one_bad_request_line_and_exit_code_2(tmp_path: Path) -> None:
    with stand_in() as command:
        ended = run(command, request_line(tmp_path, promt="hi"))
    [message] = lines(ended.stdout)
    assert (ended.returncode, message["error"]["category"]) == (2, "bad_request")
    assert message["error"]["details"]["member"] == "promt"


def test_each_start_does_the_next_run_and_the_last_one_again_for_every_id_by_itself(tmp_path: Path) -> None:
    with stand_in([{"text": "first"}], [{"text": "second"}]) as command:
        said = [lines(run(command, request_line(tmp_path, id=name)).stdout)[0]["response"] for name in "aaabb"]
    assert said == ["first", "second", "second", "first", "second"]


def test_a_request_brings_its_own_run_in_its_context(tmp_path: Path) -> None:
    with stand_in([{"text": "from the command"}]) as command:
        ended = run(command, request_line(tmp_path, context={"stand_in": [{"text": "from the request"}]}))
    assert lines(ended.stdout)[0]["response"] == "from the request"


@pytest.mark.parametrize(
    ("steps", "status", "output"),
    [
        ([{"exit": 7}], 7, b""),
        ([{"die": "SIGSEGV"}], -signal.SIGSEGV, b""),
        ([{"die": "SIGKILL"}], -signal.SIGKILL, b""),
        ([{"stdout": '{"type": "te'}, {"exit": 0}], 0, b'{"type": "te'),
        ([{"stdout": "\udcff\n", "times": 2}, {"exit": 0}], 0, b"\xff\n\xff\n"),
        ([{"emit": {"type": "new_kind", "x": 1}}, {"exit": 0}], 0, b'{"type":"new_kind","x":1}\n'),
    ],
)
def test_it_ends_and_writes_as_it_is_told(tmp_path: Path, steps: list[Step], status: int, output: bytes) -> None:
    with stand_in(steps) as command:
        ended = run(command, request_line(tmp_path))
    assert (ended.returncode, ended.stdout) == (status, output)


def test_raw_text_on_stderr_stays_out_of_the_protocol(tmp_path: Path) -> None:
    with stand_in([{"stderr": "oh\n", "times": 3}]) as command:
        ended = run(command, request_line(tmp_path))
    assert (ended.stderr, len(lines(ended.stdout))) == (b"oh\noh\noh\n", 1)


def test_a_failure_has_the_category_and_the_exit_code_that_goes_with_it(tmp_path: Path) -> None:
    failure = {"category": "timeout", "message": "too slow", "limit": "wall"}
    with stand_in([{"text": "half"}, {"fail": failure}]) as command:
        ended = run(command, request_line(tmp_path))
    [message] = lines(ended.stdout)
    assert ended.returncode == 124
    assert message["response"] == "too slow"
    assert message["error"] == {
        "category": "timeout",
        "message": "too slow",
        "retryable": False,
        "hint": None,
        "http_status": None,
        "retry_after_s": None,
        "partial_response": "half",
        "details": {"limit": "wall"},
    }


def test_steps_go_on_after_a_result(tmp_path: Path) -> None:
    with stand_in([{"result": {"response": "mine", "num_turns": 9}}, {"exit": 3}]) as command:
        ended = run(command, request_line(tmp_path))
    [message] = lines(ended.stdout)
    assert (ended.returncode, message["response"], message["num_turns"]) == (3, "mine", 9)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_gives_a_cancelled_result(tmp_path: Path, number: signal.Signals) -> None:
    with (
        stand_in([{"text": "half"}, {"hang": True}]) as command,
        started(command, request_line(tmp_path, events="summary")) as worker,
    ):
        read_until(worker, "text")
        worker.send_signal(number)
        error = read_until(worker, "result")["error"]
        status = worker.wait(SECONDS)
    assert (error["category"], error["partial_response"], error["details"]) == (
        "cancelled",
        "half",
        {"signal": number.name},
    )
    assert status == 128 + number


def test_it_hangs_until_its_lifeline_ends(tmp_path: Path) -> None:
    with (
        stand_in([{"hang": True}]) as command,
        started(command, request_line(tmp_path, lifeline=True, events="summary")) as worker,
    ):
        read_until(worker, "session_started")
        assert worker.stdin is not None
        worker.stdin.close()
        error = read_until(worker, "result")["error"]
        status = worker.wait(SECONDS)
    assert (error["category"], status) == ("host_lost", 1)


def test_it_ignores_what_it_is_told_to_ignore(tmp_path: Path) -> None:
    steps: list[Step] = [{"ignore": ["SIGTERM", "EOF"]}, {"text": "deaf"}, {"hang": True}]
    with (
        stand_in(steps) as command,
        started(command, request_line(tmp_path, lifeline=True, events="summary")) as worker,
    ):
        read_until(worker, "text")
        worker.terminate()
        worker.send_signal(signal.SIGINT)
        error = read_until(worker, "result")["error"]
    assert error["details"] == {"signal": "SIGINT"}


def test_a_child_it_leaves_behind_holds_its_stdout(tmp_path: Path) -> None:
    child = "import os, sys, socket; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); s.recv(1)"
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(SECONDS)
        argv = [sys.executable, "-c", child, str(server.getsockname()[1])]
        with (
            stand_in([{"spawn": argv}]) as command,
            started(command, request_line(tmp_path)) as worker,
            server.accept()[0],
        ):
            result = read_until(worker, "result")
            status = worker.wait(SECONDS)
            assert worker.stdout is not None
            is_held = not select.select([worker.stdout], [], [], 0)[0]
    assert (result["status"], status, is_held) == ("complete", 0, True)


def test_what_is_no_step_is_refused_before_anything_starts() -> None:
    with (
        pytest.raises(ValueError, match=r"'txt'.* is no step; a step has one of die, emit, "),
        stand_in([{"txt": "x"}]),
    ):
        raise AssertionError
    with pytest.raises(ValueError, match="is no step"), stand_in([{"text": "x", "exit": 1}]):
        raise AssertionError


def test_it_starts_without_the_sdk_and_without_an_event_loop() -> None:
    code = "import sys, json, agentcell.testing; print(json.dumps(sorted(sys.modules)))"
    output = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, timeout=SECONDS, check=True).stdout
    loaded = set(json.loads(output))
    assert loaded.isdisjoint({"anyio", "asyncio", "claude_agent_sdk", "agentcell_worker"})


REQUEST = {"session_name": "a", "agent_type": "coder", "project_dir": ".", "starting_message": "hi"}


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_host_runs_it_as_its_worker() -> None:
    heard: list[str] = []
    with stand_in([{"text": "halfway"}, {"die": "SIGKILL"}], [{"text": "done"}]) as command, anyio.fail_after(SECONDS):
        async with Host(worker_command=command) as host:
            crashed = await host.run(REQUEST)
            complete = await host.run(REQUEST, on_event=lambda event: heard.append(event["type"]))
    assert crashed.error is not None
    assert (crashed.error.category, crashed.error.partial_response, crashed.signal) == ("crashed", "halfway", "SIGKILL")
    assert (complete.status, complete.response, complete.exit_code) == ("complete", "done", 0)
    assert heard == ["hello", "session_started", "text", "outcome"]


def said_in(result: SessionResult) -> list[str]:
    return [message["content"] for message in lines(Path(result.transcript or "").read_bytes())]


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_host_keeps_its_conversation_and_it_goes_on_with_one_only_where_it_is(tmp_path: Path) -> None:
    first = orjson.loads(request_line(tmp_path))
    second = {**first, "starting_message": "go on", "session_id": None, "resume": first["session_id"]}
    places = {name: str(tmp_path) for name in ("HOME", "XDG_STATE_HOME", "TMPDIR")}
    with anyio.fail_after(SECONDS), stand_in() as command:
        async with Host(worker_command=command) as host:
            run = partial(host.run, env={**places, "ANTHROPIC_API_KEY": "sk-ant-test"})
            unknown = await run(second)
            begun, resumed = [await run(request) for request in (first, second)]
    assert unknown.error is not None
    assert (unknown.error.category, unknown.transcript) == ("unknown_session", None)
    assert (begun.status, resumed.status, begun.transcript) == ("complete", "complete", resumed.transcript)
    assert said_in(resumed) == ["hi", "go on"]
