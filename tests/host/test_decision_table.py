"""The table that makes a cell's end its result: one ending for each of its rows, and the page that prints it."""

import re

import pytest
from tests.host.test_attempt import CANCELLED, REQUEST, STARTED, SUCCESS, TEXT, answered, foretold, heard
from tests.meta.source import ROOT

from agentcell import attempt
from agentcell.attempt import Ending, decide
from agentcell.causes import Exceeded, Limited, Lingered, Stopped
from agentcell.record import Record
from agentcell.spawn import UNSEEN
from agentcell.stop import HOST_LOST
from agentcell_protocol.errors import Category, session_error

ROWS = [tuple(re.split(r"\s{2,}", line, maxsplit=2)) for line in str(attempt.__doc__).splitlines()[3:]]

WALL = Limited("wall", 30.0)
MEMORY = Exceeded("max_memory_mb", 100, 120.5, pid=7, process="hog")
THREADS = Exceeded("max_threads", 10, 11)
KILLED_CLI = SUCCESS.as_error(session_error(Category.CLI_FAILED, "the CLI was killed", partial_response="half"))
TOLD = heard(STARTED, TEXT)

Seen = tuple[str | None, list[str]]
"""The category of the error, and the codes of the warnings."""

EXAMPLES: list[tuple[str, str, list[tuple[Ending, Seen]]]] = [
    (
        "result",
        "itself",
        [
            (Ending(answered(SUCCESS), 0), (None, [])),
            (Ending(answered(SUCCESS), 3), (None, ["odd_exit"])),
            (Ending(answered(SUCCESS), UNSEEN), (None, [])),
        ],
    ),
    (
        "result",
        "a limit",
        [
            (Ending(answered(CANCELLED), 143, WALL), ("timeout", [])),
            (Ending(answered(CANCELLED), 143, MEMORY), ("memory_limit", [])),
            (Ending(answered(KILLED_CLI), 1, MEMORY), ("memory_limit", [])),
            (Ending(answered(KILLED_CLI), 1, THREADS), ("limit_exceeded", [])),
            (Ending(answered(KILLED_CLI), 1, WALL), ("cli_failed", ["limit_in_cleanup"])),
            (Ending(answered(SUCCESS), 0, MEMORY), (None, ["limit_in_cleanup"])),
        ],
    ),
    (
        "result",
        "a stop",
        [
            (Ending(answered(CANCELLED), 143, Stopped("SIGINT")), ("cancelled", [])),
            (Ending(answered(CANCELLED), 143, Stopped(HOST_LOST)), ("host_lost", [])),
            (Ending(answered(SUCCESS), 0, Stopped("SIGINT")), (None, [])),
        ],
    ),
    (
        "result",
        "lingering after it",
        [(Ending(answered(SUCCESS), -15, Lingered("result", 5)), (None, ["worker_lingered"]))],
    ),
    (
        "outcome",
        "itself, lingering",
        [
            (Ending(foretold(SUCCESS), -9), (None, ["odd_exit"])),
            (Ending(foretold(SUCCESS), UNSEEN), (None, ["odd_exit"])),
            (Ending(foretold(SUCCESS), -9, Lingered("outcome", 40)), (None, ["worker_lingered"])),
        ],
    ),
    (
        "outcome",
        "a limit, a stop",
        [
            (Ending(foretold(CANCELLED), -9, WALL), ("timeout", [])),
            (Ending(foretold(SUCCESS), -9, WALL), (None, ["limit_in_cleanup"])),
            (Ending(foretold(CANCELLED), -9, Stopped("SIGINT")), ("cancelled", [])),
        ],
    ),
    (
        "neither",
        "a limit",
        [
            (Ending(TOLD, -15, WALL), ("timeout", [])),
            (Ending(TOLD, -15, MEMORY), ("memory_limit", [])),
            (Ending(TOLD, -15, THREADS), ("limit_exceeded", [])),
        ],
    ),
    (
        "neither",
        "a stop",
        [
            (Ending(TOLD, -15, Stopped("SIGINT")), ("cancelled", [])),
            (Ending(TOLD, -15, Stopped(HOST_LOST)), ("host_lost", [])),
        ],
    ),
    ("neither", "a signal", [(Ending(TOLD, -9), ("crashed", []))]),
    ("neither", "nobody saw what", [(Ending(TOLD, UNSEEN), ("crashed", []))]),
    (
        "neither",
        "an exit code",
        [(Ending(TOLD, 0), ("crashed", [])), (Ending(heard(b"Hello!"), 0), ("protocol", ["protocol"]))],
    ),
]


def test_every_row_has_its_examples() -> None:
    assert [(heard, ended_by) for heard, ended_by, _ in EXAMPLES] == [row[:2] for row in ROWS]


@pytest.mark.parametrize(
    ("ending", "seen"),
    [pytest.param(*example, id=f"{row[0]}-{row[1]}") for row in EXAMPLES for example in row[2]],
)
def test_an_ending_becomes_the_result_of_its_row(ending: Ending, seen: Seen) -> None:
    result = decide(REQUEST, ending)
    assert (result.error and result.error.category, [notice.code for notice in result.warnings]) == seen
    assert result.status == ("complete" if result.error is None else "error")


@pytest.mark.parametrize("record", [answered(CANCELLED), TOLD])
def test_a_memory_limit_names_the_peak_and_the_culprit_and_keeps_the_text(record: Record) -> None:
    ending = Ending(record, 143, MEMORY, peak_memory_mb=130.0, violated=("max_cpu_percent",))
    result = decide(REQUEST, ending)
    assert result.error is not None
    expected = {"limit": "max_memory_mb", "allowed": 100, "reached": 120.5, "pid": 7, "process": "hog"}
    assert {**result.error.details, **expected, "peak_memory_mb": 130.0} == result.error.details
    assert result.error.partial_response == "half"
    assert result.response == (
        "the session reached 120.5 MB, over max_memory_mb (100 MB); the largest process was hog (pid 7)"
    )
    assert (result.violated_limits, result.peak_memory_mb) == (["max_cpu_percent", "max_memory_mb"], 130.0)


def test_the_page_prints_the_table() -> None:
    page = (ROOT / "docs" / "failure-modes.md").read_text("utf-8")
    table = page.partition("| heard | ended by | the result |\n|---|---|---|\n")[2].partition("\n\n")[0]
    assert [tuple(line.strip("| ").split(" | ")) for line in table.splitlines()] == ROWS
