"""A child process of a flow's own: it runs a bounded time, says a bounded amount, and leaves nothing running."""

import fcntl
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import anyio
import psutil

from agentcell_protocol import cell
from agentcell_protocol.credentials import credential_variables
from agentcell_protocol.masking import SECRET_NAME, SECRET_SHAPE

MARKER = "AGENTCELL_CHECK"
"""Environment variable, a UUID, in everything that one child executes."""

LOOK_SECONDS = 0.02
"""Between two looks at a child, which as a rule runs for a second or more."""

TERM_SECONDS = 1.0
"""From SIGTERM to SIGKILL: a check has nothing to save."""

TAIL_BYTES = 16 * 1024
"""Of the output: what a tool says last is the reason it ended."""

LINE_CHARACTERS = 500
"""Of a line that is shown to people."""

ERROR_LINE = re.compile(r"ERROR(?!: usage:)|[^:]+: error: ")
"""As pytest, and what reads its options, begin to say what is wrong."""

OUTPUT_BYTES = 16 * 1024 * 1024
"""On disk; a child that writes more has its earlier output dropped."""

PASSWORD_IN_URL = re.compile(r"://[^/?#\s:@]*:[^/?#\s@]+@")
"""As in postgres://USER:PASSWORD@HOST."""

CANNOT_RUN = 127
"""The exit code a shell gives for what it cannot run."""

REPORT_BYTES = 64 * 1024 * 1024
"""A larger report is of no project that a model could work on."""

NOT_PASSED = ("PYTHON", "ANTHROPIC_", "CLAUDE")
"""Beginnings of names: what would change another Python, and what is for the agent and its API."""


@dataclass(frozen=True)
class Ran:
    """How a child ended. `exit_code` is None when its time was up, negative when a signal ended it."""

    exit_code: int | None
    output: str

    @property
    def last_line(self) -> str:
        """The last thing it said, for people."""
        lines = (line.strip() for line in reversed(self.output.splitlines()))
        return next((line[:LINE_CHARACTERS] for line in lines if line), "")

    @property
    def reason(self) -> str:
        """The first line of an error as pytest tells it, else the last thing it said, for people."""
        lines = (line.strip() for line in self.output.splitlines())
        return next((line[:LINE_CHARACTERS] for line in lines if ERROR_LINE.match(line)), self.last_line)

    @property
    def ending(self) -> str:
        """How it ended, for people."""
        how = "its time was up" if self.exit_code is None else f"exit code {self.exit_code}"
        return f"{how}: {self.last_line}" if self.last_line else how


async def run_child(
    argv: Sequence[str | Path], *, cwd: str | Path, seconds: float, variables: Mapping[str, str] | None = None
) -> Ran:
    """Run a program in `cwd` for at most so many seconds; whatever it started is ended with it.

    It gets no credentials, an empty stdin, and `variables` in addition. `CANNOT_RUN` is the exit code of what cannot
    even be started.
    """
    try:
        return await _run([str(argument) for argument in argv], cwd, seconds, variables or {})
    except OSError as broken:
        return Ran(CANNOT_RUN, broken.strerror or str(broken))


def report_in(path: Path) -> Any:
    """What a child wrote down as JSON; None when it did not."""
    try:
        if path.stat().st_size > REPORT_BYTES:
            return None
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


async def _run(argv: list[str], cwd: str | Path, seconds: float, variables: Mapping[str, str]) -> Ran:
    """Raises OSError."""
    marker = str(uuid4())
    environment = {**clean(os.environ), **variables, MARKER: marker}
    with tempfile.TemporaryFile() as output:
        fcntl.fcntl(output, fcntl.F_SETFL, fcntl.fcntl(output, fcntl.F_GETFL) | os.O_APPEND)
        child = subprocess.Popen(  # noqa: ASYNC220 - it comes up in milliseconds, and must be owned at once
            argv,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        exit_code = None
        try:
            with anyio.move_on_after(seconds):
                exit_code = await _wait(child.pid, output)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_end, child, marker)
        return Ran(exit_code, _tail(output))


def clean(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables without those that bring credentials or would change the child's Python."""
    secret = set(credential_variables(environment))
    kept = {name: value for name, value in environment.items() if name not in secret and not _is_private(name, value)}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1"}


def _is_private(name: str, value: str) -> bool:
    is_secret = SECRET_NAME.search(name) or SECRET_SHAPE.search(value) or PASSWORD_IN_URL.search(value)
    return bool(name.startswith(NOT_PASSED) or is_secret)


async def _wait(pid: int, output: IO[bytes]) -> int:
    """The child's exit code, which is left for others to take: nobody else gets its pid meanwhile."""
    while (ended := _ended(pid)) is None:
        if os.fstat(output.fileno()).st_size > OUTPUT_BYTES:
            os.ftruncate(output.fileno(), 0)
        await anyio.sleep(LOOK_SECONDS)
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def _ended(pid: int) -> os.waitid_result | None:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)


def _end(child: subprocess.Popen[bytes], marker: str) -> None:
    """End the child and all it started, also what left its session, and take its exit status."""
    cell.end(partial(_living, child.pid, marker), term_seconds=TERM_SECONDS, awaited={child.pid})
    with suppress(subprocess.TimeoutExpired):  # it is stuck in the kernel, and its death will be nobody's
        child.wait(cell.KILL_SECONDS)


def _living(pid: int, marker: str) -> set[psutil.Process]:
    """What has the marker, is below the child or in its session; the child is one of them until it ends."""
    members = (cell.process_at(each) for each in psutil.pids() if _session(each) == pid)
    found = (*cell.marked(marker, MARKER), *cell.descendants(pid), *members)
    return {process for process in found if process is not None and cell.is_alive(process)}


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None  # it is gone


def _tail(output: IO[bytes]) -> str:
    end = os.fstat(output.fileno()).st_size
    read = os.pread(output.fileno(), TAIL_BYTES, max(0, end - TAIL_BYTES))
    return read.decode(errors="replace")
