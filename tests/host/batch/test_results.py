"""There is one result for each row, and it can be read again."""

import errno
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest

from agentcell.batch.index import Entry
from agentcell.batch.repair import Repair
from agentcell.batch.results import Results
from agentcell_protocol.errors import Category, session_error
from agentcell_protocol.result import SessionResult, failed

DONE = SessionResult(status="complete", response="Done.", session_name="s", cost_usd=0.5)
CRASHED = failed(session_error(Category.CRASHED, "it died"))


def line_of(results: Results, id_: str) -> Any:
    """Read where the index says that it is."""
    with results._lines.path.open("rb") as file:
        entry = results.index.get(id_)
        assert entry is not None
        file.seek(entry.offset)
        return orjson.loads(file.readline())


def ids(path: Path) -> list[str]:
    return [orjson.loads(line)["id"] for line in path.read_bytes().splitlines()]


@pytest.mark.anyio
async def test_a_result_is_a_line_with_the_rows_digest_and_number(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with Results.open(path) as results:
        await results.add("a", "1:aa", 3, DONE)
        assert "a" in results.index
        assert line_of(results, "a") == {**DONE.to_message(), "id": "a", "digest": "1:aa", "line": 3}
    assert list(orjson.loads(path.read_bytes()))[-2:] == ["digest", "line"]


@pytest.mark.anyio
async def test_what_was_there_is_known_and_kept(tmp_path: Path) -> None:
    with Results.open(tmp_path / "f") as results:
        await results.add("a", "1:aa", 1, DONE)
        await results.add("b", None, 2, CRASHED)
        before = dict(results.index.items())
    with Results.open(tmp_path / "f") as results:
        assert dict(results.index.items()) == before
        assert before["a"] == Entry(0, "complete", None, "1:aa")
        assert before["b"] == Entry(before["b"].offset, "error", "crashed", None)
        assert line_of(results, "b")["line"] == 2


@pytest.mark.anyio
async def test_a_second_result_for_a_row_is_a_mistake_also_while_the_first_is_written(tmp_path: Path) -> None:
    with Results.open(tmp_path / "f") as results:
        refusals = []

        async def add() -> None:
            try:
                await results.add("a", "1:aa", 1, DONE)
            except ValueError as refusal:
                refusals.append(str(refusal))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(add)
            tasks.start_soon(add)
        with pytest.raises(ValueError, match="a has a result: drop it first"):
            results.add_now("a", "1:aa", 1, DONE)
    assert (refusals, ids(tmp_path / "f")) == (["a has a result: drop it first"], ["a"])


def test_dropped_rows_are_gone_and_the_others_can_still_be_read(tmp_path: Path) -> None:
    with Results.open(tmp_path / "f") as results:
        for number, id_ in enumerate("abcd"):
            results.add_now(id_, "1:aa", number, DONE)
        results.drop({"a", "c", "none"})
        assert [line_of(results, id_)["line"] for id_ in "bd"] == [1, 3]
        assert "a" not in results.index
        results.add_now("a", "1:ab", 0, CRASHED)
        assert line_of(results, "a")["digest"] == "1:ab"
        assert list(results.index) == ["b", "d", "a"]
    assert ids(tmp_path / "f") == ["b", "d", "a"]


def test_a_drop_that_fails_drops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with Results.open(tmp_path / "f") as results:
        results.add_now("a", "1:aa", 1, DONE)
        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", fail)
            with pytest.raises(OSError, match="No space left"):
                results.drop({"a"})
        assert line_of(results, "a")["line"] == 1
        results.add_now("b", "1:aa", 2, DONE)
    assert ids(tmp_path / "f") == ["a", "b"]
    assert [file.name for file in tmp_path.iterdir()] == ["f"]


def test_of_lines_that_somebody_doubled_one_is_left(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with Results.open(path) as results:
        results.add_now("a", "1:aa", 1, DONE)
    path.write_bytes(
        path.read_bytes() * 2 + b'{"id":"b"}\n{"id":3,"status":"complete"}\n{"id":"c","status":["complete"]}\n'
    )
    with Results.open(path) as results:
        assert results.repair == Repair(path, tmp_path / "f.torn-1", (2, 3, 4, 5))
        assert list(results.index) == ["a"]
    assert ids(path) == ["a"]


def test_results_that_are_left_are_where_they_are_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with Results.open(path) as results:
        for name in "abcd":
            results.add_now(name, None, 1, DONE)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\nno JSON\n\n", 1))
    with Results.open(path) as results:
        results.drop(["b"])
        results.drop(["d", "unknown"])
        results.add_now("b", None, 2, DONE)
        found = {id_: line_of(results, id_)["id"] for id_ in results.index}
    assert found == {name: name for name in "acb"}
