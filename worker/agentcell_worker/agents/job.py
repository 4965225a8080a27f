"""What a flow is given to do."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agentcell_protocol.request import SessionRequest
from agentcell_worker.report import Report


@dataclass(frozen=True)
class Job:
    """One session to run. `listen` takes its events; `drain_seconds` bounds the wait for background work."""

    report: Report
    listen: Callable[[dict[str, Any]], None]
    drain_seconds: float

    @property
    def request(self) -> SessionRequest:
        """What the session is to do."""
        return self.report.request
