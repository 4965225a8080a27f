"""The agent types by name: what each may use, and which flow drives it. Importing this imports no flow."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from agentcell_protocol.errors import RequestError
from agentcell_protocol.members import PermissionMode, Phase

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agentcell_protocol.result import SessionResult
    from agentcell_worker.agents.job import Job

READING = ("Read", "Glob", "Grep")
WRITING = ("Write", "Edit")
WEB = ("WebFetch", "WebSearch")
BUILD_TOOLS = (*READING, *WRITING, "Bash", *WEB)
"""What the phases of a build work with."""

FLOWS = "agentcell_worker.agents."
CONVERSATION = FLOWS + "conversation"
"""The flow that hands the caller's message to the model."""

PROMPTS = Path(__file__).parent.parent / "prompts"


@dataclass(frozen=True)
class AgentType:
    """What a type brings to a session where the request leaves it open.

    `tools` is what exists and what needs no permission, `flow` the module whose `run` drives the session, `context`
    that flow's own parameters and their types. The role prompt is `role`, as it stands, or the Markdown file
    `prompt`, whose fields the flow fills in. A type that `needs_message` does nothing without the caller's. `source`
    is the file that defines one of the user's.
    """

    name: str
    phase: Phase
    description: str = ""
    tools: tuple[str, ...] = BUILD_TOOLS
    disallowed_tools: tuple[str, ...] = ()
    permission_mode: PermissionMode = "acceptEdits"
    mcp_servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    model: str | None = None
    max_thinking_tokens: int | None = None
    role: str | None = None
    prompt: Path | None = None
    flow: str = CONVERSATION
    needs_message: bool = True
    context: Mapping[str, type] = field(default_factory=dict)
    source: Path | None = None

    def load(self) -> "Callable[[Job], Awaitable[SessionResult]]":
        """The flow's `run`; imports the SDK."""
        run: Callable[[Job], Awaitable[SessionResult]] = import_module(self.flow).run
        return run


def _generator(name: str, phase: Phase, description: str, *more_tools: str, **context: type) -> AgentType:
    """A type that writes its own message, from its role prompt and its context."""
    return AgentType(
        name,
        phase,
        description,
        tools=(*READING, *WRITING, *more_tools),
        prompt=PROMPTS / f"{name}.md",
        flow=FLOWS + name,
        needs_message=False,
        context=context,
    )


_TYPES = (
    AgentType("planner", "planning", "Plans a build: what is to be done, in which order."),
    AgentType("coder", "coding", "Builds what the message asks for."),
    AgentType("qa_reviewer", "validation", "Checks what was built against what was asked for."),
    AgentType("qa_fixer", "validation", "Mends what a review found."),
    _generator("documentation_generator", "coding", "Writes documentation for existing code.", analysis_results=dict),
    _generator(
        "migration_assistant",
        "coding",
        "Migrates code step by step, with a commit and a way back at each checkpoint.",
        "Bash",
        *WEB,
        migration_context=dict,
    ),
    _generator(
        "test_generator",
        "validation",
        "Writes tests, checks that they load, and closes gaps in their coverage.",
        "Bash",
        analysis_results=dict,
        generate_fixtures_first=bool,
        python=str,
        minimum_coverage=float,
    ),
    _generator(
        "fixture_generator", "validation", "Writes pytest fixtures for existing code.", "Bash", analysis_results=dict
    ),
)

AGENT_CONFIGS: Mapping[str, AgentType] = MappingProxyType({agent.name: agent for agent in _TYPES})
"""The types that come with agentcell, by name."""


def agent_named(name: str, types: Mapping[str, AgentType] = AGENT_CONFIGS) -> AgentType:
    """The type of that name. Raises RequestError, which lists the known ones."""
    if (agent := types.get(name)) is not None:
        return agent
    close = get_close_matches(name, types, n=1)
    remedy = f"use one of {', '.join(types)}" + (f"; did you mean {close[0]}?" if close else "")
    if types is AGENT_CONFIGS:
        remedy += "; a type of your own needs its agents_dir"
    raise RequestError("agent_type", f"{name!r} is not known", remedy)
