"""`agentcell stop` ends the batch that has a run directory, and nothing else."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import orjson
import pytest
from tests.host.batch.run_directory import begun
from tests.host.command_line import BOUND_SECONDS, batch_line, gate, run_command, started, write_rows

from agentcell.batch.halt import NotInterruptedError, interrupt
from agentcell.batch.lock import holder, locked
from agentcell.commands.no_batch import MADE
from agentcell.testing import stand_in

COMMAND = [sys.executable, "-c", "import sys; from agentcell.cli import main; sys.exit(main())"]


@pytest.fixture
def worker() -> Iterator[tuple[str, ...]]:
    with stand_in([{"text": "done"}]) as argv:
        yield argv


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """One in which no batch runs."""
    with begun(tmp_path / "rows.run"):
        return tmp_path / "rows.run"


def stop(directory: Path, home: Path) -> CompletedProcess[bytes]:
    return run_command([*COMMAND, "stop", str(directory)], home)


def results(run_dir: Path) -> dict[str, str]:
    lines = map(orjson.loads, (run_dir / "results.jsonl").read_bytes().splitlines())
    return {line["id"]: line["status"] for line in lines}


def status(run_dir: Path, home: Path) -> dict[str, Any]:
    shown = run_command([*COMMAND, "status", "--json", str(run_dir)], home)
    assert (shown.returncode, shown.stderr) == (0, b"")
    message: dict[str, Any] = json.loads(shown.stdout)
    return message


@pytest.mark.slow
def test_it_ends_a_batch_as_an_interrupt_does_and_again_at_once(worker: tuple[str, ...], tmp_path: Path) -> None:
    with gate(tmp_path / "gate") as (opens, wait):
        hangs: list[dict[str, Any]] = [
            {"tool": {"name": "Read", "input": {"file_path": "secret"}}},
            {"spawn": opens},
            {"hang": True},
        ]
        rows = write_rows(tmp_path / "rows.jsonl", ("hangs", hangs), ("waits", []))
        argv = batch_line(worker, str(rows), "-j", "1", "--grace", "3600")
        with started(argv, tmp_path) as batch:
            wait()
            run_dir = tmp_path / "rows.run"
            seen = status(run_dir, tmp_path)
            assert (seen["state"], seen["pid"], seen["total"], seen["pending"]) == ("running", batch.pid, 2, 1)
            assert [(cell["id"], cell["attempt"]) for cell in seen["running"]] == [("hangs", 1)]
            first = stop(run_dir, tmp_path)
            assert (first.returncode, first.stderr) == (0, b"")
            assert first.stdout.startswith(f"told process {batch.pid} to stop".encode())
            assert stop(run_dir, tmp_path).returncode == 0
            told = batch.communicate(timeout=BOUND_SECONDS)[1].decode()
    assert batch.returncode == 130
    assert told.splitlines()[-1].endswith("2 rows are pending: run the same command again to go on"), told
    assert results(run_dir) == {}
    after = status(run_dir, tmp_path)
    assert (after["state"], after["pending"], after["pid"]) == ("stopped", 2, None)
    assert after["reason"].startswith("interrupted by SIGINT")


def test_where_no_batch_runs_it_says_so(run_dir: Path, tmp_path: Path) -> None:
    ended = stop(run_dir, tmp_path)
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert ended.stderr == f"Error: {run_dir}: no batch runs there\n".encode()


def test_a_process_that_has_the_pid_of_a_dead_batch_is_left_alone(run_dir: Path, tmp_path: Path) -> None:
    with started(["cat"], tmp_path, stdin=-1) as other:
        lock = {"pid": other.pid, "since": 1.0, "started": 1.0, "host": os.uname().nodename}
        (run_dir / "lock").write_bytes(orjson.dumps(lock))
        assert stop(run_dir, tmp_path).returncode == 1
        with locked(run_dir):
            (run_dir / "lock").write_bytes(orjson.dumps(lock))
            ended = stop(run_dir, tmp_path)
        assert ended.returncode == 1
        assert b"cannot be seen from here" in ended.stderr
        assert other.communicate(b"alive", timeout=BOUND_SECONDS)[0] == b"alive"


def test_a_batch_that_has_not_said_who_it_is_is_left_alone(run_dir: Path, tmp_path: Path) -> None:
    with locked(run_dir):
        (run_dir / "lock").write_bytes(b"")
        assert holder(run_dir) is None
        ended = stop(run_dir, tmp_path)
    assert (ended.returncode, b"has just begun there" in ended.stderr) == (1, True)


def test_what_is_no_run_directory_is_a_mistake(run_dir: Path, tmp_path: Path) -> None:
    meant = f"there is no rows; did you mean {run_dir.name}?"
    for name, told in (("rows", meant), ("none", f"there is no none; {MADE}")):
        ended = stop(Path(name), tmp_path)
        assert (ended.returncode, ended.stdout) == (2, b"")
        assert ended.stderr.decode().splitlines()[-1] == f"Error: {told}"


CANCELLING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ignoring(count: int) -> Iterator[list[int]]:
    """Within, this process ignores so many of them; the others that came."""
    told: list[int] = []
    former = {number: signal.signal(number, lambda number, _: told.append(number)) for number in CANCELLING}
    try:
        for number in CANCELLING[:count]:
            signal.signal(number, signal.SIG_IGN)
        yield told
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_it_sends_the_first_signal_that_is_not_ignored(run_dir: Path, count: int) -> None:
    with ignoring(count) as told, locked(run_dir):
        assert interrupt(run_dir) == os.getpid()
    assert told == [CANCELLING[count]]


def test_a_process_that_ignores_all_of_them_is_told_of(run_dir: Path) -> None:
    with ignoring(3), locked(run_dir), pytest.raises(NotInterruptedError) as refusal:
        interrupt(run_dir)
    assert str(refusal.value) == f"process {os.getpid()} runs it, and ignores all signals that would end it"


def test_a_batch_that_a_script_has_in_the_background_is_ended_too(worker: tuple[str, ...], tmp_path: Path) -> None:
    with gate(tmp_path / "gate") as (opens, wait):
        rows = write_rows(tmp_path / "rows.jsonl", ("hangs", [{"spawn": opens}, {"hang": True}]))
        argv = batch_line(worker, str(rows), "--grace", "0")
        with started(["sh", "-c", '"$@" & wait "$!"', "sh", *argv], tmp_path) as shell:
            wait()
            assert stop(tmp_path / "rows.run", tmp_path).returncode == 0
            told = shell.communicate(timeout=BOUND_SECONDS)[1].decode()
    assert (shell.returncode, results(tmp_path / "rows.run")) == (143, {})
    assert told.splitlines()[-1].startswith("interrupted by SIGTERM. 1 row is pending")
