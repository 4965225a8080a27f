"""A keeper as a process of its own: away from the children of who started it, with their pipes as its lifeline."""

import json
import os
import signal
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence

import anyio

from agentcell.executors.keeper.ending import Ending
from agentcell.executors.keeper.keeper import Keeper, KeeperSettings
from agentcell.executors.wire import END_SECONDS, LEASE_SECONDS
from agentcell.signals import cancelling_on_signals
from agentcell.spawn import WORKER
from agentcell.standard import hold_standard_streams


def main(arguments: Sequence[str] | None = None) -> int:
    """Be the keeper of this node until nobody wants one any more; the exit code."""
    settings = settings_of(arguments)
    detach()
    anyio.run(_keep, settings)
    return 0


def settings_of(arguments: Sequence[str] | None) -> KeeperSettings:
    """What the command line says. Ends this process when that is nothing sensible."""
    parser = ArgumentParser(prog="agentcell.executors.keeper")
    parser.add_argument("--starter", type=int, default=os.getppid(), help="the pid whose end is the keeper's, too")
    parser.add_argument("--lease", type=float, default=LEASE_SECONDS, help="seconds without an alive to the end")
    parser.add_argument("--min-free-mb", type=float, default=0.0, help="memory that must be free to start a cell")
    parser.add_argument("--max-starts", type=int, default=None, help="cells that start at a time")
    parser.add_argument("--worker-command", type=_command, default=WORKER, help="another worker, as a JSON array")
    known = parser.parse_args(arguments)
    if known.max_starts is not None and known.max_starts < 1:
        parser.error("--max-starts must be positive")
    return KeeperSettings(
        starter=known.starter,
        lease_seconds=known.lease,
        min_free_mb=known.min_free_mb,
        max_starts=known.max_starts,
        worker_command=known.worker_command,
    )


def _command(text: str) -> tuple[str, ...]:
    try:
        words = json.loads(text)
    except ValueError:
        words = None
    if not (isinstance(words, list) and words and all(isinstance(word, str) for word in words)):
        raise ArgumentTypeError("must be a JSON array of strings")
    return tuple(words)


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
