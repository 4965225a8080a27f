"""The four phases of a build on the real SDK and the real CLI, in a trio program."""

from pathlib import Path
from typing import Any

import pytest
from tests.e2e.scenes import Played, Scene, play

from agentcell_protocol.result import Usage

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

TYPES = ("planner", "coder", "qa_reviewer", "qa_fixer")

TOOLS = {"Read", "Glob", "Grep", "Write", "Edit", "Bash", "WebFetch", "WebSearch"}

PLACEHOLDER = {"DeferredToolPlaceholder"}
"""What the CLI itself adds, and nobody can call."""

PLAN = '{"phases": [{"subtasks": [{"id": "1", "status": "%s"}]}]}'

STATUSES = {"planner": "pending", "coder": "completed", "qa_reviewer": "completed", "qa_fixer": "pending"}
"""What each agent writes into the plan, which decides about its session's status."""


def scene(agent_type: str, spec: Path) -> Scene:
    """An agent that works in the project and in a spec directory outside of it."""
    plan = {"file_path": str(spec / "implementation_plan.json"), "content": PLAN % STATUSES[agent_type]}
    works: list[dict[str, Any]] = [
        {"name": "Write", "input": {"file_path": "notes.txt", "content": agent_type}},
        {"name": "Write", "input": plan},
        {"name": "Bash", "input": {"command": "pwd > where.txt"}},
    ]
    turns: list[dict[str, Any]] = [
        {"text": "I work.", "tools": works},
        {"tools": [{"name": "Read", "input": {"file_path": "notes.txt"}}]},
        {"text": f"The {agent_type} is done."},
    ]
    role = f"You are the {agent_type}."
    return Scene(turns, {"agent_type": agent_type, "spec_dir": str(spec), "system_prompt": role})


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Played]:
    folder = tmp_path_factory.mktemp("phases")
    scenes = {}
    for agent_type in TYPES:
        spec = folder / f"spec of {agent_type}"
        spec.mkdir()
        scenes[agent_type] = scene(agent_type, spec)
    return play(scenes, folder, backend="trio")


@pytest.mark.parametrize("agent_type", TYPES)
def test_a_phase_works_in_its_project_and_its_spec(played: dict[str, Played], agent_type: str) -> None:
    ended = played[agent_type]
    status = "complete" if STATUSES[agent_type] == "completed" else "continue"
    assert (ended.result.status, ended.result.response) == (status, f"The {agent_type} is done.")
    assert (ended.result.agent_type, ended.result.session_name) == (agent_type, agent_type)
    assert (ended.project / "notes.txt").read_text() == agent_type
    assert (ended.project / "where.txt").read_text() == f"{ended.project}\n"


@pytest.mark.parametrize("agent_type", TYPES)
def test_nothing_a_phase_needs_is_denied_or_odd(played: dict[str, Played], agent_type: str) -> None:
    result = played[agent_type].result
    assert (result.permission_denials, result.warnings, result.error) == ([], [], None)
    assert (result.tool_calls, result.swept_processes) == (4, 0)
    assert result.usage == Usage(input_tokens=30, output_tokens=15)
    assert result.cost_usd is not None
    assert result.cost_usd > 0


@pytest.mark.parametrize("agent_type", TYPES)
def test_a_phase_is_told_its_role_first_and_has_the_tools_of_a_build(
    played: dict[str, Played], agent_type: str
) -> None:
    first, *_ = played[agent_type].requests
    assert first.prompt == f"You are the {agent_type}.\n\nGo on. [{agent_type}]"
    assert {tool["name"] for tool in first.body["tools"]} - PLACEHOLDER == TOOLS


@pytest.mark.parametrize("agent_type", TYPES)
def test_a_phase_is_heard_from_hello_to_outcome(played: dict[str, Played], agent_type: str) -> None:
    ended = played[agent_type]
    kinds = [event["type"] for event in ended.events]
    assert (kinds[:2], kinds[-1]) == (["hello", "session_started"], "outcome")
    assert (kinds.count("tool_use"), kinds.count("tool_result")) == (4, 4)
    assert [event["text"] for event in ended.events if event["type"] == "text"] == ["I work.", ended.result.response]
    assert ended.events[1]["session_id"] == ended.result.session_id
