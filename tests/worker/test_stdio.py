"""How a worker reads its request, and keeps its protocol stream to itself."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.worker.script import WORKER_SECONDS, as_result, request, run_worker, start_worker

from agentcell_protocol.errors import RequestError
from agentcell_protocol.framing import LINE_LIMIT
from agentcell_worker.stdio import read_request

LINE = b'{"session_name": "a"}\n'


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe whose ends are closed afterwards, where the test has not done so."""
    reads, writes = os.pipe()
    yield reads, writes
    for end in (reads, writes):
        try:
            os.close(end)
        except OSError:
            continue


def send(pipe: tuple[int, int], data: bytes, *, ends: bool) -> int:
    """Write into the pipe, perhaps for the last time; its reading end."""
    os.write(pipe[1], data)
    if ends:
        os.close(pipe[1])
    return pipe[0]


def refusal(reads: int | None, **options: Any) -> str:
    """Why there was no request."""
    with pytest.raises(RequestError) as refused:
        read_request(reads, **options)
    return str(refused.value)


@pytest.mark.parametrize(
    ("data", "ends"),
    [
        (LINE, False),
        (LINE, True),
        (LINE.rstrip(), True),
        (b"\xef\xbb\xbf" + LINE.rstrip() + b"\r\n", False),
        (b"\n\r\n  \n" + LINE, False),
    ],
)
def test_one_line_is_read_without_waiting_for_the_end(pipe: tuple[int, int], data: bytes, ends: bool) -> None:
    received = read_request(send(pipe, data, ends=ends), seconds=5)
    assert (received.message, received.has_more) == ({"session_name": "a"}, False)


def test_lines_after_the_request_are_noticed(pipe: tuple[int, int]) -> None:
    assert read_request(send(pipe, LINE + LINE, ends=False), seconds=5).has_more


def test_a_stream_without_a_line_is_refused(pipe: tuple[int, int]) -> None:
    assert "ended without a line" in refusal(send(pipe, b"\n \n", ends=True), seconds=5)


def test_a_stream_that_stays_silent_is_refused_in_time(pipe: tuple[int, int]) -> None:
    assert "no whole line came within 0.05 s" in refusal(pipe[0], seconds=0.05)


def test_no_stream_at_all_is_refused() -> None:
    assert "stdin ended without a line" in refusal(None)


def test_a_terminal_is_refused_at_once() -> None:
    leader, follower = pty.openpty()
    try:
        assert "stdin is a terminal" in refusal(follower)
    finally:
        os.close(leader)
        os.close(follower)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"{\n", "a request is one line"),
        (b'{"session_name": "a",\n', "a request is one line"),
        (b"[1]\n", "an array, not an object"),
        (b"nonsense\n", "not valid JSON"),
    ],
)
def test_a_line_that_is_no_object_is_refused(pipe: tuple[int, int], line: bytes, words: str) -> None:
    assert words in refusal(send(pipe, line, ends=False), seconds=5)


def test_a_file_can_be_the_request(tmp_path: Path) -> None:
    (tmp_path / "request").write_bytes(LINE)
    fd = os.open(tmp_path / "request", os.O_RDONLY)
    try:
        assert read_request(fd, seconds=5).message == {"session_name": "a"}
    finally:
        os.close(fd)


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
