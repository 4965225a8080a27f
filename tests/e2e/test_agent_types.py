"""Agent types that users define, on the real SDK and the real CLI: they have the tools they name, and no others."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.scenes import Played, Scene, play

from agentcell.offline import offline_environment, offline_model

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

BOUND_SECONDS = 120.0
"""For a command; it takes a few seconds."""

READER = """---
name: reader
description: Use it to look: it changes nothing. <example>user: "look"</example>
tools: Read, Grep
model: claude-haiku-4-5
color: blue
---

You read, and change nothing. $HOME costs $5.
"""

WRITER = """---
name: writer
tools: [Read, Write, "Bash(install kept.txt allowed.txt)"]
---
You write.
"""

BARRED = """---
name: barred
disallowedTools: Write, Edit, Bash
---
You do not write.
"""

FILES = {"reader": READER, "writer": WRITER, "barred": BARRED, "broken": "You are nobody."}

PLACEHOLDER = {"DeferredToolPlaceholder"}
"""What the CLI itself adds, and nobody can call."""

ATTEMPTS: list[dict[str, Any]] = [
    {"name": "Read", "input": {"file_path": "kept.txt"}},
    {"name": "Write", "input": {"file_path": "new.txt", "content": "new"}},
    {"name": "Write", "input": {"file_path": "kept.txt", "content": "changed"}},
    {"name": "Edit", "input": {"file_path": "kept.txt", "old_string": "as", "new_string": "not as"}},
    {"name": "Bash", "input": {"command": "install kept.txt by_bash.txt"}},
    {"name": "Bash", "input": {"command": "install kept.txt allowed.txt"}},
]

WRITES: list[dict[str, Any]] = [ATTEMPTS[1], *ATTEMPTS[4:]]


def scene(agent_type: str, agents: Path, calls: list[dict[str, Any]]) -> Scene:
    turns: list[dict[str, Any]] = [*({"tools": [call]} for call in calls), {"text": "Done."}]
    members = {"agent_type": agent_type, "agents_dir": str(agents)}
    return Scene(turns, members, files={"kept.txt": "as it was"})


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Played]:
    folder = tmp_path_factory.mktemp("types")
    agents = folder / "agents"
    agents.mkdir()
    for name, content in FILES.items():
        (agents / f"{name}.md").write_text(content)
    calls = {"reader": ATTEMPTS, "writer": WRITES, "barred": ATTEMPTS}
    return play({name: scene(name, agents, calls[name]) for name in calls}, folder)


def refusals(ended: Played) -> list[bool]:
    """Of each call whether it came back as an error."""
    return [event["is_error"] for event in ended.events if event["type"] == "tool_result"]


@pytest.mark.parametrize("agent_type", ["reader", "barred"])
def test_a_type_without_write_edit_and_bash_cannot_write(played: dict[str, Played], agent_type: str) -> None:
    ended = played[agent_type]
    assert refusals(ended) == [False, True, True, True, True, True]
    assert {file.name: file.read_text() for file in ended.project.iterdir()} == {"kept.txt": "as it was"}
    assert (ended.result.status, ended.result.response, ended.result.error) == ("complete", "Done.", None)


def test_a_type_with_write_writes_and_its_commands_keep_to_their_rule(played: dict[str, Played]) -> None:
    ended = played["writer"]
    assert refusals(ended) == [False, True, False]
    assert {file.name for file in ended.project.iterdir()} == {"kept.txt", "new.txt", "allowed.txt"}
    assert (ended.result.status, [denial.tool_name for denial in ended.result.permission_denials]) == (
        "complete",
        ["Bash"],
    )


@pytest.mark.parametrize(
    ("agent_type", "tools"),
    [
        ("reader", {"Read", "Grep"}),
        ("writer", {"Read", "Write", "Bash"}),
        ("barred", {"Read", "Glob", "Grep", "WebFetch", "WebSearch"}),
    ],
)
def test_the_model_is_offered_the_tools_of_the_type_alone(
    played: dict[str, Played], agent_type: str, tools: set[str]
) -> None:
    for asked in played[agent_type].requests:
        assert {tool["name"] for tool in asked.body["tools"]} - PLACEHOLDER == tools


def test_its_role_prompt_leads_the_message_and_its_model_is_asked(played: dict[str, Played]) -> None:
    first, *_ = played["reader"].requests
    assert first.prompt == "You read, and change nothing. $HOME costs $5.\n\nGo on. [reader]"
    assert first.body["model"] == "claude-haiku-4-5"


def test_what_is_odd_about_the_definitions_is_a_warning(played: dict[str, Played]) -> None:
    broken, unused = played["reader"].result.warnings
    assert (broken.code, broken.message.partition(";")[0]) == (
        "agent_definition",
        "broken.md defines no agent type: it has no front matter",
    )
    assert (unused.code, unused.message) == ("agent_definition", "reader.md sets what has no effect here: color")


def agentcell(environment: dict[str, str], project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).parent / "agentcell", "run", *arguments],
        env=environment,
        cwd=project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=BOUND_SECONDS,
        check=False,
    )


def test_the_command_line_runs_a_type_of_a_directory(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "reader.md").write_text(READER)
    with offline_model({"turns": [{"text": "I have looked."}]}) as endpoint:
        environment = {**offline_environment(endpoint, tmp_path)}
        ended = agentcell(environment, tmp_path, "--agents-dir", "agents", "--agent-type", "reader", "Look.")
        [asked] = endpoint.requests
    assert (ended.returncode, ended.stdout) == (0, "I have looked.\n")
    assert asked.prompt == "You read, and change nothing. $HOME costs $5.\n\nLook."


def test_what_only_the_worker_knows_is_a_usage_error_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "context.json").write_text('{"colours": []}')
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "ANTHROPIC_API_KEY": "sk-ant-test"}
    ended = agentcell(environment, tmp_path, "--agent-type", "fixture_generator", "--context", "context.json")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert (
        "Invalid value for --context: colours: is not taken by fixture_generator; it takes analysis_results"
        in ended.stderr
    )
