"""What any program must do that claims to be a bare cell, seen with the stand-in; the checks see it of the worker.

A worker reads one request line from stdin, writes lines to stdout, the last of which is the result, and exits
with the code that the result asks for.
"""

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agentcell_protocol.exitcodes import exit_code
from agentcell_protocol.result import SessionResult
from agentcell_protocol.schema import committed

WAIT_SECONDS = 60
"""For an answer that takes a second; a busy machine starts several workers at once."""

STAND_IN = (sys.executable, "-P", "-m", "agentcell.testing")

REQUEST = {"session_name": "a", "agent_type": "coder", "project_dir": ".", "starting_message": "hi"}
LINE = json.dumps(REQUEST)


@dataclass(frozen=True)
class Ending:
    """What a worker wrote and how it exited."""

    lines: list[dict[str, Any]]
    code: int

    @property
    def result(self) -> dict[str, Any]:
        return self.lines[-1]


class Worker:
    """A worker's command, to be run in an empty project with an environment of its own."""

    def __init__(self, command: tuple[str, ...], project: Path) -> None:
        self._command = command
        self._project = project
        self._environment = {"PATH": os.environ["PATH"], "HOME": str(project.parent), "LANG": "C.UTF-8"}

    def given(self, stdin: bytes) -> Ending:
        """The ending of a worker whose stdin holds these bytes, and then ends."""
        with self._started() as child:
            output, _ = child.communicate(stdin, timeout=WAIT_SECONDS)
            return ending(output, child.returncode)

    def given_and_left_open(self, stdin: bytes) -> Ending:
        """The same, of a worker whose stdin stays open until it has exited."""
        with self._started() as child:
            assert child.stdin is not None
            assert child.stdout is not None
            os.write(child.stdin.fileno(), stdin)
            output = b"".join(iter(lambda: read(child.stdout), b""))
            return ending(output, child.wait(WAIT_SECONDS))

    @contextmanager
    def _started(self) -> Iterator[subprocess.Popen[bytes]]:
        with subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._project,
            env=self._environment,
        ) as child:
            try:
                yield child
            finally:
                child.kill()


def read(stream: Any) -> bytes:
    """The next bytes, empty at the end."""
    assert select.select([stream], [], [], WAIT_SECONDS)[0], "the worker neither writes nor exits"
    return os.read(stream.fileno(), 65_536)


def ending(output: bytes, code: int) -> Ending:
    """Every line must be strict JSON, and the last byte a line feed."""
    assert output.endswith(b"\n")
    return Ending([json.loads(line) for line in output.decode("utf-8").removesuffix("\n").split("\n")], code)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def worker(project: Path) -> Worker:
    return Worker(STAND_IN, project)


def is_a_true_result(ended: Ending) -> None:
    """The last line is a result, the only one, in its order, and the exit code agrees."""
    Draft202012Validator(json.loads(committed("result"))).validate(ended.result)
    assert list(ended.result)[:4] == ["status", "response", "session_name", "type"]
    assert [line["type"] for line in ended.lines].count("result") == 1
    assert ended.code == exit_code(SessionResult.model_validate(ended.result).error)


def refuses(ended: Ending, member: str | None, remedy: str) -> None:
    """One line, a bad request, which names the member and the remedy; exit 2."""
    is_a_true_result(ended)
    assert len(ended.lines) == 1
    error = ended.result["error"]
    assert (error["category"], error["details"]["member"], error["hint"]) == ("bad_request", member, remedy)
    assert ended.code == 2


@pytest.mark.parametrize("stdin", [b"", b"\n", b"\r\n \n"], ids=["nothing", "a line end", "blank lines"])
def test_an_empty_stdin_is_refused(worker: Worker, stdin: bytes) -> None:
    refuses(worker.given(stdin), None, "send the request as one line of JSON on stdin")


ONE_LINE = "send one JSON object on one line"


@pytest.mark.parametrize(
    ("line", "member", "remedy"),
    [
        ("hello", None, ONE_LINE),
        ("[1]", None, ONE_LINE),
        (json.dumps({**REQUEST, "max_turn": 3}), "max_turn", "did you mean max_turns?"),
        (json.dumps({**REQUEST, "protocol": 2}), "protocol", "send 1, or leave it out"),
    ],
    ids=["no JSON", "an array", "an unknown member", "another protocol"],
)
@pytest.mark.parametrize("send", [Worker.given, Worker.given_and_left_open], ids=["closed", "left open"])
def test_a_wrong_line_is_refused_without_waiting_for_the_end(
    worker: Worker, send: Callable[[Worker, bytes], Ending], line: str, member: str | None, remedy: str
) -> None:
    refuses(send(worker, line.encode() + b"\n"), member, remedy)


def test_a_line_without_a_line_end_is_a_line(worker: Worker) -> None:
    refuses(worker.given(b'{"session_name":"a"}'), "agent_type", "add it: every request has one")


def test_a_bom_before_and_a_carriage_return_after_the_line_are_forgiven(worker: Worker) -> None:
    refuses(worker.given(b'\xef\xbb\xbf{"session_name":"a"}\r\n'), "agent_type", "add it: every request has one")


def test_of_two_lines_the_first_is_the_request(worker: Worker) -> None:
    refuses(worker.given(b'{"session_name":"a"}\nhello\n'), "agent_type", "add it: every request has one")


@pytest.mark.parametrize("start", [b"{\n", b'{\n  "session_name": "a",\n'])
def test_the_start_of_an_object_gets_the_hint_that_a_request_is_one_line(worker: Worker, start: bytes) -> None:
    refuses(worker.given(start), None, "write the whole object on one line, without line breaks")


def test_a_line_that_is_cut_by_the_end_of_stdin_gets_the_hint_to_end_it(worker: Worker) -> None:
    refuses(worker.given(b"{"), None, "write the whole object and a line feed before you close stdin")


def test_a_refusal_says_whose_request_it_was(worker: Worker) -> None:
    ended = worker.given(json.dumps({**REQUEST, "id": "row-1", "max_turns": 0}).encode() + b"\n")
    refuses(ended, "max_turns", "give 1 or more")
    assert (ended.result["session_name"], ended.result["id"]) == ("a", "row-1")


@pytest.mark.parametrize("send", [Worker.given, Worker.given_and_left_open], ids=["closed", "left open"])
def test_a_session_gives_exactly_one_line_when_no_events_are_asked_for(
    worker: Worker, send: Callable[[Worker, bytes], Ending]
) -> None:
    ended = send(worker, LINE.encode() + b"\n")
    is_a_true_result(ended)
    assert len(ended.lines) == 1
    assert (ended.result["status"], ended.result["session_name"], ended.code) == ("complete", "a", 0)


def test_events_come_before_the_result_and_begin_with_hello(worker: Worker) -> None:
    ended = worker.given(json.dumps({**REQUEST, "events": "summary"}).encode() + b"\n")
    is_a_true_result(ended)
    types = [line["type"] for line in ended.lines]
    assert (types[0], types[-1]) == ("hello", "result")
    assert {"session_started", "outcome"} <= set(types)
    schema = Draft202012Validator(json.loads(committed("event")))
    for event in ended.lines[:-1]:
        schema.validate(event)
    outcome = next(line["result"] for line in ended.lines if line["type"] == "outcome")
    assert (outcome["status"], outcome["response"]) == (ended.result["status"], ended.result["response"])


def test_a_result_file_holds_the_result_line(worker: Worker, project: Path) -> None:
    ended = worker.given(json.dumps({**REQUEST, "result_file": "result.json"}).encode() + b"\n")
    is_a_true_result(ended)
    assert json.loads((project / "result.json").read_bytes()) == ended.result
