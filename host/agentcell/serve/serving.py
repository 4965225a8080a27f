"""The loop: lines become runs, runs become lines, until there is a reason to end."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError

import anyio

from agentcell.host import Host
from agentcell.inlet import hear
from agentcell.lifeline import watch_death
from agentcell.orders import Order
from agentcell.outlet import Outlet
from agentcell.serve.desk import Desk
from agentcell.serve.ending import Ending
from agentcell.serve.runs import Runs
from agentcell.transcripts import Keep
from agentcell_protocol.sdk import bundled_cli, sdk_version
from agentcell_protocol.serving import CAPABILITIES, ServeHello
from agentcell_protocol.version import PROTOCOL, __version__


@dataclass(frozen=True, slots=True)
class Settings:
    """What is served, for whom, and through which descriptors. `environment` is each cell's."""

    stdin: int
    stdout: int
    parent: int
    max_sessions: int
    environment: Mapping[str, str] = field(repr=False)
    keep: Keep = True


class Serving:
    """Serves until stdin ends, a shutdown is done, or a signal has come to `ending`. To be made inside a loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._runs = Runs()
        self._outlet = Outlet(settings.stdout)
        self.ending = Ending(self._runs)

    @property
    def failure(self) -> str:
        """Why nothing could be written any more; empty if it could."""
        return self._outlet.failure

    @property
    def given_up(self) -> list[str]:
        """The ids of the runs whose results were written for a reader that did not take them in time."""
        return self._outlet.unread_results

    async def run(self) -> int:
        """Serve; the exit code."""
        self._outlet.put(hello(self._settings).model_dump())
        async with Host(self._settings.max_sessions) as host, anyio.create_task_group() as tasks:
            for work in (self._outlet.run, self._outlet.watch, self._hear, self._mind_parent, self._mind_reader):
                tasks.start_soon(work)
            try:
                async for order, result in host.perform(self._runs.orders(), on_mistake=self._runs.fail):
                    self._runs.end(order, result)
            except Exception as mistake:  # ours: who waits for results has them before it is raised
                self._runs.fail_all(mistake)
                self.ending.hear_no_more()
                await self.ending.last_lines(self._outlet)
                raise
            self.ending.hear_no_more()
            await self.ending.last_lines(self._outlet)
            tasks.cancel_scope.cancel()
        return self.ending.exit_code

    async def _hear(self) -> None:
        make = partial(Order, environment=self._settings.environment, keep=self._settings.keep)
        desk = Desk(self._runs, self._outlet, make)
        take_last = partial(desk.take, has_ended=True)
        with self.ending.hearing:
            await hear(
                self._settings.stdin,
                desk.take,
                desk.warn_of_unfinished_line,
                take_last=take_last,
                has_room=self._outlet.not_full,
            )
            self.ending.stdin_ended()

    async def _mind_parent(self) -> None:
        with anyio.CancelScope() as lifetime:
            await watch_death(self._settings.parent, lifetime)
        if lifetime.cancel_called:
            self.ending.parent_died()

    async def _mind_reader(self) -> None:
        await self._outlet.gone.wait()
        self.ending.reader_left()


def hello(settings: Settings) -> ServeHello:
    """The first line."""
    cli = bundled_cli() or shutil.which("claude", path=settings.environment.get("PATH"))
    try:
        sdk = sdk_version()
    except PackageNotFoundError:
        sdk = None
    return ServeHello(
        type="hello",
        protocol=PROTOCOL,
        pid=os.getpid(),
        agentcell=__version__,
        sdk=sdk,
        cli=cli and str(cli),
        max_sessions=settings.max_sessions,
        capabilities=list(CAPABILITIES),
    )
