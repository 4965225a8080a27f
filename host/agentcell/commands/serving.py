"""Serving as a process of its own, which a signal ends."""

import os
import signal
from collections.abc import Mapping

import anyio

from agentcell.commands.output import tell
from agentcell.serve.serving import Serving, Settings
from agentcell.signals import cancelling_on_signals, heeded_signals
from agentcell.standard import STDIN, STDOUT, hold_standard_streams


def serve_in_foreground(max_sessions: int | None, environment: Mapping[str, str], *, keep: bool) -> int:
    """Serve whoever has our stdin and stdout; the exit code."""
    parent = os.getppid()
    hold_standard_streams()
    sessions = max_sessions or os.cpu_count() or 1
    return anyio.run(_serve, Settings(STDIN, STDOUT, parent, sessions, environment, keep))


async def _serve(settings: Settings) -> int:
    serving = Serving(settings)
    async with cancelling_on_signals(serving.ending):
        code = await serving.run()
        signal.pthread_sigmask(signal.SIG_BLOCK, heeded_signals())  # what was said is how this process ends
    if serving.failure:
        tell(f"error: nothing can be written to stdout ({serving.failure}), so all runs were cancelled")
    return code
