"""The inner timers of a cell, derived from its limits so that the host's own clocks are the ones that name an end."""

from agentcell.limits import Limits
from agentcell_protocol.cell import DRAIN_VARIABLE

STREAM_CLOSE_TIMEOUT = "CLAUDE_CODE_STREAM_CLOSE_TIMEOUT"
"""Environment variable: milliseconds that the SDK waits for the CLI to come up, at least a minute."""

MARGIN_SECONDS = 30.0
"""By which the SDK is more patient than `startup_seconds`, so that not its error ends a slow start."""

DRAIN_SHARE = 0.8
"""Of `idle_seconds`: the wait for background work is silent, and must end before it counts as idle."""


def inner_timers(limits: Limits) -> dict[str, str]:
    """Environment variables of a cell with these limits."""
    patience = limits.startup_seconds + MARGIN_SECONDS
    drain = limits.drain_seconds
    if limits.idle_seconds is not None:
        drain = min(drain, DRAIN_SHARE * limits.idle_seconds)
    return {STREAM_CLOSE_TIMEOUT: str(round(patience * 1000)), DRAIN_VARIABLE: str(drain)}
