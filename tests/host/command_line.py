"""The command `agentcell` as a process of its own, its cells played by the stand-in worker."""

import json
import os
import select
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.ending import ending

BOUND_SECONDS = 60.0
"""For anything a test waits for; it takes a second."""

DRIVER = """
import json, sys
from functools import partial
from agentcell import reap, resources, signals, spawn
reap.GRACE_SECONDS = 3600
start = partial(spawn.start_cold, command=json.loads(sys.argv.pop(1)))
signals.run_attempt = partial(signals.run_attempt, resources=resources.Resources(start))
from agentcell.{module} import main
sys.exit(main())
"""
"""The console script, with another worker, and so much patience with it that a test would notice if it were needed."""

BATCH_DRIVER = """
import json, sys
from functools import partial
from agentcell import reap
from agentcell.commands import batching
reap.GRACE_SECONDS = 3600
batching.Host = partial(batching.Host, worker_command=json.loads(sys.argv.pop(1)))
from agentcell.cli import main
sys.exit(main())
"""
"""The same for the command's batches."""

HANGING: list[dict[str, Any]] = [{"stderr": "ready\n"}, {"text": "halfway"}, {"hang": True}]


def command_line(worker: Sequence[str], *arguments: str, module: str = "cli") -> list[str]:
    """The argv that runs the console script of a module with this worker."""
    return [sys.executable, "-c", DRIVER.format(module=module), json.dumps(worker), *arguments]


def batch_line(worker: Sequence[str], *arguments: str) -> list[str]:
    """The argv of `agentcell batch` with this worker, whatever memory is free."""
    command = ["batch", "--min-free-mb", "0", *arguments]
    return [sys.executable, "-c", BATCH_DRIVER, json.dumps(worker), *command]


def write_rows(path: Path, *rows: tuple[str, Sequence[dict[str, Any]]]) -> Path:
    """A file of requests, each with its id and the steps of its stand-in."""
    common = {"agent_type": "planner", "project_dir": str(path.parent), "starting_message": "go"}
    lines = [{"session_name": name, **common, "context": {"stand_in": list(steps)}} for name, steps in rows]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    return path


def environment(home: Path, **more: str) -> dict[str, str]:
    """What the command's own process gets."""
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", **more}


def run_command(
    argv: Sequence[str], home: Path, *, stdin: bytes | None = None, **more: str
) -> subprocess.CompletedProcess[bytes]:
    """Run it to its end; stdin is /dev/null unless it is given."""
    given: dict[str, Any] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    variables = environment(home, **more)
    return subprocess.run(
        argv, env=variables, cwd=home, capture_output=True, timeout=BOUND_SECONDS, check=False, **given
    )


@contextmanager
def gate(path: Path) -> Iterator[tuple[list[str], Callable[[], None]]]:
    """A command that opens a gate, and a wait until it was opened."""
    os.mkfifo(path)
    with path.open("r+b", buffering=0) as ours:

        def wait() -> None:
            readable, _, _ = select.select([ours], [], [], BOUND_SECONDS)
            assert readable

        yield ["sh", "-c", f"echo > {shlex.quote(str(path))}"], wait


@contextmanager
def started(argv: Sequence[str], home: Path, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Start it, with the options of Popen; it is killed at the end, or after `BOUND_SECONDS`, if it still runs."""
    defaults = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(argv, **{**defaults, "env": environment(home), "cwd": home, **options})
    with ending(process, BOUND_SECONDS):
        yield process
