"""Whichever process dies, and whatever a tool left, nothing of a session is left."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from tests.e2e.scenes import living
from tests.ending import ending

from agentcell.environment import cell_environment
from agentcell.limits import Limits
from agentcell.offline import Endpoint, offline_environment, offline_model
from agentcell.orders import Order
from agentcell.run import run_attempt
from agentcell.stop import Stop
from agentcell_protocol.request import parse_request
from agentcell_protocol.result import SessionResult

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

BOUND_SECONDS = 60

GONE_SECONDS = 5.0
"""After the death of any process of a session; a busy machine gets three times as long in these tests."""

GUARD = Path(sys.executable).with_name("agentcell-worker")

STALLS: dict[str, Any] = {"stall": "start", "times": "always"}

LIVES = "tail -f /dev/null"

CHILDREN = f"{LIVES} & setsid {LIVES} & (nohup {LIVES} > /dev/null 2>&1 &) ; echo started > started"
"""A plain background child, one in a session of its own, and one that is orphaned at once."""


def calls(command: str) -> dict[str, Any]:
    return {"tools": [{"name": "Bash", "input": {"command": command}}]}


def request(**members: Any) -> dict[str, Any]:
    return {"session_name": "a", "agent_type": "coder", "starting_message": "go", "events": "summary", **members}


def wait_for_end(processes: list[psutil.Process], home: Path, *, died_at: float) -> None:
    _, alive = psutil.wait_procs(processes, timeout=max(0.0, died_at + 3 * GONE_SECONDS - time.monotonic()))
    assert (alive, living(home)) == ([], [])


@contextmanager
def guarded(endpoint: Endpoint, home: Path) -> Iterator["subprocess.Popen[bytes]"]:
    environment = {**offline_environment(endpoint, home), "TMPDIR": str(home)}  # a killed guard leaves its directory
    starting = subprocess.Popen(
        [GUARD], cwd=home, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    with ending(starting, BOUND_SECONDS) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(request(project_dir=str(home))).encode() + b"\n")
        yield process


@contextmanager
def fifo(path: Path) -> Iterator[int]:
    """A pipe with a name, readable once somebody has written to it."""
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield reader
    finally:
        os.close(reader)


def wait_for(process: "subprocess.Popen[bytes]", kind: str) -> Any:
    assert process.stdout is not None
    while True:
        assert select.select([process.stdout], [], [], BOUND_SECONDS)[0], f"no {kind} came"
        message = json.loads(process.stdout.readline())
        if message["type"] == kind:
            return message


@pytest.mark.parametrize(
    ("victim", "number", "busy"),
    [
        ("worker", signal.SIGKILL, "model"),
        ("worker", signal.SIGKILL, "tool"),
        ("worker", signal.SIGTERM, "model"),
        ("worker", signal.SIGTERM, "tool"),
        ("guard", signal.SIGKILL, "model"),
        ("guard", signal.SIGKILL, "tool"),
        ("guard", signal.SIGTERM, "tool"),
    ],
)
def test_whichever_dies_nothing_is_left(tmp_path: Path, victim: str, number: signal.Signals, busy: str) -> None:
    turns = [calls(f"{LIVES} & echo up > up; wait"), STALLS] if busy == "tool" else [STALLS]
    with offline_model({"turns": turns}) as endpoint, fifo(tmp_path / "up") as up, guarded(endpoint, tmp_path) as guard:
        pid = wait_for(guard, "hello")["pid"]
        wait_for(guard, "session_started")
        if busy == "tool":
            assert select.select([up], [], [], BOUND_SECONDS)[0], "the tool did not start"
        session = living(tmp_path)
        assert len(session) >= {"model": 3, "tool": 5}[busy]  # guard, worker, CLI; shell and what it runs
        died_at = time.monotonic()
        os.kill(pid if victim == "worker" else guard.pid, number)
        if (victim, number) != ("guard", signal.SIGKILL):
            error = wait_for(guard, "result")["error"]
            expected = {("worker", signal.SIGKILL): "crashed"}.get((victim, number), "cancelled")
            assert error["category"] == expected
        guard.wait(BOUND_SECONDS)
        wait_for_end(session, tmp_path, died_at=died_at)


async def attempt(
    endpoint: Endpoint, home: Path, *, limits: Limits | None = None, stop_at: str | None = None
) -> SessionResult:
    stop = Stop()

    def listen(event: dict[str, Any]) -> None:
        if event["type"] == stop_at:
            stop.cancel("SIGINT")

    environment = cell_environment({}, env=offline_environment(endpoint, home))
    session = parse_request(request(project_dir=str(home)))
    with anyio.fail_after(BOUND_SECONDS):
        order = Order(session, environment=environment, limits=limits or Limits(), on_event=listen, stop=stop)
        return await run_attempt(order)


@pytest.mark.parametrize("ending", ["success", "timeout", "cancel"])
def test_what_a_tool_left_in_the_background_is_ended(tmp_path: Path, ending: str) -> None:
    last: dict[str, Any] = {"text": "Started."} if ending == "success" else STALLS
    limits = Limits(idle_seconds=3 if ending == "timeout" else None, drain_seconds=0)
    stop_at = "tool_result" if ending == "cancel" else None
    with offline_model({"turns": [calls(CHILDREN), last]}) as endpoint:
        result = anyio.run(lambda: attempt(endpoint, tmp_path, limits=limits, stop_at=stop_at))
    assert living(tmp_path) == []
    assert (tmp_path / "started").exists()
    category = None if result.error is None else result.error.category.value
    assert category == {"success": None, "timeout": "timeout", "cancel": "cancelled"}[ending]
    if ending == "success":
        assert result.swept_processes >= 3


def test_a_tool_that_writes_without_end_writes_nothing_after_the_timeout(tmp_path: Path) -> None:
    loop = "while true; do echo line >> grows.txt; sleep 0.2; done"
    with offline_model({"turns": [calls(loop), STALLS]}) as endpoint:
        result = anyio.run(lambda: attempt(endpoint, tmp_path, limits=Limits(max_execution_seconds=12)))
        grown = tmp_path / "grows.txt"
        size = grown.stat().st_size if grown.exists() else 0
    assert result.error is not None
    assert (result.error.category.value, result.violated_limits) == ("timeout", ["max_execution_seconds"])
    assert size > 0, f"the tool had not begun by then: {result.tool_calls} tool calls"
    assert living(tmp_path) == []
    assert grown.stat().st_size == size
