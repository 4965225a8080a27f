"""What can be said of a request before anything is started."""

import os
from collections.abc import Mapping
from pathlib import Path

from agentcell_protocol.errors import Category, RequestError, SessionError, session_error
from agentcell_protocol.request import SessionRequest
from agentcell_protocol.result import Notice
from agentcell_worker.agents.registry import AgentType, agent_named


def find_agent(request: SessionRequest) -> tuple[AgentType, tuple[Notice, ...]]:
    """The request's agent type, and what is odd about its definition. Raises RequestError when there is none."""
    if request.agents_dir is None:
        return agent_named(request.agent_type), ()
    from agentcell_worker.agents.definitions import read_definitions  # noqa: PLC0415 - few pay for YAML

    return read_definitions(request.agents_dir).named(request.agent_type)


def check_request(request: SessionRequest, agent: AgentType) -> None:
    """Raises RequestError for what the agent type does not take."""
    if agent.needs_message and request.starting_message is None:
        raise RequestError("starting_message", "is missing", f"say what the {agent.name} is to do")
    if request.context:
        from agentcell_worker.agents.parameters import check_context  # noqa: PLC0415 - few pay for what checks them

        check_context(request.context, agent, Path(request.project_dir))


def check_permissions(request: SessionRequest, agent: AgentType, environment: Mapping[str, str]) -> SessionError | None:
    """Why the CLI would refuse to start with this permission mode, if it would."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    mode = request.permission_mode or agent.permission_mode
    if mode != "bypassPermissions" or not is_root or environment.get("IS_SANDBOX") == "1":
        return None
    return session_error(
        Category.PERMISSION_MODE,
        "the CLI does not run with bypassPermissions as root",
        hint="use acceptEdits with allowed_tools, run as another user, or set IS_SANDBOX=1 inside a sandbox",
        permission_mode=mode,
    )
