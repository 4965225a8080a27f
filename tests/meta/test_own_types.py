"""What docs/agents.md says of agent types that users define is so."""

import re
from pathlib import Path
from typing import get_args

import pytest
from tests.meta.pages import blocks, installed, page, run_block

from agentcell.offline import offline_model
from agentcell_protocol.members import PermissionMode
from agentcell_worker.agents.definition import MAX_BYTES, MEMBERS, NOT_USED
from agentcell_worker.agents.definitions import read_definitions
from agentcell_worker.agents.registry import AGENT_CONFIGS, AgentType

SECTION = page("docs/agents.md").partition("\n## Your own types\n")[2].partition("\n## ")[0]

DEFINITION, COMMANDS = [block for _, block in blocks(SECTION)]

ROLE = DEFINITION.partition("---\n\n")[2].strip()


def test_the_definition_that_is_shown_is_one(tmp_path: Path) -> None:
    (tmp_path / "reviewer.md").write_text(DEFINITION)
    found = read_definitions(tmp_path)
    assert found.named("reviewer") == (
        AgentType(
            "reviewer",
            "coding",
            "Says what is wrong with a change, and changes nothing.",
            tools=("Read", "Grep", "Glob", "Bash(git diff:*)"),
            role=ROLE,
            source=tmp_path / "reviewer.md",
        ),
        (),
    )


@pytest.mark.slow
@pytest.mark.e2e
def test_the_commands_that_are_shown_run_it(tmp_path: Path) -> None:
    agents = tmp_path / "project" / "agents"
    agents.mkdir(parents=True)
    (agents / "reviewer.md").write_text(DEFINITION)
    with offline_model({"turns": [{"text": "Nothing is wrong."}]}) as endpoint:
        printed = run_block("bash", COMMANDS, tmp_path, {**installed(tmp_path), **endpoint.environment()})
        [asked] = endpoint.requests
    assert [name for name in (*AGENT_CONFIGS, "reviewer") if f"\n{name} " not in f"\n{printed}"] == []
    assert printed.endswith("\nNothing is wrong.\n")
    assert asked.prompt == ROLE + "\n\nReview the last commit."


def test_the_members_of_a_definition_are_on_the_page() -> None:
    assert re.findall(r"^\| `(\w+)`", SECTION, re.MULTILINE) == list(MEMBERS)
    unused = SECTION.partition("What else Claude Code reads")[2].partition("Any other name")[0]
    assert set(re.findall(r"`(\w+)`", unused)) == NOT_USED
    assert f"{MAX_BYTES:,} bytes" in SECTION


def test_a_definition_may_have_each_permission_mode_of_a_request(tmp_path: Path) -> None:
    for mode in get_args(PermissionMode):
        (tmp_path / f"{mode}.md").write_text(f"---\nname: {mode}\npermissionMode: {mode}\n---\nYou work.\n")
    found = read_definitions(tmp_path)
    assert [found.types[mode].permission_mode for mode in get_args(PermissionMode)] == list(get_args(PermissionMode))
    assert found.problems == ()
