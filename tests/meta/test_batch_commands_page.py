"""What docs/batch-and-journal.md says of the commands is what they do."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.host.batch.run_directory import begun
from tests.meta.pages import blocks, installed, page, run_block

from agentcell.batch.caps import parse_max_failures
from agentcell.batch.tally import Snapshot
from agentcell.batch.views import JsonView
from agentcell.cli import agentcell
from agentcell.commands.batch import batch
from agentcell.commands.moment import moment
from agentcell_protocol.exitcodes import BAD_REQUEST, CANCEL_SIGNALS, ERROR, OK, PAUSED, SIGNALLED

PAGE = page("docs/batch-and-journal.md")

BLOCKS = blocks(PAGE)
RUNNABLE = [(language, block) for language, block in BLOCKS if language == "bash"]


def table(head: str) -> list[tuple[str, str]]:
    """The two columns of the first table with that head."""
    rows = PAGE.partition(f"\n| {head} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [(first.strip(), rest.strip()) for first, _, rest in (row.strip("|").partition(" | ") for row in rows)]


def names(text: str) -> list[str]:
    return re.findall(r"`([\w-]+)`", text)


@pytest.mark.slow
@pytest.mark.e2e
@pytest.mark.parametrize(("language", "block"), RUNNABLE, ids=[f"block {n}" for n in range(len(RUNNABLE))])
def test_a_block_runs_as_it_is(language: str, block: str, tmp_path: Path) -> None:
    shown = run_block(language, block, tmp_path, installed(tmp_path))
    assert "state: finished\nrows: 2: 2 done, 0 failed\ncomplete: 2\n" in shown


def test_every_block_says_what_it_is() -> None:
    assert PAGE.count("```") == 2 * len(BLOCKS)
    assert {language for language, _ in BLOCKS} == {"bash"}


def test_the_options_are_those_of_the_command() -> None:
    said = [option for first, _ in table("option") for option in names(first)]
    assert said == [option for one in batch.params if one.param_type_name == "option" for option in one.opts]


def test_the_defaults_are_those_of_the_command() -> None:
    said = dict(table("option"))
    defaults = {option: one.default for one in batch.params for option in one.opts}
    for option in ("--retries", "--min-free-mb", "--grace"):
        assert f": {defaults[option]:g}" in said[f"`{option}`"]
    assert names(said["`--progress`"])[0] == defaults["--progress"]


def test_the_examples_of_options_are_understood() -> None:
    said = dict(table("option"))
    [share] = re.findall(r"`(\d+%)`", said["`--max-failures`"])
    assert parse_max_failures(share).is_share
    times = re.findall(r"`([^`]+)`", said["`--deadline`"])
    assert len([moment(text, 0.0) for text in times]) == 4


def test_the_exit_codes_are_those_of_the_code() -> None:
    said = [int(number) for first, _ in table("exit code") for number in first.split(",")]
    assert said == [OK, ERROR, BAD_REQUEST, PAUSED, *(SIGNALLED + number for number in CANCEL_SIGNALS.values())]


def test_the_members_of_a_status_are_those_on_the_page(tmp_path: Path) -> None:
    with begun(tmp_path):
        shown = CliRunner().invoke(agentcell, ["status", "--json", str(tmp_path)])
    listed = PAGE.partition("\n### Looking at it\n")[2].partition("\n## ")[0]
    said = re.findall(r"^\| `(\w+)` \|", listed, re.MULTILINE)
    assert said == list(json.loads(shown.stdout))
    progress = json.loads(JsonView().frame(Snapshot()))
    assert list(progress) == ["type", "at", *said[said.index("total") : said.index("paused_until") + 1]]
