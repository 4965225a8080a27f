"""What an agent may use and must keep to, from a request and its agent type to the SDK's options by name."""

from pathlib import Path
from typing import Any
from uuid import uuid4

from agentcell_protocol.framing import LINE_LIMIT
from agentcell_protocol.request import SessionRequest
from agentcell_worker.agents.registry import AgentType

SAME_NAME = (
    "fallback_model",
    "effort",
    "max_turns",
    "max_budget_usd",
    "permission_mode",
    "tools",
    "allowed_tools",
    "disallowed_tools",
    "mcp_servers",
    "add_dirs",
    "setting_sources",
    "env",
    "session_id",
    "resume",
    "cli_path",
)
"""Members of a request that are options of the SDK under the same name."""


def client_arguments(request: SessionRequest) -> dict[str, Any]:
    """The arguments of `create_client` that a request asks for; what it leaves open is left out."""
    arguments: dict[str, Any] = {
        "project_dir": request.project_dir,
        "spec_dir": request.spec_dir,
        "model": request.model,
        "agent_type": request.agent_type,
        "max_thinking_tokens": request.max_thinking_tokens,
    }
    options = {name: value for name in SAME_NAME if (value := getattr(request, name)) is not None}
    if request.output_schema is not None:
        options["output_format"] = {"type": "json_schema", "schema": request.output_schema}
    if request.events == "full":
        options["include_partial_messages"] = True
    return arguments | options


def with_defaults(agent: AgentType, options: dict[str, Any]) -> dict[str, Any]:
    """The options, and where they are silent those of the agent type and of every cell.

    What the type refuses stays refused. A tool that it names with a rule, as in `Bash(git log:*)`, exists, and needs
    no permission where the rule fits.
    """
    refused = dict.fromkeys([*agent.disallowed_tools, *options.get("disallowed_tools", ())])
    defaults: dict[str, Any] = {
        "tools": list(dict.fromkeys(tool.partition("(")[0] for tool in agent.tools)),
        "allowed_tools": list(agent.tools),
        "mcp_servers": {name: dict(server) for name, server in agent.mcp_servers.items()},
        "permission_mode": agent.permission_mode,
        "max_thinking_tokens": agent.max_thinking_tokens,
        "system_prompt": {"type": "preset", "preset": "claude_code"},
        "setting_sources": [],
        "strict_mcp_config": True,
        "verbatim_prompts": True,
        "max_buffer_size": LINE_LIMIT,
        "session_id": None if options.get("resume") else str(uuid4()),
    }
    return {**defaults, **options, "disallowed_tools": list(refused)}


def outside(spec_dir: str | Path | None, project_dir: str | Path) -> list[str]:
    """The spec's directory, unless it lies within the project and so may be worked in anyway."""
    if spec_dir is None or Path(spec_dir).resolve().is_relative_to(Path(project_dir).resolve()):
        return []
    return [str(spec_dir)]
