"""The sessions of one flow: how each is opened, and what they came to, taken together."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentcell_protocol.result import COST_DIGITS, Notice, Usage
from agentcell_worker import client as clients
from agentcell_worker.agents.exchange import Ended, exchange
from agentcell_worker.agents.job import Job
from agentcell_worker.agents.registry import agent_named
from agentcell_worker.agents.writes import Writes
from agentcell_worker.client import AgentClient
from agentcell_worker.options import client_arguments
from agentcell_worker.trace import Trace

if TYPE_CHECKING:
    from agentcell_protocol.errors import SessionError

OF_ONE_SESSION = ("session_id", "resume")
"""Options that only the first session of the agent type that was asked for can have."""

PASSED_BY_FLOWS = ("project_dir", "spec_dir", "model", "agent_type", "max_thinking_tokens")
"""Arguments of `create_client` that a flow gives itself."""


class Sessions:
    """Opens the clients of one flow and has their prompts answered, as a request asks for it.

    Without a job nothing is added to what the flow itself says, and nobody hears of it. `error` is why the flow
    failed, when that was not its product; `writes` are the files that the sessions wrote.
    """

    def __init__(self, job: Job | None = None) -> None:
        self.error: SessionError | None = None
        self.ended: list[tuple[str, Ended]] = []
        self.writes = Writes()
        self._job = job
        self._notices: list[Notice] = []
        self._usage = Usage()

    @property
    def ids(self) -> list[str]:
        """The ids of the sessions so far, the first one first."""
        return [ended.trace.session_id for _, ended in self.ended if ended.trace.session_id]

    def role(self, agent_type: str) -> str | None:
        """What the caller puts in place of the type's role prompt."""
        return self._job.request.system_prompt if self._job and self._is_main(agent_type) else None

    def wish(self, agent_type: str) -> str | None:
        """What the caller asks for beside the flow's own message."""
        return self._job.request.starting_message if self._job and self._is_main(agent_type) else None

    def open(
        self,
        agent_type: str,
        project_dir: str | Path,
        spec_dir: str | Path | None,
        model: str | None,
        max_thinking_tokens: int | None,
    ) -> AgentClient:
        """A client for an agent of that type, to be entered once per session."""
        return clients.create_client(
            project_dir=project_dir,
            spec_dir=spec_dir,
            model=model,
            agent_type=agent_type,
            max_thinking_tokens=max_thinking_tokens,
            **self._options(agent_type),
        )

    async def run(
        self, client: AgentClient, agent_type: str, message: str, spec_dir: str | Path | None, *, verbose: bool = False
    ) -> Ended:
        """One session of an agent of that type: the client is entered, the message answered, the client left."""
        asked = self._job.request.phase if self._job else None
        phase = asked or agent_named(agent_type).phase
        ended = await exchange(
            client, message, spec_dir, phase, verbose=verbose, listen=self._listen, conclude=self._tell_end
        )
        self.ended.append((agent_type, ended))
        self._usage += Usage(**ended.usage)
        return ended

    def warn(self, code: str, message: str) -> None:
        """Say that something is odd that is no failure."""
        self._notices.append(Notice(code=code, message=message))
        self._tell({"type": "warning", "code": code, "message": message})

    @contextmanager
    def check(self, name: str) -> Iterator[None]:
        """Within, the flow itself works: a check of that name, which may be silent for long."""
        self._tell({"type": "check", "name": name, "state": "started"})
        try:
            yield
        finally:
            self._tell({"type": "check", "name": name, "state": "ended"})

    def total(self) -> Ended:
        """All sessions as one: the first of the type that was asked for speaks, and what was spent is added up."""
        traces = [ended.trace for _, ended in self.ended]
        main = self._main()
        trace = Trace(
            error=self.error,
            session_id=main.trace.session_id,
            model=main.trace.model,
            cost_usd=_cost(traces),
            num_turns=sum(trace.num_turns for trace in traces),
            stop_reason=main.trace.stop_reason,
            tool_calls=sum(trace.tool_calls for trace in traces),
            permission_denials=tuple(denial for trace in traces for denial in trace.permission_denials),
            warnings=(*(notice for trace in traces for notice in trace.warnings), *self._notices),
            structured_output=main.trace.structured_output,
            waited_seconds=sum(trace.waited_seconds for trace in traces),
        )
        return Ended(main.status, main.response, self._usage.model_dump(), trace)

    def _main(self) -> Ended:
        return next((ended for name, ended in self.ended if self._is_main(name)), Ended("error", ""))

    def _is_main(self, agent_type: str) -> bool:
        return self._job is None or agent_type == self._job.agent.name

    def _options(self, agent_type: str) -> dict[str, Any]:
        if self._job is None:
            return {}
        is_first = self._is_main(agent_type) and not any(name == agent_type for name, _ in self.ended)
        left_out = PASSED_BY_FLOWS if is_first else (*PASSED_BY_FLOWS, *OF_ONE_SESSION)
        asked = client_arguments(self._job.request)
        options = {name: value for name, value in asked.items() if name not in left_out}
        return {**options, "drain_seconds": self._job.drain_seconds}

    def _listen(self, event: dict[str, Any]) -> None:
        """Totals are those of the whole flow."""
        self.writes.hear(event)
        if event["type"] == "usage":
            event = {"type": "usage", **(self._usage + Usage(**{n: event[n] for n in Usage.model_fields})).model_dump()}
        self._tell(event)

    def _tell_end(self, ended: Ended) -> None:
        self._tell({"type": "session_ended", "session_id": ended.trace.session_id, "status": ended.status})

    def _tell(self, event: dict[str, Any]) -> None:
        if self._job is not None:
            self._job.listen(event)


def _cost(traces: list[Trace]) -> float | None:
    """What all sessions cost; unknown when one's cost is."""
    known = [trace.cost_usd for trace in traces if trace.cost_usd is not None]
    return round(sum(known), COST_DIGITS) if traces and len(known) == len(traces) else None
