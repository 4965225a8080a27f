"""What a test starts is ended, whatever becomes of the test and however the run was started."""

import signal
import subprocess
import sys

import pytest
from tests.ending import ending

STUBBORN = ["sh", "-c", "trap '' INT TERM HUP; echo up; exec cat"]

CONFIGURES = """
import signal
from tests import conftest
conftest.pytest_configure()
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


def start() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(STUBBORN, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_it_is_ended_though_the_test_fails() -> None:
    with pytest.raises(LookupError), ending(start()) as process:
        raise LookupError
    assert process.returncode == -signal.SIGKILL


def test_it_is_ended_though_nothing_more_comes_of_it() -> None:
    with ending(start(), 0.05) as process:
        assert process.stdout is not None
        process.stdout.read()
        assert process.wait(10) == -signal.SIGKILL


def test_a_run_in_the_background_of_a_shell_minds_an_interrupt() -> None:
    ignoring = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", sys.executable, "-c", CONFIGURES]
    assert subprocess.run(ignoring, stdout=subprocess.PIPE, timeout=60, check=True).stdout == b"True\n"
