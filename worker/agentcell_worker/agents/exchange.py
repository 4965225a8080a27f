"""One prompt in one client: the client is entered, the prompt answered, the client closed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agentcell_protocol.result import Status
from agentcell_worker import session
from agentcell_worker.client import AgentClient, CannotStart, closing_notices, session_id_of
from agentcell_worker.trace import Trace


@dataclass(frozen=True)
class Ended:
    """How a session ended: what `run_agent_session` says of it."""

    status: Status
    response: str
    usage: Mapping[str, int] = field(default_factory=dict)
    trace: Trace = field(default_factory=Trace)


async def exchange(
    client: AgentClient,
    message: str,
    spec_dir: str | Path | None,
    phase: str,
    *,
    verbose: bool = False,
    listen: Callable[[dict[str, Any]], object] | None = None,
    conclude: Callable[[Ended], object] | None = None,
) -> Ended:
    """Enter the client, have the message answered, leave it; `conclude` hears of the end before the client closes."""
    try:
        async with client:
            ended = Ended(
                *await session.run_agent_session(
                    client=client, message=message, spec_dir=spec_dir, phase=phase, verbose=verbose, on_event=listen
                )
            )
            if conclude is not None:
                conclude(ended)
    except CannotStart as failed:
        trace = Trace(error=failed.error, session_id=session_id_of(client))
        return Ended("error", failed.error.message, trace=trace)
    return ended if ended.status == "error" else _with_notices(ended, client)


def _with_notices(ended: Ended, client: AgentClient) -> Ended:
    notices = tuple(closing_notices(client))
    return replace(ended, trace=replace(ended.trace, warnings=(*ended.trace.warnings, *notices))) if notices else ended
