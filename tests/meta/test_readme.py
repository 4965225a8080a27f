"""What the README tells people to type works.

Blocks marked `python` and `bash` are run as they are, each in an empty project, with the model played by the offline
endpoint. Blocks marked `sh` are for a fresh clone: their make targets must exist.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.meta.source import ROOT

from agentcell.offline import offline_model

README = (ROOT / "README.md").read_text("utf-8")

BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
RUNNABLE = [(language, block) for language, block in BLOCKS if language in {"python", "bash"}]

MAX_LINES = 150

RUN_SECONDS = 120
"""For what takes seconds; a busy machine may need ten times that."""


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """That of somebody who has installed it, and whose API is the offline endpoint."""
    programs = Path(sys.executable).parent
    with offline_model({"turns": [{"text": "Hello."}]}) as endpoint:
        yield {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "LANG": "C.UTF-8",
            **endpoint.environment(),
        }


@pytest.mark.slow
@pytest.mark.e2e
@pytest.mark.parametrize(("language", "block"), RUNNABLE, ids=[f"block {n}" for n in range(len(RUNNABLE))])
def test_a_block_runs_as_it_is(language: str, block: str, environment: dict[str, str], tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    script = tmp_path / "block"
    script.write_text(block, "utf-8")
    argv = [sys.executable, str(script)] if language == "python" else ["bash", "-euo", "pipefail", str(script)]
    ended = subprocess.run(
        argv,
        cwd=project,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=RUN_SECONDS,
    )
    assert ended.returncode == 0, f"{ended.stdout}{ended.stderr}"
    assert ended.stdout.strip()


def test_there_are_blocks_to_run() -> None:
    assert {language for language, _ in RUNNABLE} == {"python", "bash"}


def test_every_block_says_what_it_is() -> None:
    assert README.count("```") == 2 * len(BLOCKS)
    assert {language for language, _ in BLOCKS} <= {"python", "bash", "sh", "json"}


def test_the_make_targets_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([\w-]+)", README, re.MULTILINE)) <= targets


def test_the_first_two_commands_are_the_demo_and_the_tests() -> None:
    commands = [line for _, block in BLOCKS for line in block.splitlines()][:2]
    assert [command.partition("#")[0].strip() for command in commands] == ["make demo", "make test"]


def test_every_file_it_points_at_exists() -> None:
    linked = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", README)
    assert [path for path in linked if not (ROOT / path).exists()] == []


def test_it_is_short() -> None:
    assert len(README.splitlines()) < MAX_LINES
