"""`python -P -m agentcell_worker.agents [--agents-dir DIR]`: the agent types, one JSON object a line.

What keeps a file from defining one follows, as lines of `file`, `reason` and `remedy`.
"""

import sys
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from agentcell_protocol.codec import encode, kind
from agentcell_protocol.errors import RequestError
from agentcell_worker.agents.definitions import Definitions, Problem, read_definitions
from agentcell_worker.agents.registry import AGENT_CONFIGS, AgentType


def main(arguments: list[str]) -> None:
    """Print the types and the problems."""
    parser = ArgumentParser(prog="python -m agentcell_worker.agents", allow_abbrev=False)
    parser.add_argument("--agents-dir", metavar="DIR")
    found = _found(parser.parse_args(arguments).agents_dir)
    types = [_described(agent, found.notes.get(name, ())) for name, agent in found.types.items()]
    lines = [*types, *map(asdict, found.problems)]
    sys.stdout.buffer.writelines(map(encode, lines))


def _found(directory: str | None) -> Definitions:
    if directory is None:
        return Definitions(AGENT_CONFIGS)
    try:
        return read_definitions(directory)
    except RequestError as unreadable:
        return Definitions(AGENT_CONFIGS, (Problem("agents_dir", unreadable.reason, unreadable.remedy),))


def _described(agent: AgentType, notes: tuple[str, ...]) -> dict[str, Any]:
    return {
        "name": agent.name,
        "description": agent.description,
        "phase": agent.phase,
        "tools": list(agent.tools),
        "disallowed_tools": list(agent.disallowed_tools),
        "permission_mode": agent.permission_mode,
        "model": agent.model,
        "context": {name: kind(expected()).split()[1] for name, expected in agent.context.items()},
        "needs_message": agent.needs_message,
        "source": "built-in" if agent.source is None else str(agent.source),
        "notes": list(notes),
    }


if __name__ == "__main__":
    main(sys.argv[1:])
