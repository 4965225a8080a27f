"""What docs/conformance.md shows works, and it names every check."""

import json
import re
from pathlib import Path

import pytest
from tests.meta.pages import blocks, installed, page, run_block

from agentcell.conformance.host_checks import HOST_CHECKS
from agentcell.conformance.worker_checks import WORKER_CHECKS

PAGE = page("docs/conformance.md")

WHOLE, SOME = [block for language, block in blocks(PAGE) if language == "bash"]

CHECKS = (*WORKER_CHECKS, *HOST_CHECKS)


@pytest.mark.slow
@pytest.mark.e2e
def test_some_checks_can_be_run_alone(tmp_path: Path) -> None:
    lines = run_block("bash", SOME, tmp_path, installed(tmp_path)).splitlines()
    assert [(one["number"], one["grade"]) for one in map(json.loads, lines)] == [("W23", "passed"), ("W40", "passed")]


def test_the_commands_for_all_checks_are_those_of_the_other_test() -> None:
    """They take too long to be run twice: see tests/conformance/test_own_programs.py."""
    assert WHOLE.splitlines() == [
        "agentcell conformance worker -- agentcell-worker",
        "agentcell conformance host -- agentcell serve -j 2",
    ]


def test_every_check_is_on_the_page() -> None:
    listed = re.findall(r"^\| ([WH]\d+) \| (.*) \|$", PAGE, re.MULTILINE)
    assert listed == [(check.number, check.title) for check in CHECKS]


def test_every_block_says_what_it_is() -> None:
    assert {language for language, _ in blocks(PAGE)} == {"bash", "text"}
