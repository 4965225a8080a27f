"""Which files of a project are new or changed since a flow began."""

import os
from pathlib import Path
from typing import Any

import pytest

from agentcell_worker.agents.changes import Changes
from agentcell_worker.agents.sessions import Sessions
from agentcell_worker.agents.writes import Writes
from agentcell_worker.checks import tree


def calls(name: str, use: str = "t1", *, is_error: bool = False, **given: Any) -> list[dict[str, Any]]:
    """The events of one tool call."""
    return [
        {"type": "tool_use", "id": use, "name": name, "input": given},
        {"type": "tool_result", "id": use, "is_error": is_error, "bytes": 1},
    ]


def wrote(sessions: Sessions, path: str | Path, name: str = "Write", *, is_error: bool = False) -> None:
    """A session that called a file tool."""
    for event in calls(name, file_path=str(path), is_error=is_error):
        sessions.writes.hear(event)


def put(path: Path, content: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def test_what_is_new_or_changed_is_listed_in_order_and_the_rest_is_not(tmp_path: Path) -> None:
    put(tmp_path / "old.md")
    put(tmp_path / "a" / "changed.md")
    put(tmp_path / "a" / "gone.md")
    seen = Changes(tmp_path, Sessions())
    put(tmp_path / "a" / "changed.md", "longer")
    (tmp_path / "a" / "gone.md").unlink()
    put(tmp_path / "z.md")
    put(tmp_path / "a" / "b" / "ü new.md")
    assert seen.files() == ["a/b/ü new.md", "a/changed.md", "z.md"]


def test_a_file_put_in_place_of_another_is_a_change(tmp_path: Path) -> None:
    old = put(tmp_path / "old.md", "one")
    seen = Changes(tmp_path, Sessions())
    at = old.stat().st_mtime_ns
    new = put(tmp_path / "new.md", "two")
    os.utime(new, ns=(at, at))
    new.replace(old)
    assert seen.files() == ["old.md"]


def test_nothing_new_is_an_empty_list(tmp_path: Path) -> None:
    put(tmp_path / "old.md")
    assert Changes(tmp_path, Sessions()).files() == []


def test_a_project_that_is_not_there_yet_has_no_files(tmp_path: Path) -> None:
    seen = Changes(tmp_path / "later", Sessions())
    assert seen.files() == []
    put(tmp_path / "later" / "a.md")
    assert seen.files() == ["a.md"]


@pytest.mark.parametrize(
    "path",
    [".git/HEAD", "a/node_modules/b/README.md", "a/__pycache__/b.pyc", "own venv/lib/a.py", ".some_cache/v/a"],
)
def test_what_tools_keep_is_passed_over(tmp_path: Path, path: str) -> None:
    put(tmp_path / "own venv" / "pyvenv.cfg")
    put(tmp_path / ".some_cache" / "CACHEDIR.TAG")
    seen = Changes(tmp_path, Sessions())
    put(tmp_path / path)
    assert seen.files() == []


def test_a_link_to_a_directory_is_not_followed_and_one_to_a_file_is_a_file(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", put(tmp_path / "outside" / "a.md")
    project.mkdir()
    seen = Changes(project, Sessions())
    (project / "folder").symlink_to(outside.parent)
    (project / "loop").symlink_to(project)
    (project / "file.md").symlink_to(outside)
    (project / "nowhere.md").symlink_to(outside / "nothing")
    os.mkfifo(project / "fifo")
    assert seen.files() == ["file.md"]


@pytest.mark.parametrize("name", ["Write", "Edit", "MultiEdit"])
def test_a_file_the_session_wrote_counts_even_where_tools_keep_theirs(tmp_path: Path, name: str) -> None:
    sessions = Sessions()
    seen = Changes(tmp_path, sessions)
    wrote(sessions, "node_modules/own/README.md", name)
    put(tmp_path / "node_modules" / "own" / "README.md")
    put(tmp_path / "node_modules" / "other.md")
    assert seen.files() == ["node_modules/own/README.md"]


def test_a_file_has_one_path_however_it_was_named(tmp_path: Path) -> None:
    project, link = tmp_path / "project", tmp_path / "link"
    project.mkdir()
    link.symlink_to(project)
    sessions = Sessions()
    seen = Changes(link, sessions)
    put(project / "docs" / "a.md")
    for path in ("docs/a.md", project / "docs" / "a.md", link / "docs" / "a.md", "./docs/../docs/a.md"):
        wrote(sessions, path)
    assert seen.files() == ["docs/a.md"]


def test_files_outside_the_project_failed_calls_and_what_was_removed_do_not_count(tmp_path: Path) -> None:
    project = tmp_path / "project"
    put(project / "node_modules" / "failed.md")
    (project / "away").symlink_to(put(tmp_path / "outside" / "a.md").parent)
    sessions = Sessions()
    seen = Changes(project, sessions)
    for path in (
        "../outside/a.md",
        "away/a.md",
        tmp_path / "outside" / "a.md",
        "removed.md",
        "node_modules",
        "n" * 5000,
        "\0",
    ):
        wrote(sessions, path)
    wrote(sessions, "node_modules/failed.md", is_error=True)
    assert seen.files() == []


def test_of_a_project_too_large_only_what_the_session_wrote_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "MAX_FILES", 2)
    for name in "abc":
        put(tmp_path / name)
    sessions = Sessions()
    seen = Changes(tmp_path, sessions)
    put(tmp_path / "d")
    wrote(sessions, "b")
    assert seen.files() == ["b"]
    assert [notice.code for notice in sessions.total().trace.warnings] == ["large_project"]


def test_a_call_counts_when_it_has_succeeded_and_others_never() -> None:
    writes = Writes()
    begun, ended = calls("NotebookEdit", notebook_path="a.ipynb")
    writes.hear(begun)
    assert writes.paths == []
    writes.hear(ended)
    odd: list[dict[str, Any]] = [
        *calls("Read", file_path="b"),
        *calls("Write", content="no path"),
        *calls("Edit", file_path=5),
        {"type": "tool_use", "id": None, "name": "Write", "input": {"file_path": "c"}},
        {"type": "tool_use", "id": "t", "name": "Write", "input": "odd"},
        {"type": "tool_result", "id": "t", "is_error": False, "bytes": 1},
        ended,
        {"type": "text", "text": "hi"},
    ]
    for event in odd:
        writes.hear(event)
    assert writes.paths == ["a.ipynb"]
