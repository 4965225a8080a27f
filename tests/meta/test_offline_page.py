"""What docs/offline.md shows works, and it names everything a script can say."""

from pathlib import Path

import pytest
import yaml
from tests.meta.pages import blocks, installed, page, run_block

from agentcell.offline import ModelRequest, load_script
from agentcell.offline.script import ApiError, Conversation, Script, TokenUsage, ToolCall, Turn
from agentcell.testing import STEPS

PAGE = page("docs/offline.md")

BLOCKS = blocks(PAGE)
RUNNABLE = [(language, block) for language, block in BLOCKS if language in {"python", "bash"}]
SCRIPTS = [block for language, block in BLOCKS if language == "yaml"]

OF_A_TURN, _, OF_THE_STAND_IN = PAGE.partition("## The stand-in worker")


@pytest.mark.slow
@pytest.mark.e2e
@pytest.mark.parametrize(("language", "block"), RUNNABLE, ids=[f"block {n}" for n in range(len(RUNNABLE))])
def test_a_block_runs_as_it_is(language: str, block: str, tmp_path: Path) -> None:
    assert run_block(language, block, tmp_path, installed(tmp_path)).strip()


@pytest.mark.parametrize("script", SCRIPTS, ids=[f"script {n}" for n in range(len(SCRIPTS))])
def test_a_script_can_be_played(script: str) -> None:
    assert load_script(yaml.safe_load(script)).turns


def test_every_block_says_what_it_is() -> None:
    assert PAGE.count("```") == 2 * len(BLOCKS)
    assert {language for language, _ in BLOCKS} == {"python", "bash", "yaml"}


@pytest.mark.parametrize("part", [Script, Conversation, Turn, ToolCall, ApiError, TokenUsage])
def test_every_member_of_a_script_is_on_the_page(part: type[Script]) -> None:
    assert [name for name in part.model_fields if name not in OF_A_TURN] == []


def test_the_table_of_a_turn_has_its_members() -> None:
    assert [name for name in Turn.model_fields if f"`{name}`" not in OF_A_TURN] == []


def test_everything_known_of_a_request_is_on_the_page() -> None:
    known = [name for name in dir(ModelRequest) if not name.startswith("_")]
    assert [name for name in known if f"`{name}`" not in OF_A_TURN] == []


def test_every_step_of_the_stand_in_is_on_the_page() -> None:
    assert [
        step for step in sorted(STEPS) if f"| `{step}`" not in OF_THE_STAND_IN and f", `{step}`" not in OF_THE_STAND_IN
    ] == []
