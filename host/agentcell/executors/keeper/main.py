"""A keeper as a process of its own: nobody's child, with the pipe of who started it as its lifeline."""

import json
import os
import signal
import sys

import anyio

from agentcell.executors.keeper.ending import Ending
from agentcell.executors.keeper.keeper import Keeper, KeeperSettings
from agentcell.executors.wire import END_SECONDS
from agentcell.signals import cancelling_on_signals
from agentcell.standard import hold_standard_streams


def main() -> int:
    """Be the keeper of this node until nobody wants one any more; the exit code.

    The only argument is a JSON object, the members of `KeeperSettings`.
    """
    settings = KeeperSettings(**json.loads(sys.argv[1]))
    detach()
    anyio.run(_keep, settings)
    return 0


def detach() -> None:
    """Go on as nobody's child, in a session and a directory that nobody ends or removes; the child that was, exits."""
    hold_standard_streams()
    if os.fork():
        os._exit(0)
    os.setsid()
    os.chdir("/")


async def _keep(settings: KeeperSettings) -> None:
    ending = Ending()
    async with cancelling_on_signals(ending), anyio.create_task_group() as tasks:
        tasks.start_soon(_end_for_certain, ending)
        await Keeper(settings, ending).run()
        tasks.cancel_scope.cancel()


async def _end_for_certain(ending: Ending) -> None:
    """Have the kernel end this process, whatever holds it up; its cells end when it has."""
    await ending.begun.wait()
    signal.alarm(END_SECONDS)
