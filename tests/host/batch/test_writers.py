"""Rows that may write into one project are noticed, in a file and in a stream."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcell.batch.rows import Problem, Row
from agentcell.batch.writers import WatchedRows, Writers, may_write
from agentcell.limits import Limits
from agentcell_protocol.errors import RequestError
from agentcell_protocol.request import parse_request


def row(id_: str, project: Path, **more: Any) -> Row:
    members = {"session_name": id_, "agent_type": "coder", "project_dir": str(project), "starting_message": "Go."}
    return Row(1, 0, id_, "1:aa", parse_request({**members, **more}), Limits())


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, True),
        ({"tools": []}, False),
        ({"tools": ["Read", "Grep"]}, False),
        ({"tools": ["Read", "Bash"]}, True),
        ({"tools": ["mcp__files__put"]}, True),
        ({"permission_mode": "plan"}, False),
    ],
)
def test_a_row_may_write_unless_it_says_that_it_does_not(tmp_path: Path, more: dict[str, Any], expected: bool) -> None:
    assert may_write(row("a", tmp_path, **more)) is expected


def test_rows_that_write_into_one_project_are_counted(tmp_path: Path) -> None:
    project, other, link = tmp_path / "project", tmp_path / "other", tmp_path / "link"
    project.mkdir()
    other.mkdir()
    link.symlink_to("project")
    writers = Writers()
    for one in (row("a", project), row("b", project, tools=[]), row("d", other)):
        writers.add(one)
    assert writers.most is None
    writers.add(row("c", link))
    assert writers.most == (str(project), 2)


class Given:
    def __init__(self, *rows: Row | Problem) -> None:
        self._rows = iter(rows)

    async def next(self) -> Row | Problem | None:
        return next(self._rows, None)


def test_the_second_of_a_stream_is_warned_of_once_and_those_that_are_done_do_not_count(tmp_path: Path) -> None:
    problem = Problem(2, 9, "line-2", RequestError(None, "it is none", "mend it"))
    rows: list[Row | Problem] = [
        row("done", tmp_path),
        row("a", tmp_path),
        problem,
        row("b", tmp_path),
        row("c", tmp_path),
    ]
    warned: list[tuple[str, str]] = []
    seen: list[str] = []

    async def main() -> None:
        watched = WatchedRows(Given(*rows), lambda project: warned.append((seen[-1], project)), {"done"}.__contains__)
        while (found := await watched.next()) is not None:
            seen.append(found.id)

    anyio.run(main)
    assert (seen, warned) == (["done", "a", "line-2", "b", "c"], [("line-2", str(tmp_path))])
