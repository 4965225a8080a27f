"""What can be said of a request before anything is started."""

import os
from collections.abc import Mapping

from agentcell_protocol.errors import Category, RequestError, SessionError, session_error
from agentcell_protocol.request import SessionRequest
from agentcell_worker.agents.registry import AgentType, agent_named


def check_request(request: SessionRequest) -> AgentType:
    """The request's agent type. Raises RequestError for what the type does not take."""
    agent = agent_named(request.agent_type)
    if agent.takes_message and request.starting_message is None:
        raise RequestError("starting_message", "is missing", f"say what the {agent.name} is to do")
    for name in request.context or ():
        if name not in agent.context:
            known = ", ".join(agent.context) or "nothing"
            raise RequestError(f"context.{name}", f"is not taken by {agent.name}", f"it takes {known}")
    return agent


def check_permissions(request: SessionRequest, environment: Mapping[str, str]) -> SessionError | None:
    """Why the CLI would refuse to start with this permission mode, if it would."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    if request.permission_mode != "bypassPermissions" or not is_root or environment.get("IS_SANDBOX") == "1":
        return None
    return session_error(
        Category.PERMISSION_MODE,
        "the CLI does not run with bypassPermissions as root",
        hint="use acceptEdits with allowed_tools, run as another user, or set IS_SANDBOX=1 inside a sandbox",
        permission_mode=request.permission_mode,
    )
