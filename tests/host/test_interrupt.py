"""A program that is interrupted while a session runs ends it, and then itself as Python programs do."""

import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.ending import ending
from tests.faults.harness import command

BOUND_SECONDS = 60

PROGRAM = """
import os, sys, anyio
from agentcell import Host

async def main():
    request = {"session_name": "a", "agent_type": "coder", "project_dir": ".", "starting_message": "hi"}
    tell = lambda event: print(event["type"], event.get("pid", ""), flush=True)
    async with Host(worker_command=sys.argv[2:]) as host:
        await host.run(request, on_event=tell, env=dict(os.environ))

anyio.run(main, backend=sys.argv[1])
"""


@pytest.mark.parametrize("worker", ["cleans_up", "falls_silent"])
def test_an_interrupt_ends_the_session_first(tmp_path: Path, anyio_backend: str, worker: str) -> None:
    starting = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, anyio_backend, *command(worker)],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )
    with ending(starting, BOUND_SECONDS) as program:
        assert program.stdout is not None
        lines: list[bytes] = []
        while not lines or not lines[-1].startswith(b"text"):
            assert select.select([program.stdout], [], [], BOUND_SECONDS)[0]
            lines.append(program.stdout.readline())
        program.send_signal(signal.SIGINT)
        _, err = program.communicate(timeout=BOUND_SECONDS)
    assert program.returncode == -signal.SIGINT
    assert err.splitlines()[-1].strip() == b"KeyboardInterrupt"
    assert not Path("/proc", lines[0].split()[1].decode()).exists()
    assert list(tmp_path.iterdir()) == []
