"""docs/batch-and-journal.md names every member of every file of a run directory, and no other."""

import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.host.batch.run_directory import begun
from tests.meta.pages import page

from agentcell.attempts import Tried
from agentcell.batch import journal
from agentcell.batch.directory import FORMAT, RunDirectory
from agentcell.batch.flights import STDERR
from agentcell.batch.identity import DIGEST_LENGTH, DIGEST_VERSION, NAME_LENGTH, OPERATIONAL, SLUG_DIGITS, SLUG_LENGTH
from agentcell.batch.recovery import EVENTS, REQUEST, RESULT
from agentcell.batch.rows import ONE_EACH
from agentcell_protocol.result import Attempt, SessionResult

PAGE = page("docs/batch-and-journal.md")

TRIED = Tried(Attempt(number=1, status="complete"))

EVENTS_WRITTEN = [
    journal.opened(1.0, host_pid=1, boot_id="b", config={}),
    journal.started(
        1.0,
        id="a",
        digest="1:0",
        line=1,
        attempt=1,
        mode="fresh",
        session_id=None,
        marker="m",
        host_pid=1,
        boot_id="b",
    ),
    journal.ended(1.0, id="a", tried=TRIED),
    journal.paused(1.0, reason="r"),
    journal.resumed(1.0),
    journal.reopened(1.0, ids=["a"]),
    journal.left(1.0, markers=["m"]),
    journal.closed(1.0, reason="r"),
]


def members(beginning: str) -> list[str]:
    """The names in the first table after that text, unless something else begins before."""
    rest = PAGE.partition(beginning)[2]
    text = re.split(r"^(?:#+ |\*\*`)", rest, maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)


def section(heading: str) -> str:
    return re.split(r"^#+ ", PAGE.partition(f"\n{heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    with begun(tmp_path) as run:
        run.folder("a", 1)
        run.results.add_now("a", "1:0", 1, SessionResult(status="complete", response="", session_name="s"))
        (tmp_path / "lock.copy").write_bytes((tmp_path / "lock").read_bytes())
    return run


@pytest.mark.parametrize(("heading", "file"), [("### `run.json`", "run.json"), ("### `lock`", "lock.copy")])
def test_the_members_of_a_file_are_those_on_the_page(run: RunDirectory, heading: str, file: str) -> None:
    assert sorted(members(heading)) == sorted(orjson.loads((run.path / file).read_bytes()))


@pytest.mark.parametrize("message", EVENTS_WRITTEN, ids=lambda message: message["event"])
def test_the_members_of_an_event_are_those_on_the_page(message: dict[str, Any]) -> None:
    assert members(f"\n**`{message['event']}`**") == [name for name in message if name not in {"at", "event"}]


def test_the_events_are_those_on_the_page() -> None:
    named = re.findall(r"^\*\*`(\w+)`\*\*", section("### `journal.jsonl`"), re.MULTILINE)
    builders = [name for name, value in vars(journal).items() if getattr(value, "__module__", "") == journal.__name__]
    assert named == [message["event"] for message in EVENTS_WRITTEN] == builders


def test_a_line_of_the_results_is_a_result_with_what_the_page_adds(run: RunDirectory) -> None:
    written = list(orjson.loads((run.path / "results.jsonl").read_bytes()))
    assert written == [*SessionResult.model_fields, *members("### `results.jsonl`")]


def test_the_files_are_those_on_the_page(run: RunDirectory) -> None:
    listed = set(
        re.findall(r"`([^`]+)`", " ".join(re.findall(r"^\| (`.*?) \|", section("## The run directory"), re.MULTILINE)))
    )
    made = {path.name for path in run.path.iterdir() if path.is_file() and path.name != "lock.copy"}
    kept = {f"cells/FOLDER/N/{name}" for name in (REQUEST, EVENTS, STDERR, RESULT)}
    torn = {"journal.jsonl.torn-1", "results.jsonl.torn-1"}
    assert listed == {*made, *kept, *torn, "cells/FOLDER/transcript/SESSION_ID/"}


def test_the_numbers_are_those_of_the_code() -> None:
    who = section("### Who a row is")
    assert f"This is format {FORMAT}." in PAGE
    assert f"the first {NAME_LENGTH} digits" in who
    assert f"`{DIGEST_VERSION}:` and {DIGEST_LENGTH} hexadecimal digits" in who
    assert f"up to {SLUG_LENGTH} characters" in who
    assert f"{SLUG_DIGITS} digits of its SHA-256" in who


def test_what_is_left_out_of_a_digest_and_of_the_defaults_is_on_the_page() -> None:
    left_out = PAGE.partition("do not say what is to be done: ")[2].partition(". Paths")[0]
    assert set(re.findall(r"`(\w+)`", left_out)) == OPERATIONAL
    no_defaults = PAGE.partition("no default takes its place. ")[2].partition(" cannot be defaults")[0]
    assert tuple(re.findall(r"`(\w+)`", no_defaults)) == ONE_EACH
