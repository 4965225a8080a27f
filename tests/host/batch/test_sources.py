"""Rows come from a file, read again when their turn comes, or from a stream as they come."""

import os
from collections.abc import Iterator
from errno import EAGAIN
from io import BytesIO
from pathlib import Path
from threading import Thread
from typing import Any

import anyio
import orjson
import pytest
from tests.host.batch.run_directory import begun

from agentcell.batch.directory import read_history
from agentcell.batch.rows import Problem, Row
from agentcell.batch.rules import Rules
from agentcell.batch.sources import FileRows, StreamRows
from agentcell.batch.survey import survey
from agentcell_protocol.errors import RequestError
from agentcell_protocol.result import SessionResult, refused

RULES = Rules({"agent_type": "coder", "project_dir": "/", "starting_message": "hi"})


def text(*rows: dict[str, Any] | bytes) -> bytes:
    return b"".join((row if isinstance(row, bytes) else orjson.dumps(row)) + b"\n" for row in rows)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = list(os.pipe())
    yield ends[0], ends[1]
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


@pytest.mark.anyio
async def test_rows_of_a_stream_come_one_by_one_and_then_no_more(pipe: tuple[int, int]) -> None:
    source = StreamRows(pipe[0], RULES)
    with anyio.fail_after(10):
        os.write(pipe[1], text({"id": "a"}))
        first = await source.next()
        os.write(pipe[1], text(b"nonsense"))
        second = await source.next()
        os.close(pipe[1])
        assert [await source.next(), await source.next()] == [None, None]
    assert isinstance(first, Row)
    assert isinstance(second, Problem)
    assert (first.id, second.id) == ("a", "line-2")


@pytest.mark.anyio
async def test_a_wait_for_a_row_can_be_cancelled(pipe: tuple[int, int]) -> None:
    source = StreamRows(pipe[0], RULES)
    with anyio.move_on_after(0.01) as scope:
        await source.next()
    assert scope.cancelled_caught
    os.close(pipe[1])


@pytest.mark.anyio
async def test_a_file_gives_what_is_to_be_run_after_what_is_no_row() -> None:
    file = BytesIO(text({"id": "a"}, b"nonsense", {"id": "b"}))
    found = survey(file, None, RULES)
    source = FileRows(file, found.places, problems=found.problems, rules=RULES)
    seen = [await source.next() for _ in range(4)]
    assert [one and one.id for one in seen] == ["line-2", "a", "b", None]
    assert (found.total, found.to_run, dict(found.plans)) == (3, 2, {"new": 2})


@pytest.mark.anyio
async def test_a_line_that_is_written_over_is_not_run_though_it_was_read_ahead(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(text({"id": "a"}, {"id": "b"}))
    with path.open("rb") as file:
        source = FileRows(file, survey(file, None, RULES).places, problems=[], rules=RULES)
        assert await source.next() is not None
        path.write_bytes(text({"id": "a"}, {"id": "c"}))
        with pytest.raises(OSError, match="line 2 was changed while they were run"):
            await source.next()


@pytest.mark.anyio
async def test_a_line_that_is_another_by_the_time_it_is_run_is_not_run() -> None:
    file = BytesIO(text({"id": "a"}, {"id": "b"}))
    source = FileRows(file, survey(file, None, RULES).places, problems=[], rules=RULES)
    assert await source.next() is not None
    file.truncate(15)
    with pytest.raises(OSError, match="line 2 was changed while they were run"):
        await source.next()


def test_rows_that_have_their_results_are_known_again(tmp_path: Path) -> None:
    rows = text({"id": "a"}, {"id": "b"}, {"id": "c", "starting_message": "new"})
    digests = {}
    survey(BytesIO(rows), None, RULES, on_row=lambda row, *_: digests.update({row.id: row.digest}))
    with begun(tmp_path / "run") as run:
        for row_id, digest in (("a", digests["a"]), ("b", digests["b"]), ("c", "1:0000000000000000")):
            run.results.add_now(row_id, digest, 1, SessionResult(status="complete", response="", session_name=row_id))
    found = survey(BytesIO(rows), read_history(tmp_path / "run"), RULES)
    assert (dict(found.plans), [row.id for row in found.refused]) == ({"finished": 2, "refused": 1}, ["c"])
    assert (len(found.places), found.to_run, dict(found.finished)) == (3, 0, {("complete", None): 3})
    again = survey(BytesIO(rows), read_history(tmp_path / "run"), RULES, rerun_changed=True)
    assert (again.again, again.to_run) == (["c"], 1)


def test_what_has_left_the_file_is_counted_and_is_not_to_be_run_again(tmp_path: Path) -> None:
    rows = text({"id": "a"}, {"id": "b", "colour": "red"}, {"id": "c"})
    with begun(tmp_path / "run") as run:
        for row_id in ("b", "c", "line-7", "gone"):
            run.results.add_now(row_id, None, 1, refused(RequestError("id", "no", "no"), {"id": row_id}))
        run.results.add_now("done", None, 1, SessionResult(status="complete", response="", session_name="done"))
    found = survey(BytesIO(rows), read_history(tmp_path / "run"), RULES)
    assert (found.total, found.gone, found.retriable) == (3, 2, 0)
    assert found.finished == {("error", "bad_request"): 1, ("complete", None): 1}
    assert (found.again, found.plans) == (["c", "line-7"], {"new": 1, "again": 1})


def no_thread(_thread: Thread) -> None:
    raise RuntimeError("can't start new thread")


@pytest.mark.anyio
async def test_a_stream_for_which_there_is_no_thread_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Thread, "start", no_thread)
    with pytest.raises(OSError, match="the machine has no thread left") as told:
        await StreamRows(0).next()
    assert told.value.errno == EAGAIN
