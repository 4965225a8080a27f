"""What a flow is given to do."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agentcell_protocol.request import SessionRequest
from agentcell_worker.agents.registry import AgentType
from agentcell_worker.report import Report


@dataclass(frozen=True)
class Job:
    """One request to serve. `listen` takes its events; `drain_seconds` bounds the wait for background work."""

    agent: AgentType
    report: Report
    listen: Callable[[dict[str, Any]], None]
    drain_seconds: float

    @property
    def request(self) -> SessionRequest:
        """What is to be done."""
        return self.report.request
