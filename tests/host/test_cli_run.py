"""What `agentcell run` shows, where, and how it ends; its cells are played by the stand-in worker."""

import json
import os
import pty
import select
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import pytest
from tests.host.command_line import BOUND_SECONDS, HANGING, command_line, run_command, started

from agentcell.testing import stand_in

ANSWER: list[dict[str, Any]] = [
    {"text": "I look."},
    {"tool": {"name": "Bash", "input": {"command": "ls \x1b]0;title\x07-l"}}},
    {"text": "It is \x1b[31mred\x1b[0m."},
]

DELTAS: list[dict[str, Any]] = [
    {"emit": {"type": "text_delta", "text": "one "}},
    {"emit": {"type": "text_delta", "text": "block\x1b[2J"}},
    {"text": "one block\x1b[2J"},
    {"emit": {"type": "api_retry", "attempt": 1, "max_retries": 3, "delay_s": 2, "http_status": 529, "error": None}},
    {"emit": {"type": "check", "name": "coverage", "state": "started"}},
    {"emit": {"type": "check", "name": "coverage", "state": "ended"}},
    {"emit": {"type": "text_delta", "text": "and another\n"}},
    {"text": "and another\n"},
]

FAILURE: list[dict[str, Any]] = [
    {"text": "halfway"},
    {"fail": {"category": "authentication", "message": "no \x1b[31mkey", "hint": "set one"}},
]


MADE: list[dict[str, Any]] = [
    {"text": "I wrote it."},
    {
        "result": {
            "flow": {
                "generated_files": ["docs/shop.md"],
                "success": True,
                "error": None,
                "validation": {"valid": False, "issues": ["docs/shop.md: has no heading"]},
                "session_ids": ["s-1"],
            }
        }
    },
]

FINDINGS = ["generated files: docs/shop.md", "issue: docs/shop.md: has no heading"]


def test_in_a_pipe_there_is_only_the_answer(tmp_path: Path) -> None:
    with stand_in(ANSWER) as worker:
        ended = run_command(command_line(worker, "run", "hi"), tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"It is \x1b[31mred\x1b[0m.\n", b"")


def test_in_a_pipe_what_a_flow_made_is_told_on_stderr(tmp_path: Path) -> None:
    with stand_in(MADE) as worker:
        ended = run_command(command_line(worker, "run", "hi"), tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr.decode().splitlines()) == (0, b"I wrote it.\n", FINDINGS)


def test_what_is_piped_in_is_run(tmp_path: Path) -> None:
    with stand_in([{"text": "done\n"}]) as worker:
        ended = run_command(command_line(worker, "run"), tmp_path, stdin=b"do it\n")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"done\n", b"")


def test_in_a_pipe_an_error_is_told_on_stderr_alone(tmp_path: Path) -> None:
    with stand_in(FAILURE) as worker:
        ended = run_command(command_line(worker, "run", "hi"), tmp_path)
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert ended.stderr == b"error (authentication): no key\nhint: set one\n"


@pytest.mark.parametrize(
    ("steps", "code", "category"),
    [(ANSWER, 0, None), (FAILURE, 1, "authentication"), ([{"die": "SIGKILL"}], 1, "crashed")],
)
def test_with_json_there_is_one_line_whatever_happens(
    tmp_path: Path, steps: list[dict[str, Any]], code: int, category: str | None
) -> None:
    with stand_in(steps) as worker:
        ended = run_command(command_line(worker, "run", "--json", "hi"), tmp_path)
    assert (ended.returncode, ended.stdout.count(b"\n"), ended.stderr) == (code, 1, b"")
    result = json.loads(ended.stdout)
    assert list(result)[:3] == ["status", "response", "session_name"]
    assert (result["error"] and result["error"]["category"]) == category


def test_verbose_tells_on_stderr_what_happens(tmp_path: Path) -> None:
    warned = [*ANSWER, {"emit": {"type": "warning", "code": "odd", "message": "looks odd"}}]
    with stand_in(warned) as worker:
        ended = run_command(command_line(worker, "run", "-v", "hi"), tmp_path)
    lines = ended.stderr.decode().splitlines()
    assert ended.stdout == b"It is \x1b[31mred\x1b[0m.\n"
    assert lines[0].startswith("cell ")
    assert lines[1].startswith("session ")
    assert lines[2] == "• Bash ls -l"
    assert lines[-1].startswith("complete · 1 turn · 0 tokens in, 0 out · $0.0000 · ")


def test_a_session_that_takes_too_long_is_a_timeout(tmp_path: Path) -> None:
    with stand_in(HANGING) as worker:
        ended = run_command(command_line(worker, "run", "--timeout", "0.5", "hi"), tmp_path)
    assert (ended.returncode, ended.stdout) == (124, b"")
    assert ended.stderr.startswith(b"error (timeout): ")


def test_a_terminal_sees_text_tools_and_a_closing_line(tmp_path: Path) -> None:
    with stand_in(ANSWER) as worker:
        code, shown, told = _on_a_terminal(command_line(worker, "run", "hi"), tmp_path)
    assert (code, shown) == (0, "I look.\n• Bash ls -l\nIt is red.\n")
    assert told.startswith("complete · 1 turn · 0 tokens in, 0 out · $0.0000 · ")


def test_a_terminal_sees_what_a_flow_made_before_the_closing_line(tmp_path: Path) -> None:
    with stand_in(MADE) as worker:
        code, shown, told = _on_a_terminal(command_line(worker, "run", "hi"), tmp_path)
    *findings, closing = told.splitlines()
    assert (code, shown, findings) == (0, "I wrote it.\n", FINDINGS)
    assert closing.startswith("complete · ")


def test_a_terminal_sees_streamed_text_once(tmp_path: Path) -> None:
    with stand_in(DELTAS) as worker:
        code, shown, told = _on_a_terminal(command_line(worker, "run", "hi"), tmp_path)
    assert (code, shown) == (0, "one block\nand another\n")
    assert told.splitlines()[:2] == ["the API failed (529), asking again in 2 s (1 of 3)", "check: coverage"]


def test_a_terminal_sees_the_error_after_what_was_said(tmp_path: Path) -> None:
    with stand_in(FAILURE) as worker:
        code, shown, told = _on_a_terminal(command_line(worker, "run", "hi"), tmp_path)
    assert (code, shown) == (1, "halfway\n")
    lines = told.splitlines()
    assert lines[:2] == ["error (authentication): no key", "hint: set one"]
    assert lines[2].startswith("error · ")


def test_a_pipe_that_stays_open_holds_no_agent_type_up_that_needs_no_message(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"In French.")
    with stand_in([{"text": "done"}]) as worker, os.fdopen(reader, "rb") as stdin, os.fdopen(writer, "wb"):
        argv = command_line(worker, "run", "--agent-type", "documentation_generator")
        with started(argv, tmp_path, stdin=stdin) as process:
            answer, told = process.communicate(timeout=BOUND_SECONDS)
    note = b"note: stdin is not read; give - as the message to have it read\n"
    assert (process.returncode, answer, told) == (0, b"done\n", note)


def test_a_terminal_without_a_message_is_a_usage_error(tmp_path: Path) -> None:
    with stand_in() as worker:
        code, shown, told = _on_a_terminal(command_line(worker, "run"), tmp_path)
    assert (code, shown) == (2, "")
    assert "there is no message; give one, pipe one in, or give a whole --request" in told


def test_on_a_terminal_a_named_agent_type_may_do_without_a_message(tmp_path: Path) -> None:
    refusal = {"category": "bad_request", "message": "starting_message: is missing; say what"}
    with stand_in([{"fail": refusal}]) as worker:
        code, shown, told = _on_a_terminal(command_line(worker, "run", "--agent-type", "coder"), tmp_path)
    assert (code, shown) == (2, "")
    assert "Error: starting_message: is missing; say what\n" in told


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=str,
)
def test_a_signal_ends_the_session_with_its_result(tmp_path: Path, number: signal.Signals, code: int) -> None:
    with stand_in(HANGING) as worker, started(command_line(worker, "run", "--json", "-v", "hi"), tmp_path) as process:
        _wait_until_it_hangs(process.stderr)
        process.send_signal(number)
        line, _ = process.communicate(timeout=BOUND_SECONDS)
    result = json.loads(line)
    assert process.returncode == code
    assert (result["error"]["category"], result["error"]["details"]["signal"]) == ("cancelled", number.name)


def test_a_second_signal_kills_at_once(tmp_path: Path) -> None:
    # two signals of one kind could arrive as one, and of two kinds either may arrive first
    deaf = [{"ignore": ["SIGTERM", "SIGINT", "EOF"]}, *HANGING]
    with stand_in(deaf) as worker, started(command_line(worker, "run", "-v", "hi"), tmp_path) as process:
        _wait_until_it_hangs(process.stderr)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=BOUND_SECONDS)
    assert process.returncode in {130, 143}


def test_a_signal_that_was_ignored_from_the_start_stays_ignored(tmp_path: Path) -> None:
    under_nohup = (
        "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    with stand_in(HANGING) as worker:
        argv = [sys.executable, "-c", under_nohup, *command_line(worker, "run", "-v", "hi")]
        with started(argv, tmp_path) as process:
            _wait_until_it_hangs(process.stderr)
            process.send_signal(signal.SIGHUP)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=BOUND_SECONDS)
    assert process.returncode == 143


@pytest.mark.parametrize("arguments", [["hi"], ["--json", "hi"]])
def test_a_reader_that_has_left_changes_neither_exit_code_nor_stderr(tmp_path: Path, arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with stand_in([{"text": "long " * 100_000}]) as worker, os.fdopen(writer, "wb") as nowhere:
        argv = command_line(worker, "run", *arguments)
        with started(argv, tmp_path, stdout=nowhere) as process:
            _, told = process.communicate(timeout=BOUND_SECONDS)
    assert (process.returncode, told) == (0, b"")


def test_a_result_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with stand_in(ANSWER) as worker, Path("/dev/full").open("wb") as full:
        argv = command_line(worker, "run", "hi")
        with started(argv, tmp_path, stdout=full) as process:
            _, told = process.communicate(timeout=BOUND_SECONDS)
    assert (process.returncode, told) == (1, b"error: the result cannot be written: No space left on device\n")


def test_a_full_stderr_does_not_change_how_it_ends(tmp_path: Path) -> None:
    with stand_in(ANSWER) as worker, Path("/dev/full").open("wb") as full:
        argv = command_line(worker, "run", "--json", "-v", "hi")
        with started(argv, tmp_path, stderr=full) as process:
            answer, _ = process.communicate(timeout=BOUND_SECONDS)
    assert (process.returncode, json.loads(answer)["status"]) == (0, "complete")


def test_without_any_stdout_the_session_still_runs(tmp_path: Path) -> None:
    without = "import os, sys; os.close(1); os.execv(sys.argv[1], sys.argv[1:])"
    with stand_in(ANSWER) as worker:
        ended = run_command([sys.executable, "-c", without, *command_line(worker, "run", "hi")], tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


@pytest.mark.slow
def test_a_terminal_that_is_held_does_not_stop_the_clocks(tmp_path: Path) -> None:
    sign = tmp_path / "sign_of_life"
    os.mkfifo(sign)
    steps: list[dict[str, Any]] = [
        {"spawn": ["sh", "-c", f"exec sleep 60 > {sign}"]},
        {"text": "x" * 1_000_000},
        {"text": "x"},
        {"hang": True},
    ]
    held, theirs = pty.openpty()
    with stand_in(steps) as worker, os.fdopen(os.open(sign, os.O_RDONLY | os.O_NONBLOCK), "rb") as life:
        argv = command_line(worker, "run", "--timeout", "2", "hi")
        with started(argv, tmp_path, stdin=theirs, stdout=theirs):
            os.close(theirs)
            ended, _, _ = select.select([life], [], [], BOUND_SECONDS / 2)
    os.close(held)
    assert ended


def _wait_until_it_hangs(stderr: IO[bytes] | None) -> None:
    """Read what verbose tells up to the start of the session: from then on its signals are handled."""
    assert stderr is not None
    while not stderr.readline().startswith(b"session "):
        pass


def _on_a_terminal(argv: Sequence[str], home: Path) -> tuple[int, str, str]:
    """Run it with stdin and stdout on a terminal: exit code, what is shown there, and stderr."""
    ours, theirs = pty.openpty()
    with started(argv, home, stdin=theirs, stdout=theirs) as process:
        os.close(theirs)
        shown = b"".join(iter(lambda: _read(ours), b""))
        _, told = process.communicate(timeout=BOUND_SECONDS)
    os.close(ours)
    return process.returncode, shown.decode().replace("\r\n", "\n"), told.decode()


def _read(terminal: int) -> bytes:
    """The next bytes; none once the other side is closed, which Linux reports as an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""
