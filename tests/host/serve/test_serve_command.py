"""The command `agentcell serve` as a process of its own: however it ends, its runs have ended, too."""

import fcntl
import json
import os
import random
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.ending import ending
from tests.faults import serving
from tests.host.command_line import BOUND_SECONDS, environment
from tests.host.serve.client import HANG, ends
from tests.meta.source import ROOT

from agentcell.commands.serving import given_up

BASHFUL = [{"text": "half"}, HANG]


class Program:
    """What has the other ends of its pipes."""

    def __init__(self, process: "subprocess.Popen[bytes]", home: Path) -> None:
        self.process = process
        self._home = home

    def run(self, run_id: str, *steps: dict[str, Any], **members: Any) -> None:
        known = {"session_name": "a", "agent_type": "coder", "project_dir": str(self._home), "starting_message": "hi"}
        request = {**known, "context": {"stand_in": list(steps)}, **members}
        self.send({"type": "run", "id": run_id, "request": request})

    def wait_until_nothing_goes_in(self) -> None:
        """Wait until its stdout is full, which is looked at for a bounded time."""
        assert self.process.stdout is not None
        stdout = self.process.stdout.fileno()
        enough = fcntl.fcntl(stdout, fcntl.F_GETPIPE_SZ) - select.PIPE_BUF
        deadline = time.monotonic() + BOUND_SECONDS
        while int.from_bytes(fcntl.ioctl(stdout, termios.FIONREAD, bytes(4)), sys.byteorder) < enough:
            assert time.monotonic() < deadline
            select.select([], [], [], 0.01)

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    def next(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], BOUND_SECONDS)[0], "no line came"
        message = json.loads(self.process.stdout.readline())
        assert isinstance(message, dict)
        return message

    def until(self, kind: str, run_id: str | None = None) -> dict[str, Any]:
        while (message := self.next())["type"] != kind or run_id not in {None, message.get("id")}:
            pass
        return message

    def hangs(self, run_id: str) -> int:
        """Begin a run that does not end; the pid of its cell."""
        self.run(run_id, *BASHFUL, events="summary")
        pid = self.until("hello", run_id)["pid"]
        assert isinstance(pid, int)
        self.until("text", run_id)
        return pid

    def rest(self) -> list[dict[str, Any]]:
        """All lines that are still to come."""
        assert self.process.stdout is not None
        return [json.loads(line) for line in self.process.stdout.read().splitlines()]

    def code(self) -> int:
        return self.process.wait(BOUND_SECONDS)


def command(*arguments: str) -> list[str]:
    return [sys.executable, str(serving.__file__), "serve", *arguments]


@contextmanager
def serve(home: Path, *arguments: str, **options: Any) -> Iterator[Program]:
    process = subprocess.Popen(
        options.pop("argv", command(*arguments)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        cwd=home,
        env=environment(home, PYTHONPATH=str(ROOT), TMPDIR=str(home)),
        **options,
    )
    with ending(process, BOUND_SECONDS):
        yield Program(process, home)


def wait_for_death(pid: int) -> None:
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([pidfd], [], [], BOUND_SECONDS)[0], f"{pid} lives on"
    finally:
        os.close(pidfd)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_a_signal_ends_it_with_all_results(tmp_path: Path, number: signal.Signals, code: int) -> None:
    with serve(tmp_path, "-j", "1") as program:
        pid = program.hangs("r1")
        program.run("r2")
        program.send({"type": "cancel", "id": "r9"})
        program.until("warning")
        program.process.send_signal(number)
        lines = program.rest()
        assert (ends(lines), program.code()) == ({"r1": "cancelled", "r2": "cancelled"}, code)
        assert {line["error"]["details"]["signal"] for line in lines if line["type"] == "result"} == {number.name}
        wait_for_death(pid)


def test_a_second_signal_kills_what_minds_nothing(tmp_path: Path) -> None:
    with serve(tmp_path, "-j", "1") as program:
        program.run("r1", {"ignore": ["SIGTERM"]}, *BASHFUL, events="summary")
        program.until("text")
        program.run("r2")
        program.process.send_signal(signal.SIGTERM)
        program.until("result", "r2")  # the signal has been heard
        program.process.send_signal(signal.SIGINT)
        result = program.until("result", "r1")
        assert (result["error"]["category"], result["signal"], program.code()) == ("cancelled", "SIGKILL", 143)


def test_the_end_of_stdin_ends_it_with_all_results(tmp_path: Path) -> None:
    with serve(tmp_path, "-j", "1") as program:
        pid = program.hangs("r1")
        program.run("r2")
        assert program.process.stdin is not None
        program.process.stdin.close()
        assert ends(program.rest()) == {"r1": "cancelled", "r2": "cancelled"}
        assert program.code() == 0
        wait_for_death(pid)


def test_a_stdout_that_is_closed_ends_it_with_a_word(tmp_path: Path) -> None:
    with serve(tmp_path, stderr=subprocess.PIPE) as program:
        pid = program.hangs("r1")
        assert program.process.stdout is not None
        assert program.process.stderr is not None
        program.process.stdout.close()
        said = program.process.stderr.read()
        assert said == b"error: nothing can be written to stdout (Broken pipe), so all runs were cancelled\n"
        assert program.code() == 1
        wait_for_death(pid)


def test_when_it_is_killed_its_cells_end(tmp_path: Path) -> None:
    with serve(tmp_path) as program:
        pids = [program.hangs("r1"), program.hangs("r2")] if os.cpu_count() != 1 else [program.hangs("r1")]
        program.process.kill()
        for pid in pids:
            wait_for_death(pid)


def test_a_program_that_is_killed_ends_it_though_its_pipes_live_on(tmp_path: Path) -> None:
    """This test has the pipes, as what a dead program had forked would have."""
    start = f"import subprocess, signal; subprocess.Popen({command()!r}); signal.pause()"
    with serve(tmp_path, argv=[sys.executable, "-c", start]) as program:
        pid = program.hangs("r1")
        program.process.kill()
        lines = program.rest()
        assert ends(lines) == {"r1": "cancelled"}
        assert lines[-1]["error"]["details"]["by"] == "parent"
        wait_for_death(pid)


def test_a_reader_that_reads_nothing_does_not_hold_up_two_signals(tmp_path: Path) -> None:
    with serve(tmp_path, "-j", "1", stderr=subprocess.PIPE) as program:
        program.run("r1", {"text": "x" * 4000, "times": 200}, *BASHFUL, events="summary")
        program.until("text")
        program.wait_until_nothing_goes_in()
        for number in (signal.SIGTERM, signal.SIGINT):
            program.process.send_signal(number)
        assert program.code() in {143, 130}  # whichever was delivered first
        assert program.process.stderr is not None
        assert program.process.stderr.read().decode() == given_up(["r1"]) + "\n"


def test_a_flood_of_lines_that_are_refused_costs_no_run_its_result(tmp_path: Path) -> None:
    with serve(tmp_path, "-j", "1") as program:
        program.hangs("r1")
        with ThreadPoolExecutor(1) as reading:
            lines = reading.submit(program.rest)
            assert program.process.stdin is not None
            program.process.stdin.write(b"1\n" * 60_000)
            program.process.send_signal(signal.SIGTERM)
            assert program.code() == 143
            assert ends(lines.result(BOUND_SECONDS)) == {"r1": "cancelled"}


def test_of_many_results_that_are_given_up_a_few_are_named() -> None:
    remedy = "nobody took the last lines from stdout; read to the end, or name a result_file"
    assert given_up(["r1"]) == f"error: the result of 1 run was given up (r1): {remedy}"
    said = "error: the results of 13 runs were given up (r0, r1, r2, r3, r4, r5, r6, r7, r8, r9 and 3 more)"
    assert given_up([f"r{number}" for number in range(13)]) == f"{said}: {remedy}"


@pytest.mark.parametrize(("closed", "named"), [("<&-", b"stdin"), (">&-", b"stdout")])
def test_without_a_stream_to_serve_it_says_so(tmp_path: Path, closed: str, named: bytes) -> None:
    shell = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", *command()],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(tmp_path, PYTHONPATH=str(ROOT)),
        timeout=BOUND_SECONDS,
        check=False,
    )
    assert (shell.returncode, shell.stdout) == (2, b"")
    assert b"Error: " + named + b" is closed; " in shell.stderr


def test_lines_may_come_from_a_file(tmp_path: Path) -> None:
    request = {"session_name": "a", "agent_type": "coder", "project_dir": str(tmp_path), "starting_message": "hi"}
    lines: list[dict[str, Any]] = [{"type": "run", "id": "r1", "request": request}, {"type": "shutdown"}]
    (tmp_path / "lines").write_text("\n".join(map(json.dumps, lines)))
    with (tmp_path / "lines").open("rb") as stdin, (tmp_path / "out").open("wb") as stdout:
        ended = subprocess.run(
            command(),
            stdin=stdin,
            stdout=stdout,
            env=environment(tmp_path, PYTHONPATH=str(ROOT), TMPDIR=str(tmp_path)),
            timeout=BOUND_SECONDS,
            check=False,
        )
    written = [json.loads(line) for line in (tmp_path / "out").read_bytes().splitlines()]
    assert (ended.returncode, [line["type"] for line in written]) == (0, ["hello", "result"])
    assert ends(written) == {"r1": "complete"}


RUNS = 200

SEED = 7

KINDS: list[list[dict[str, Any]]] = [
    [{"text": "done"}],
    [{"text": "words " * 100, "times": 20}],
    [{"wait": 0.05}],
    BASHFUL,
    [{"spawn": ["tail", "-f", "/dev/null"]}, {"text": "done"}],
    [{"die": "SIGKILL"}],
]
"""What the stand-ins do; the fourth kind ends only when it is cancelled."""


@pytest.mark.slow
def test_hundreds_of_runs_with_random_cancels_have_one_result_each(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    kinds = {f"r{number}": chance.choice(KINDS) for number in range(RUNS)}
    doomed = [run_id for run_id in kinds if chance.random() < 0.3]
    with serve(tmp_path, "-j", "8") as program:
        for run_id, steps in kinds.items():
            program.run(run_id, *steps, events="full" if steps is BASHFUL else chance.choice(["none", "summary"]))
        lines, results = [program.next()], 0
        while results < RUNS:
            lines.append(program.next())
            results += lines[-1]["type"] == "result"
            if doomed and chance.random() < 0.3:
                program.send({"type": "cancel", "id": doomed.pop(chance.randrange(len(doomed)))})
            if lines[-1]["type"] == "text" and kinds[lines[-1]["id"]] is BASHFUL:
                program.send({"type": "cancel", "id": lines[-1]["id"]})
        program.send({"type": "shutdown"})
        lines += program.rest()
        assert program.code() == 0
    told = ends(lines)
    assert sorted(told) == sorted(kinds)
    assert {told[run_id] for run_id, steps in kinds.items() if steps is BASHFUL} == {"cancelled"}
    assert set(told.values()) == {"complete", "cancelled", "crashed"}
    for run_id in kinds:
        own = [line["type"] for line in lines if line.get("id") == run_id and line.get("code") != "unknown_run"]
        assert (own.count("result"), own[-1]) == (1, "result")
