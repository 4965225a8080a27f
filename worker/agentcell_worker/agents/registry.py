"""The agent types by name: what each may use, and which flow drives it. Importing this imports no flow."""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from agentcell_protocol.errors import RequestError
from agentcell_protocol.members import PermissionMode, Phase

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agentcell_protocol.result import SessionResult
    from agentcell_worker.agents.job import Job

BUILD_TOOLS = ("Read", "Glob", "Grep", "Write", "Edit", "Bash", "WebFetch", "WebSearch")
"""What the phases of a build work with."""

CONVERSATION = "agentcell_worker.agents.base"
"""The flow that hands the caller's message to the model."""


@dataclass(frozen=True)
class AgentType:
    """What a type brings to a session where the request leaves it open.

    `tools` is what exists and what needs no permission, `flow` the module whose `run` drives the session,
    `context` the names of that flow's own parameters.
    """

    name: str
    phase: Phase
    tools: tuple[str, ...] = BUILD_TOOLS
    permission_mode: PermissionMode = "acceptEdits"
    max_thinking_tokens: int | None = None
    flow: str = CONVERSATION
    takes_message: bool = True
    context: tuple[str, ...] = ()

    def load(self) -> "Callable[[Job], Awaitable[SessionResult]]":
        """The flow's `run`; imports the SDK."""
        run: Callable[[Job], Awaitable[SessionResult]] = import_module(self.flow).run
        return run


_TYPES = (
    AgentType("planner", "planning"),
    AgentType("coder", "coding"),
    AgentType("qa_reviewer", "validation"),
    AgentType("qa_fixer", "validation"),
)

AGENT_TYPES = {agent.name: agent for agent in _TYPES}


def agent_named(name: str) -> AgentType:
    """The type of that name. Raises RequestError, which lists the known ones."""
    agent = AGENT_TYPES.get(name)
    if agent is None:
        raise RequestError("agent_type", f"{name!r} is not known", f"use one of {', '.join(AGENT_TYPES)}")
    return agent
