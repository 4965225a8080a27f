"""What the README tells people to type works.

Blocks marked `python` and `bash` are run as they are, each in an empty project, with the model played by the offline
endpoint. Blocks marked `sh` are for a fresh clone: their make targets must exist.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.meta.pages import blocks, installed, page, run_block
from tests.meta.source import ROOT

from agentcell.offline import offline_model

README = page("README.md")

BLOCKS = blocks(README)
RUNNABLE = [(language, block) for language, block in BLOCKS if language in {"python", "bash"}]

MAX_LINES = 150


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """That of somebody who has installed it, and whose API is the offline endpoint."""
    with offline_model({"turns": [{"text": "Hello."}]}) as endpoint:
        yield {**installed(tmp_path), **endpoint.environment()}


@pytest.mark.slow
@pytest.mark.e2e
@pytest.mark.parametrize(("language", "block"), RUNNABLE, ids=[f"block {n}" for n in range(len(RUNNABLE))])
def test_a_block_runs_as_it_is(language: str, block: str, environment: dict[str, str], tmp_path: Path) -> None:
    assert run_block(language, block, tmp_path, environment).strip()


def test_there_are_blocks_to_run() -> None:
    assert {language for language, _ in RUNNABLE} == {"python", "bash"}


def test_every_block_says_what_it_is() -> None:
    assert README.count("```") == 2 * len(BLOCKS)
    assert {language for language, _ in BLOCKS} <= {"python", "bash", "sh", "json"}


def test_the_make_targets_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", page("Makefile"), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([\w-]+)", README, re.MULTILINE)) <= targets


def test_the_first_two_commands_are_the_demo_and_the_tests() -> None:
    commands = [line for _, block in BLOCKS for line in block.splitlines()][:2]
    assert [command.partition("#")[0].strip() for command in commands] == ["make demo", "make test"]


def test_every_file_it_points_at_exists() -> None:
    linked = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", README)
    assert [path for path in linked if not (ROOT / path).exists()] == []


def test_it_is_short() -> None:
    assert len(README.splitlines()) < MAX_LINES
