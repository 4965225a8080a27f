"""A batch that is killed again and again, at any moment, comes to what it would have come to in one go."""

import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.faults import batch_stand_ins
from tests.faults.batches import BOUND_SECONDS, check_attempts, kill, outcomes, wait_for_rows
from tests.host.command_line import write_rows
from tests.meta.source import ROOT

pytestmark = pytest.mark.slow

KILLS = 20

ROWS = 72
"""More than are done before most of the kills."""

RETRIES = 1

MOST_ROWS = 2
"""Finished in one go before a kill; with none it may come before anything has begun."""

MOST_SECONDS = 0.3
"""After that."""

SEED = 20


def steps(number: int, chance: random.Random) -> Sequence[dict[str, Any]]:
    """What a row's cell does: most take a moment and succeed, some have used a tool by then, some fail or crash."""
    wait = {"wait": round(chance.uniform(0.05, 0.35), 3)}
    if number % 11 == 0:
        return [{"tool": {"name": "Read"}}, wait, {"die": "SIGKILL"}]
    if number % 7 == 0:
        return [wait, {"fail": {"category": "refusal", "message": f"not {number}"}}]
    tool = [{"tool": {"name": "Read"}}] if number % 2 else []
    return [*tool, wait, {"text": f"{number} is done"}]


class Command:
    """A batch: a fork of the process that has all imported. Its pid is its own until it is waited for."""

    def __init__(self, control: socket.socket, home: Path, argv: Sequence[str]) -> None:
        self._control = control
        places = {"HOME": str(home), "TMPDIR": str(home)}
        command = {"argv": argv, "environment": places, "directory": str(home)}
        ours, theirs = os.pipe()
        self.stderr = os.fdopen(ours, "rb")
        socket.send_fds(control, [json.dumps(command).encode()], [theirs])
        os.close(theirs)
        self.life = os.pidfd_open(int(control.recv(100)))

    def kill(self) -> None:
        """Kill it, whether it lives or not."""
        signal.pidfd_send_signal(self.life, signal.SIGKILL)

    def wait(self, timeout: float) -> int:
        """Its exit code; raises TimeoutError while it lives."""
        if not select.select([self.life], [], [], timeout)[0]:
            raise TimeoutError
        self._control.send(b"wait")
        return int(self._control.recv(100))

    def close(self) -> None:
        """Kill it if it still runs, and give back what was taken for it."""
        with suppress(ProcessLookupError):
            self.kill()
        self.stderr.close()
        os.close(self.life)


class Batches:
    """Runs the command in a directory, each time as a fork of one process."""

    def __init__(self, home: Path, control: socket.socket) -> None:
        self._home = home
        self._control = control

    @contextmanager
    def started(self, run_dir: str, jobs: int) -> Iterator[Command]:
        options = ["--run-dir", run_dir, "-j", str(jobs), "--retries", str(RETRIES), "--progress", "json"]
        argv = ["batch", "rows.jsonl", "--min-free-mb", "0", *options]
        with closing(Command(self._control, self._home, argv)) as command:
            yield command

    def run_to_its_end(self, run_dir: str, jobs: int) -> None:
        with self.started(run_dir, jobs) as command:
            told = command.stderr.read()
            assert command.wait(BOUND_SECONDS) == 1, told.decode()  # rows that fail are among them

    def kill_at_any_moment(self, run_dir: str, jobs: int, chance: random.Random) -> None:
        """Begin or go on, and kill it."""
        with self.started(run_dir, jobs) as command:
            if rows := chance.randint(0, MOST_ROWS):
                wait_for_rows(command.stderr, rows)
            select.select([command.life], [], [], chance.uniform(0, MOST_SECONDS))
            kill(command, self._home)


@pytest.fixture
def batches(tmp_path: Path) -> Iterator[Batches]:
    (tmp_path / "home").mkdir()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "none"), "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-m", batch_stand_ins.__name__]
    with (
        ours,
        theirs,
        subprocess.Popen(argv, stdin=theirs.fileno(), env=environment, start_new_session=True) as process,
    ):
        theirs.close()
        try:
            yield Batches(tmp_path / "home", ours)
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_whenever_it_is_killed_nothing_is_lost_and_nothing_done_twice(tmp_path: Path, batches: Batches) -> None:
    home, chance = tmp_path / "home", random.Random(SEED)
    write_rows(home / "rows.jsonl", *((f"row-{number}", steps(number, chance)) for number in range(ROWS)))
    batches.run_to_its_end("clean.run", jobs=8)
    whole = outcomes(home / "clean.run")
    before: dict[str, Any] = {}
    amid = 0
    for _ in range(KILLS):
        batches.kill_at_any_moment("rows.run", 2, chance)
        results = home / "rows.run" / "results.jsonl"
        now = outcomes(home / "rows.run") if results.exists() and results.read_bytes().endswith(b"\n") else before
        assert before.items() <= now.items() <= whole.items()
        before = now
        amid += 0 < len(now) < ROWS
    assert amid >= KILLS // 2
    batches.run_to_its_end("rows.run", jobs=2)
    assert outcomes(home / "rows.run") == whole
    check_attempts(home / "rows.run", RETRIES + 1)
