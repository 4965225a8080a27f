"""Runs the misbehaving workers in place of the real one."""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from tests.faults import forking

from agentcell.forkserver import ForkServer
from agentcell.limits import Limits
from agentcell.listener import OnEvent
from agentcell.orders import Order
from agentcell.resources import Resources
from agentcell.run import run_attempt
from agentcell.spawn import Spawn, start_cold
from agentcell.stop import Stop
from agentcell_protocol.errors import Category
from agentcell_protocol.request import SessionRequest, parse_request
from agentcell_protocol.result import SessionResult

WORKERS = Path(__file__).parent / "workers"

KEY = "sk-ant-test"

BOUND_SECONDS = 60
"""No test of a misbehaving worker may take longer: what it waits for is a minute away."""


def command(worker: str, *argv: str) -> tuple[str, ...]:
    return (sys.executable, str(WORKERS / f"{worker}.py"), *argv)


def spawner(worker: str, *argv: str) -> Spawn:
    return partial(start_cold, command=command(worker, *argv))


def bring_up(server: ForkServer) -> None:
    """Have it there before the tests that share it, so that none of them is said to have left it behind."""

    async def begin() -> None:
        server.spawn({}, "/").close()

    anyio.run(begin)


class ForkedWorkers:
    """Starts misbehaving workers as forks of a server that has nothing of the SDK."""

    def __init__(self, *options: str) -> None:
        self.server = ForkServer((sys.executable, "-P", str(forking.__file__), *options))

    def spawner(self, worker: str, *argv: str) -> Spawn:
        return self._runs(str(WORKERS / f"{worker}.py"), *argv)

    def program(self, text: str) -> Spawn:
        return self._runs("-c", text)

    def _runs(self, *argv: str) -> Spawn:
        named = {forking.ARGV: json.dumps(argv)}
        return lambda environment, directory: self.server.spawn({**environment, **named}, directory)


@dataclass(frozen=True)
class Room:
    """A directory to run in, and the environment that leads nowhere else."""

    path: Path
    spawner: Callable[..., Spawn] = spawner

    @property
    def environment(self) -> dict[str, str]:
        places = {"HOME": str(self.path), "TMPDIR": str(self.path), "XDG_STATE_HOME": str(self.path.parent / "state")}
        return {"PATH": "/usr/bin:/bin", **places, "ANTHROPIC_API_KEY": KEY}

    def request(self, **members: Any) -> SessionRequest:
        known = {"session_name": "a", "agent_type": "coder", "project_dir": str(self.path), "starting_message": "hi"}
        return parse_request({**known, **members})

    def order(
        self,
        limits: Limits | None = None,
        *,
        on_event: OnEvent | None = None,
        stop: Stop | None = None,
        members: Mapping[str, Any] | None = None,
    ) -> Order:
        request = self.request(**(members or {}))
        return Order(
            request,
            environment=self.environment,
            limits=limits or Limits(),
            on_event=on_event,
            stop=stop or Stop(),
        )

    async def run(
        self,
        worker: str,
        *argv: str,
        limits: Limits | None = None,
        on_event: OnEvent | None = None,
        stop: Stop | None = None,
        members: Mapping[str, Any] | None = None,
    ) -> SessionResult:
        with anyio.fail_after(BOUND_SECONDS):
            order = self.order(limits, on_event=on_event, stop=stop, members=members)
            return await run_attempt(order, Resources(self.spawner(worker, *argv)))


@dataclass(frozen=True)
class Told:
    """What a result says of an ending, without what depends on the clock."""

    status: str = "complete"
    response: str = "done"
    category: Category | None = None
    partial: str | None = None
    details: Mapping[str, Any] | None = None
    end: int | str | None = 0
    warnings: tuple[str, ...] = ()
    violated: tuple[str, ...] = ()
    swept: int = 0


def told(result: SessionResult) -> Told:
    error = result.error
    return Told(
        status=result.status,
        response=result.response,
        category=None if error is None else error.category,
        partial=None if error is None else error.partial_response,
        details=None if error is None else error.details,
        end=result.signal or result.exit_code,
        warnings=tuple(notice.code for notice in result.warnings),
        violated=tuple(result.violated_limits),
        swept=result.swept_processes,
    )
