"""`agentcell-worker`: one request line in, one true result line out, whatever happens to the cell."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.ending import ending
from tests.faults import guarded
from tests.faults.harness import WORKERS

BOUND_SECONDS = 60

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "ANTHROPIC_API_KEY": "sk-ant-test"}


@pytest.fixture
def guard(tmp_path: Path) -> "Guard":
    return Guard(tmp_path)


class Guard:
    """Starts guards around misbehaving workers."""

    def __init__(self, room: Path) -> None:
        self.room = room

    def command(self, worker: str, *argv: str) -> list[str]:
        return [sys.executable, str(guarded.__file__), str(WORKERS / f"{worker}.py"), *argv]

    @property
    def environment(self) -> dict[str, str]:
        return {**ENVIRONMENT, "HOME": str(self.room), "TMPDIR": str(self.room)}

    @contextmanager
    def running(self, worker: str, *argv: str) -> Iterator["subprocess.Popen[bytes]"]:
        process = subprocess.Popen(
            self.command(worker, *argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=self.room,
            env=self.environment,
        )
        with ending(process):
            yield process

    def answer(self, worker: str, *argv: str, line: bytes | None = None, **members: Any) -> tuple[list[Any], int]:
        """What it prints when stdin ends with the request, and its exit code."""
        with self.running(worker, *argv) as process:
            out, err = process.communicate(request(**members) if line is None else line, timeout=BOUND_SECONDS)
            assert err == b""
            return messages(out), process.returncode


def request(**members: Any) -> bytes:
    known = {"session_name": "a", "agent_type": "coder", "project_dir": ".", "starting_message": "hi"}
    return json.dumps({**known, **members}).encode() + b"\n"


def messages(out: bytes) -> list[Any]:
    return [json.loads(line) for line in out.splitlines()]


def send(process: "subprocess.Popen[bytes]", line: bytes) -> None:
    """Write it whole; the pipes are unbuffered, so that waiting for a line sees every line."""
    assert process.stdin is not None
    left = memoryview(line)
    while left:
        left = left[process.stdin.write(left) :]


def next_message(process: "subprocess.Popen[bytes]") -> Any:
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], BOUND_SECONDS)[0], "no line came"
    return json.loads(process.stdout.readline())


def wait_for(process: "subprocess.Popen[bytes]", kind: str) -> Any:
    while (message := next_message(process))["type"] != kind:
        pass
    return message


def wait_for_death(pid: int) -> None:
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([pidfd], [], [], BOUND_SECONDS)[0], f"{pid} lives on"
    finally:
        os.close(pidfd)


def test_the_result_is_one_line_though_stdin_stays_open(guard: Guard) -> None:
    with guard.running("answers_then_exits", "0") as process:
        send(process, request())
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(b'{"status":"complete","response":"done","session_name":"a",')
        assert process.wait(BOUND_SECONDS) == 0
        assert process.stdout.read() == b""


def test_events_are_relayed_when_asked_for(guard: Guard) -> None:
    lines, code = guard.answer("answers_then_exits", "0", events="summary")
    assert [line["type"] for line in lines] == ["hello", "session_started", "text", "result"]
    assert code == 0


def test_a_killed_worker_gives_one_crashed_line_that_names_the_signal(guard: Guard) -> None:
    with guard.running("falls_silent") as process:
        send(process, request(events="summary"))
        pid = next_message(process)["pid"]
        wait_for(process, "usage")
        os.kill(pid, signal.SIGKILL)
        result = next_message(process)
        assert process.wait(BOUND_SECONDS) == 1
    assert (result["status"], result["error"]["category"], result["signal"]) == ("error", "crashed", "SIGKILL")
    assert result["error"]["partial_response"] == "half"
    assert "SIGKILL" in result["response"]


@pytest.mark.parametrize("worker", ["falls_silent", "cleans_up"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_a_signal_cancels_the_session_and_is_named(
    guard: Guard, worker: str, number: signal.Signals, code: int
) -> None:
    with guard.running(worker) as process:
        send(process, request(events="summary"))
        wait_for(process, "text")
        process.send_signal(number)
        result = wait_for(process, "result")
        assert process.wait(BOUND_SECONDS) == code
    assert result["error"]["category"] == "cancelled"
    assert result["error"]["details"]["signal"] == number.name
    assert result["error"]["partial_response"] == "half"


def test_a_signal_while_there_is_no_request_yet_is_answered(guard: Guard) -> None:
    with guard.running("falls_silent") as process:
        send(process, b"\n" * 200_000)  # taken only once it reads, which is after it heeds signals
        process.send_signal(signal.SIGTERM)
        result = next_message(process)
        assert process.wait(BOUND_SECONDS) == 143
    assert (result["error"]["category"], result["session_name"]) == ("cancelled", None)


def test_a_second_signal_does_not_change_how_it_ends(guard: Guard) -> None:
    with guard.running("falls_silent") as process:
        send(process, b"\n" * 200_000)
        process.send_signal(signal.SIGTERM)
        result = next_message(process)  # it has not ended yet, or has just ended
        process.send_signal(signal.SIGHUP)
        assert process.wait(BOUND_SECONDS) == 143
    assert result["error"]["category"] == "cancelled"


@pytest.mark.parametrize(
    ("line", "member"),
    [
        (b"", None),
        (b"{\n", None),
        (b"[1]\n", None),
        (request(session_nam="b"), "session_nam"),
        (request(project_dir="/no/such/directory"), "project_dir"),
        (request(limits={"max_memory": 1}), "limits.max_memory"),
        (request(limits={"max_memory_mb": -1}), "limits.max_memory_mb"),
        (request(limits=[]), "limits"),
        (b'{"type":"run","id":"r1","request":{}}\n', "type"),
    ],
)
def test_a_wrong_request_gives_one_line_that_names_the_member(guard: Guard, line: bytes, member: str | None) -> None:
    lines, code = guard.answer("answers_then_exits", "0", line=line)
    assert [entry["error"]["category"] for entry in lines] == ["bad_request"]
    assert lines[0]["error"]["details"]["member"] == member
    assert lines[0]["error"]["hint"]
    assert code == 2


@pytest.mark.slow
def test_limits_in_the_line_are_enforced(guard: Guard) -> None:
    lines, code = guard.answer("falls_silent", limits={"startup_seconds": 60, "max_execution_seconds": 1})
    assert [line["error"]["details"]["limit"] for line in lines] == ["wall"]
    assert lines[0]["violated_limits"] == ["max_execution_seconds"]
    assert code == 124


def test_a_second_line_is_ignored_with_a_warning(guard: Guard) -> None:
    lines, code = guard.answer("answers_then_exits", "0", line=request() + request())
    assert [notice["code"] for notice in lines[0]["warnings"]] == ["later_lines"]
    assert (len(lines), code) == (1, 0)


def test_a_lifeline_that_ends_ends_the_session(guard: Guard) -> None:
    with guard.running("falls_silent") as process:
        send(process, request(events="summary", lifeline=True))
        wait_for(process, "text")
        assert process.stdin is not None
        process.stdin.close()
        result = wait_for(process, "result")
        assert process.wait(BOUND_SECONDS) == 1
    assert result["error"]["category"] == "host_lost"


def test_a_parent_that_dies_ends_the_session_though_its_pipe_lives_on(guard: Guard) -> None:
    """The write end of the guard's stdin is held by this test, as by what a dead host had forked."""
    stdin, held = os.pipe()
    start = f"import subprocess, signal; subprocess.Popen({guard.command('falls_silent')!r}); signal.pause()"
    starting = subprocess.Popen(
        [sys.executable, "-c", start],
        stdin=stdin,
        stdout=subprocess.PIPE,
        bufsize=0,
        cwd=guard.room,
        env=guard.environment,
    )
    with ending(starting) as parent:
        os.close(stdin)
        with os.fdopen(held, "wb") as pipe:
            pipe.write(request(events="summary", lifeline=True))
            pipe.flush()
            wait_for(parent, "text")
            parent.kill()
            assert wait_for(parent, "result")["error"]["category"] == "host_lost"


def test_a_killed_guard_leaves_a_worker_that_sees_its_stdin_end(guard: Guard) -> None:
    with guard.running("watches_its_lifeline") as process:
        send(process, request(events="summary"))
        pid = next_message(process)["pid"]
        wait_for(process, "text")
        process.kill()
        wait_for_death(pid)


def test_the_result_file_is_written_when_the_worker_died(guard: Guard) -> None:
    file = guard.room / "result.json"
    lines, code = guard.answer("dies_in_a_line", "SIGKILL", result_file="result.json")
    assert messages(file.read_bytes()) == lines
    assert (lines[0]["error"]["category"], code) == ("crashed", 1)


def test_a_result_file_that_cannot_be_written_is_named(guard: Guard) -> None:
    lines, code = guard.answer("answers_then_exits", "0", result_file="no/such/place")
    assert [notice["code"] for notice in lines[0]["warnings"]] == ["result_file"]
    assert code == 0


@pytest.mark.slow
def test_a_stdout_that_is_closed_early_keeps_the_exit_code_and_makes_no_noise(guard: Guard) -> None:
    with guard.running("talks_much", "20000") as process:
        send(process, request(events="full"))
        next_message(process)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(BOUND_SECONDS) == 0
        assert process.stderr.read() == b""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", ">&- 2>&-"])
def test_closed_standard_streams_do_no_harm(guard: Guard, closed: str) -> None:
    shell = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", *guard.command("answers_then_exits", "0")],
        input=request(),
        capture_output=True,
        cwd=guard.room,
        env=guard.environment,
        timeout=BOUND_SECONDS,
        check=False,
    )
    assert shell.returncode == (2 if closed == "<&-" else 0)
    assert shell.stderr == b""
    assert [line["status"] for line in messages(shell.stdout)] == {
        "<&-": ["error"],
        ">&-": [],
        "2>&-": ["complete"],
        ">&- 2>&-": [],
    }[closed]


def test_it_imports_neither_the_sdk_nor_the_worker(guard: Guard) -> None:
    code = (
        "import sys, agentcell.guard; print([m for m in ('claude_agent_sdk', 'agentcell_worker') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=BOUND_SECONDS, check=True)
    assert found.stdout == b"[]\n"
