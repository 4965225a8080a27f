"""Real sessions in forked cells: what they load, whom they outlive and who outlives them."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from tests.e2e.scenes import living
from tests.worker import noting

from agentcell import Host
from agentcell.environment import cell_environment
from agentcell.forkserver import ForkServer
from agentcell.offline import Endpoint, offline_environment, offline_model
from agentcell.orders import Order
from agentcell.resources import Resources
from agentcell.run import run_attempt
from agentcell_protocol.request import parse_request
from agentcell_protocol.result import SessionResult

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

BOUND_SECONDS = 90

GONE_SECONDS = 5.0
"""After the end of a host; a busy machine gets twice as long in these tests."""

LIVES = "tail -f /dev/null"


def request(home: Path, **members: Any) -> dict[str, Any]:
    known = {"session_name": "a", "agent_type": "coder", "project_dir": str(home), "starting_message": "go"}
    return {**known, **members}


def calls(command: str) -> dict[str, Any]:
    return {"tools": [{"name": "Bash", "input": {"command": command}}]}


def servers(home: Path) -> list[psutil.Process]:
    """The fork servers among them; a cell leads a session, too, but its parent is a server."""
    found = [process for process in living(home) if "agentcell_worker.forkserver" in process.cmdline()]
    return [process for process in found if process.ppid() not in {each.pid for each in found}]


def test_a_session_imports_nothing_after_its_fork(tmp_path: Path) -> None:
    imported = tmp_path / "imported"
    agents = tmp_path / "agents"
    agents.mkdir()
    (agents / "helper.md").write_text("---\nname: helper\ndescription: a: b\n---\nYou help.\n")
    server = ForkServer((sys.executable, "-X", "utf8", "-P", str(noting.__file__)))

    async def run(endpoint: Endpoint) -> SessionResult:
        environment = cell_environment({}, env=offline_environment(endpoint, tmp_path))
        environment[noting.FILE] = str(imported)
        session = parse_request(request(tmp_path, agent_type="helper", agents_dir=str(agents), events="full"))
        with anyio.fail_after(BOUND_SECONDS):
            return await run_attempt(Order(session, environment=environment), Resources(server.spawn))

    try:
        with offline_model({"turns": [calls("echo hello"), {"text": "Done."}]}) as endpoint:
            result = anyio.run(run, endpoint)
    finally:
        server.close()
    assert (result.response, result.start) == ("Done.", "fork")
    assert imported.read_text().split() == []


HOST = """
import json, sys, anyio
from functools import partial
from agentcell import Host

request, environment = json.loads(sys.argv[1])

async def main():
    async with Host(2) as host, anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(partial(host.run, request, env=environment))

anyio.run(main)
"""


def test_nothing_outlives_a_host_that_is_killed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "up")
    up = os.open(tmp_path / "up", os.O_RDWR)
    turn = calls(f"({LIVES} & setsid {LIVES} & nohup {LIVES} &) ; echo up > up; {LIVES}")
    with offline_model({"turns": [turn]}) as endpoint:
        environment = {**offline_environment(endpoint, tmp_path), "TMPDIR": str(tmp_path)}  # nobody is left to clear it
        argument = json.dumps([request(tmp_path), environment])
        host = subprocess.Popen([sys.executable, "-c", HOST, argument], env=environment)
        with host:
            try:
                seen = b""
                while seen.count(b"up\n") < 2:
                    assert select.select([up], [], [], BOUND_SECONDS)[0], "a tool did not start"
                    seen += os.read(up, 100)
                session = living(tmp_path)
                assert len(session) >= 2 + 2 * (2 + 4)  # host and server; worker and CLI; what the tool runs
            finally:
                host.kill()
        began = time.monotonic()
        _, alive = psutil.wait_procs(session, timeout=2 * GONE_SECONDS)
        assert alive == [], f"after {time.monotonic() - began:.1f} s"
        assert living(tmp_path) == []
    os.close(up)


def test_sessions_outlive_their_server_and_the_next_gets_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    os.mkfifo(tmp_path / "go")
    go = os.open(tmp_path / "go", os.O_RDWR)
    results: list[SessionResult] = []

    async def main(endpoint: Endpoint) -> None:
        environment = offline_environment(endpoint, tmp_path)
        started = anyio.Event()

        async def run(host: Host) -> None:
            def listen(event: dict[str, Any]) -> None:
                if event["type"] == "tool_use":
                    started.set()

            results.append(await host.run(request(tmp_path), env=environment, on_event=listen))

        with anyio.fail_after(BOUND_SECONDS):
            async with Host(2) as host, anyio.create_task_group() as tasks:
                tasks.start_soon(run, host)
                await started.wait()
                (lost,) = servers(tmp_path)
                lost.kill()
                lost.wait(BOUND_SECONDS)
                os.write(go, b"go\n")
                await run(host)

    first = {"session": 1, "turns": [calls("head -1 go"), {"text": "Done."}]}
    with offline_model({"sessions": [first], "turns": [{"text": "Done."}]}) as endpoint:
        anyio.run(main, endpoint)
    os.close(go)
    ends = [(result.response, result.error, result.start, result.signal) for result in results]
    assert ends == [("Done.", None, "fork", None)] * 2
    assert [result.exit_code for result in results] == [None, 0]


def test_strays_of_a_killed_worker_are_counted(tmp_path: Path) -> None:
    children = f"{LIVES} & setsid {LIVES} & (nohup {LIVES} >/dev/null 2>&1 &) ; env -i {LIVES} & echo started"

    async def main(endpoint: Endpoint) -> SessionResult:
        pids: list[int] = []

        def listen(event: dict[str, Any]) -> None:
            if event["type"] == "hello":
                pids.append(event["pid"])
            elif event["type"] == "tool_result":
                os.kill(pids[0], signal.SIGKILL)

        with anyio.fail_after(BOUND_SECONDS):
            async with Host(1) as host:
                return await host.run(request(tmp_path), env=offline_environment(endpoint, tmp_path), on_event=listen)

    with offline_model({"turns": [calls(children), {"stall": "start", "times": "always"}]}) as endpoint:
        result = anyio.run(main, endpoint)
    assert result.error is not None
    assert (result.error.category.value, result.signal) == ("crashed", "SIGKILL")
    assert result.swept_processes >= 5  # the CLI, and what its tool left
    assert living(tmp_path) == []
