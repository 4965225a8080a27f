"""`agentcell conformance`: what is asked of it, what it prints, and how it ends."""

import json
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.conformance.broken_programs import command
from tests.host.command_line import BOUND_SECONDS, gate, run_command, started

from agentcell.conformance.check import Check
from agentcell.conformance.host_checks import HOST_CHECKS
from agentcell.conformance.worker_checks import WORKER_CHECKS

CONFORMANCE = [sys.executable, "-c", "from agentcell.cli import main; main()", "conformance"]

SOUND = command("workers", ("none",))


def test_a_check_that_passes_is_a_line_of_a_table(tmp_path: Path) -> None:
    ended = run_command([*CONFORMANCE, "worker", "--only", "w23", "--", *SOUND], tmp_path)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout.decode().splitlines() == ["W23  passed  what is no JSON is refused", "1 passed"]


def test_the_program_needs_no_dashes_before_it(tmp_path: Path) -> None:
    ended = run_command([*CONFORMANCE, "worker", "--only", "W23", *SOUND], tmp_path)
    assert (ended.returncode, ended.stdout.splitlines()[-1]) == (0, b"1 passed")


def test_with_json_a_finding_is_an_object(tmp_path: Path) -> None:
    ended = run_command([*CONFORMANCE, "worker", "--json", "--only", "W24", "--", *SOUND], tmp_path)
    assert ended.returncode == 0
    assert [json.loads(line) for line in ended.stdout.splitlines()] == [
        {"number": "W24", "title": "an array is refused", "grade": "passed", "expected": "", "came": "", "remedy": ""}
    ]


def test_one_that_fails_says_what_came_and_what_to_do(tmp_path: Path) -> None:
    checks = ["--only", "W12", "--only", "W24"]
    ended = run_command([*CONFORMANCE, "worker", *checks, "--", *command("workers", ("prints on stdout",))], tmp_path)
    assert ended.returncode == 1
    assert [line.strip() for line in ended.stdout.decode().splitlines()] == [
        "W12  failed  without events there is one line",
        "expected: one line",
        r"came:     2, the first 'worker is starting\n'",
        "→ send events only if they are asked for",
        "W24  passed  an array is refused",
        "1 passed, 1 failed",
    ]


def test_a_program_that_says_nothing_fails(tmp_path: Path) -> None:
    ended = run_command([*CONFORMANCE, "host", "--only", "H06", "--", "true"], tmp_path)
    assert ended.returncode == 1
    assert b"came:     nothing, and exit code 0" in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["worker"], "Missing argument"),
        (["worker", "--only", "W99", "--", "true"], "W99 is no check; the numbers are W01 to W46"),
        (["worker", "--", "no-such-program"], "no-such-program: there is no such program"),
        (["worker", "--patience", "0", "--", "true"], "0.0 is not in the range 6<=x<=3600"),
        (["worker", "--env", "A", "--", "true"], "'A' is not of the form NAME=VALUE"),
    ],
    ids=["no program", "no such check", "no such program", "no patience", "no variable"],
)
def test_a_wrong_usage_is_told(arguments: list[str], reason: str, tmp_path: Path) -> None:
    ended = run_command([*CONFORMANCE, *arguments], tmp_path)
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert reason in ended.stderr.decode()


def test_a_program_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\0")
    program.chmod(0o700)
    ended = run_command([*CONFORMANCE, "worker", "--only", "W23", "--", str(program)], tmp_path)
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert f"{program} does not start: Exec format error; see that it runs by itself" in ended.stderr.decode()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_it_and_the_program(number: signal.Signals, code: int, tmp_path: Path) -> None:
    with gate(tmp_path / "gate") as (open_gate, wait):
        hanging = ["sh", "-c", f"{shlex.join(open_gate)}; exec sleep 600"]
        argv = [*CONFORMANCE, "worker", "--only", "W23", "--patience", "3600", "--", *hanging]
        with started(argv, tmp_path) as process:
            wait()
            process.send_signal(number)
            assert process.wait(BOUND_SECONDS) == code


@pytest.mark.parametrize(("checks", "letter"), [(WORKER_CHECKS, "W"), (HOST_CHECKS, "H")], ids=["worker", "host"])
def test_the_checks_are_numbered_from_one_and_each_has_a_remedy(checks: Sequence[Check], letter: str) -> None:
    assert [check.number for check in checks] == [f"{letter}{number:02}" for number in range(1, len(checks) + 1)]
    assert len({check.title for check in checks}) == len(checks)
    assert all(check.remedy for check in checks)
