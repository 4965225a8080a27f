"""Serving as a process of its own, which a signal ends."""

import os
import signal
from collections.abc import Mapping, Sequence

import anyio

from agentcell.commands.output import tell
from agentcell.serve.serving import Serving, Settings
from agentcell.signals import cancelling_on_signals, heeded_signals
from agentcell.standard import STDIN, STDOUT, hold_standard_streams, own_terminal

MOST_NAMED = 10
"""Of the runs whose results were given up: a name may have 200 characters, and a terminal is to show it."""


def serve_in_foreground(max_sessions: int | None, environment: Mapping[str, str], *, keep: bool) -> int:
    """Serve whoever has our stdin and stdout; the exit code."""
    parent = os.getppid()
    hold_standard_streams()
    sessions = max_sessions or os.cpu_count() or 1
    return anyio.run(_serve, Settings(STDIN, own_terminal(STDOUT), parent, sessions, environment, keep))


async def _serve(settings: Settings) -> int:
    serving = Serving(settings)
    async with cancelling_on_signals(serving.ending):
        code = await serving.run()
        signal.pthread_sigmask(signal.SIG_BLOCK, heeded_signals())  # what was said is how this process ends
    if serving.given_up:
        tell(given_up(serving.given_up))
    if serving.failure:
        tell(f"error: nothing can be written to stdout ({serving.failure}), so all runs were cancelled")
    return code


def given_up(run_ids: Sequence[str]) -> str:
    """What is said of the results of these runs, which nobody has read."""
    these = "the result of 1 run was" if len(run_ids) == 1 else f"the results of {len(run_ids)} runs were"
    rest = len(run_ids) - MOST_NAMED
    named = ", ".join(run_ids[:MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")
    why = "nobody took the last lines from stdout; read to the end, or name a result_file"
    return f"error: {these} given up ({named}): {why}"
