"""What the flows that write their own message share: the role prompt, the client, the session."""

from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentcell_protocol.errors import internal_error
from agentcell_worker.agents import prompts
from agentcell_worker.agents.flow import FlowError, flow
from agentcell_worker.agents.registry import agent_named
from agentcell_worker.agents.sessions import Sessions
from agentcell_worker.client import AgentClient

if TYPE_CHECKING:
    from collections.abc import Iterator

NO_SPEC = "none"
"""What a role prompt says in place of a spec directory."""


@dataclass(frozen=True)
class Agent:
    """One agent of a flow: a client, and the role prompt that leads each of its messages."""

    agent_type: str
    role: str
    client: AgentClient
    spec_dir: str | Path | None
    verbose: bool
    sessions: Sessions

    async def ask(self, starting_message: str) -> None:
        """One session of its own. Raises FlowError."""
        parts = (self.role, starting_message, self.sessions.wish(self.agent_type))
        message = "\n\n".join(part for part in parts if part)
        with _failing(""):
            ended = await self.sessions.run(self.client, self.agent_type, message, self.spec_dir, verbose=self.verbose)
        if ended.status == "error":
            raise FlowError(ended.response, ended.trace.error)


def prepare(
    agent_type: str,
    project_dir: str | Path,
    spec_dir: str | Path | None,
    *,
    model: str | None,
    max_thinking_tokens: int | None,
    verbose: bool,
    fields: Mapping[str, object] | None = None,
    sessions: Sessions,
) -> Agent:
    """An agent that can be asked, once per session. Raises FlowError.

    The directories and what `fields` has beside them fill its role prompt.
    """
    places = {"project_dir": project_dir, "spec_dir": spec_dir or NO_SPEC}
    with _failing(f"Failed to load {agent_type} prompt: "):
        role = sessions.role(agent_type) or role_prompt(agent_type, {**places, **(fields or {})})
    with _failing("Failed to create Claude SDK client: "):
        client = sessions.open(agent_type, project_dir, spec_dir, model, max_thinking_tokens)
    return Agent(agent_type, role, client, spec_dir, verbose, sessions)


@flow()
async def run_generator_session(
    agent_type: str,
    project_dir: str | Path,
    spec_dir: str | Path | None,
    starting_message: str,
    *,
    model: str | None = None,
    max_thinking_tokens: int | None = None,
    verbose: bool = False,
    fields: Mapping[str, object] | None = None,
    sessions: Sessions | None = None,
) -> dict[str, Any]:
    """One session of an agent of that type, whose role prompt leads the message; see `prepare`.

    {success, error: text or None}; nothing is raised.
    """
    agent = prepare(
        agent_type,
        project_dir,
        spec_dir,
        model=model,
        max_thinking_tokens=max_thinking_tokens,
        verbose=verbose,
        fields=fields,
        sessions=sessions or Sessions(),
    )
    await agent.ask(starting_message)
    return {"success": True, "error": None}


def role_prompt(agent_type: str, fields: Mapping[str, object]) -> str:
    """The type's role prompt with its fields filled in. Raises OSError, PromptError."""
    path = agent_named(agent_type).prompt
    if path is None:
        raise prompts.PromptError(f"{agent_type} has none")
    return prompts.filled(prompts.load(path), fields)


@contextmanager
def _failing(beginning: str) -> "Iterator[None]":
    """What is raised within is why the flow fails, in a text that begins so."""
    try:
        yield
    except FlowError:
        raise
    except Exception as unexpected:  # a flow promises to raise nothing
        text = f"{beginning}{unexpected}" if str(unexpected) else f"{beginning}{type(unexpected).__name__}"
        raise FlowError(text, internal_error(unexpected).model_copy(update={"message": text})) from unexpected
