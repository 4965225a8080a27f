"""What a host that was killed has left of a batch is ended, taken, or run again."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EMFILE, ENOENT
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.ending import ending
from tests.host.batch.run_directory import begun

from agentcell.attempts import Tried
from agentcell.batch import journal
from agentcell.batch.boot import boot_id
from agentcell.batch.directory import RunDirectory
from agentcell.batch.recovery import Recovery, read_result
from agentcell.batch.repair import read_whole
from agentcell_protocol.cell import MARKER, new_marker
from agentcell_protocol.errors import Category, session_error
from agentcell_protocol.result import Attempt, SessionResult, Usage, failed

SESSION = "0c4989bf-3a27-495f-bd3f-2db89ed162d9"

DONE = SessionResult(
    status="complete", response="Done.", session_name="s", id="a", session_id=SESSION, usage=Usage(output_tokens=3)
)

LOST = session_error(Category.HOST_LOST, "the program that ran this batch died before the session had ended")

STUBBORN = """
import signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
sys.stdin.read()
"""


def start(number: int = 1, **more: Any) -> dict[str, Any]:
    members: dict[str, Any] = {"mode": "fresh", "session_id": SESSION, "marker": "m", "boot_id": "before"}
    return journal.started(1.0, id="a", digest="1:aa", line=4, attempt=number, host_pid=5, **{**members, **more})


def error(category: Category, **details: Any) -> SessionResult:
    return failed(session_error(category, "it ended", **details), id="a", session_name="s", session_id=SESSION)


def line_of(run: RunDirectory, id_: str) -> Any:
    [message] = [message for _, message in read_whole(run.path / "results.jsonl") if message["id"] == id_]
    return message


@contextmanager
def reopened(path: Path, *messages: dict[str, Any], result: Any = None, number: int = 1) -> Iterator[RunDirectory]:
    """The run directory after its host had written that much, and its worker this result."""
    with begun(path) as run:
        run.record(*messages)
        if isinstance(result, SessionResult):
            result = orjson.dumps(result.to_message(hosted=False))
        if result is not None:
            (run.folder("a", number) / "result.json").write_bytes(result)
    with begun(path) as run:
        assert list(run.history.open_attempts()) == []
        yield run


def as_attempt(result: SessionResult, number: int = 1) -> Attempt:
    return Attempt(number=number, status=result.status, error=result.error, usage=result.usage, session_id=SESSION)


def test_where_nothing_was_left_nothing_is_done(tmp_path: Path) -> None:
    with reopened(tmp_path) as run:
        assert run.recovery == Recovery()


def test_a_result_that_nobody_took_is_its_rows(tmp_path: Path) -> None:
    with reopened(tmp_path, start(), result=DONE) as run:
        assert run.recovery == Recovery(picked_up=("a",))
        line = line_of(run, "a")
    expected = DONE.model_copy(update={"attempts": [as_attempt(DONE)]}).to_message()
    assert line == {**orjson.loads(orjson.dumps(expected)), "digest": "1:aa", "line": 4}
    with begun(tmp_path) as run:
        assert run.recovery == Recovery()


def test_it_is_put_where_the_row_wants_it(tmp_path: Path) -> None:
    wanted, unwritable = tmp_path / "a.json", tmp_path / "nowhere" / "a.json"
    for number, file in enumerate((wanted, unwritable)):
        path = tmp_path / f"{number}.run"
        with begun(path) as run:
            (run.folder("a", 1) / "request.json").write_bytes(orjson.dumps({"result_file": str(file)}))
        with reopened(path, start(), result=DONE) as run:
            line = line_of(run, "a")
        if file is wanted:
            assert {**orjson.loads(file.read_bytes()), "digest": "1:aa", "line": 4} == line
        else:
            assert [warning["code"] for warning in line["warnings"]] == ["result_file"]


def test_it_is_that_of_all_its_attempts(tmp_path: Path) -> None:
    crash = error(Category.CRASHED).model_copy(update={"usage": Usage(output_tokens=4), "cost_usd": 0.25})
    former = Tried(as_attempt(crash).model_copy(update={"cost_usd": 0.25}))
    ended = journal.ended(2.0, id="a", tried=former)
    priced = DONE.model_copy(update={"cost_usd": 0.5})
    with reopened(tmp_path, start(), ended, start(2, mode="resumed"), result=priced, number=2) as run:
        line = line_of(run, "a")
    assert [(one["number"], one["mode"], one["status"]) for one in line["attempts"]] == [
        (1, "fresh", "error"),
        (2, "resumed", "complete"),
    ]
    assert (line["usage"]["output_tokens"], line["cost_usd"]) == (7, 0.75)


def test_one_that_was_about_to_be_taken_is_taken(tmp_path: Path) -> None:
    ended = journal.ended(2.0, id="a", tried=Tried(as_attempt(DONE)))
    with reopened(tmp_path, start(), ended, result=DONE) as run:
        assert run.recovery == Recovery(picked_up=("a",))
        assert line_of(run, "a")["response"] == "Done."


def test_one_that_was_taken_is_not_taken_twice(tmp_path: Path) -> None:
    with begun(tmp_path) as run:
        run.record(start())
        (run.folder("a", 1) / "result.json").write_bytes(orjson.dumps(DONE.to_message()))
        run.results.add_now("a", "1:aa", 4, DONE)
    with begun(tmp_path) as run:
        assert (run.recovery, list(run.history.open_attempts())) == (Recovery(), [])
    assert len((tmp_path / "results.jsonl").read_bytes().splitlines()) == 1


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b'{"status": "complete", ',
        b"[]",
        b'{"status": "complete"}',
        orjson.dumps({**DONE.to_message(), "id": "b"}),
        orjson.dumps({**DONE.to_message(), "error": LOST.model_dump()}),
    ],
    ids=["none", "empty", "half", "an array", "too little", "another row's", "at odds with itself"],
)
def test_without_one_the_row_runs_again_and_that_costs_it_nothing(tmp_path: Path, content: bytes | None) -> None:
    with reopened(tmp_path, start(), result=content) as run:
        assert run.recovery == Recovery(lost=("a",))
        item = run.history.of("a")
    assert item is not None
    assert item.past == (Tried(as_attempt(failed(LOST, session_id=SESSION)), is_counted=False),)
    assert (item.last_attempt, item.is_finished) == (1, False)


@pytest.mark.parametrize(
    ("category", "details", "is_counted", "is_final"),
    [
        (Category.CANCELLED, {}, False, False),
        (Category.HOST_LOST, {}, False, False),
        (Category.RATE_LIMIT, {}, False, False),
        (Category.AUTHENTICATION, {}, False, False),
        (Category.SPAWN_FAILED, {"errno": EMFILE}, False, False),
        (Category.SPAWN_FAILED, {"errno": ENOENT}, True, False),
        (Category.CRASHED, {}, True, False),
        (Category.TIMEOUT, {"limit": "idle"}, True, False),
        (Category.TIMEOUT, {"limit": "wall"}, True, True),
        (Category.MAX_TURNS, {}, True, True),
        (Category.DELIVERABLE, {}, True, True),
    ],
)
def test_a_failure_is_its_rows_only_if_nothing_would_be_different_another_time(
    tmp_path: Path, category: Category, details: dict[str, Any], is_counted: bool, is_final: bool
) -> None:
    result = error(category, **details)
    with reopened(tmp_path, start(), result=result) as run:
        item = run.history.of("a")
        assert ("a" in run.results.index) is is_final
    assert item is not None
    if not is_final:
        assert item.past == (Tried(as_attempt(result), is_counted=is_counted),)


def test_what_it_takes_to_go_on_with_a_conversation_is_found(tmp_path: Path) -> None:
    with begun(tmp_path) as run:
        run.record(start())
        conversation = run.keep_root("a") / SESSION / "-p" / f"{SESSION}.jsonl"
        conversation.parent.mkdir(parents=True)
        conversation.touch()
        events = [{"type": "text"}, {"type": "tool_use"}, {"type": "tool_use"}]
        lines = b"".join(orjson.dumps(event) + b"\n" for event in events)
        (run.folder("a", 1) / "events.jsonl").write_bytes(lines + b'{"type": "tool_')
    with begun(tmp_path) as run:
        item = run.history.of("a")
    assert item is not None
    lost = as_attempt(failed(LOST, session_id=SESSION))
    assert item.past == (Tried(lost, tool_calls=2, has_transcript=True, is_counted=False),)


def test_a_result_is_told_where_its_conversation_is(tmp_path: Path) -> None:
    with begun(tmp_path) as run:
        run.record(start())
        conversation = run.keep_root("a") / SESSION / "-p" / f"{SESSION}.jsonl"
        conversation.parent.mkdir(parents=True)
        conversation.touch()
        (run.folder("a", 1) / "result.json").write_bytes(orjson.dumps(DONE.to_message(hosted=False)))
    with begun(tmp_path) as run:
        assert line_of(run, "a")["transcript"] == str(conversation)


def test_a_row_without_an_id_is_named_by_its_session(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_bytes(orjson.dumps({**DONE.to_message(), "id": None}))
    assert (read_result(tmp_path, "s"), read_result(tmp_path, "a")) == (DONE.model_copy(update={"id": None}), None)


@contextmanager
def running(marker: str, program: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A process of a cell."""
    argv = [sys.executable, "-c", program]
    pipe = subprocess.PIPE
    with ending(subprocess.Popen(argv, env={**os.environ, MARKER: marker}, stdin=pipe, stdout=pipe)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        yield process


def test_what_may_be_left_elsewhere_is_known_until_somebody_has_swept_it(tmp_path: Path) -> None:
    with begun(tmp_path) as run:
        run.record(start(marker="first"))
    with begun(tmp_path) as run:
        run.record({**start(marker="second"), "attempt": 2})
    with begun(tmp_path) as run:
        assert run.history.left == {"first", "second"}
    with begun(tmp_path) as run:
        assert run.history.left == {"first", "second"}
        run.record(journal.left(0.0, markers=()))
    with begun(tmp_path) as run:
        assert run.history.left == set()


@pytest.mark.slow
def test_what_still_runs_is_ended_before_anything_else_is_done(tmp_path: Path) -> None:
    one, other, foreign = new_marker(), new_marker(), new_marker()
    willing = STUBBORN.replace("signal.SIG_IGN", "signal.SIG_DFL")
    with begun(tmp_path) as run:
        run.record(
            start(boot_id=boot_id(), marker=one),
            {**start(boot_id=boot_id(), marker=other), "id": "b"},
            {**start(boot_id="before", marker=foreign), "id": "c"},
        )
    with (
        running(one, willing) as first,
        running(other, STUBBORN) as second,
        running(foreign, willing) as third,
        begun(tmp_path) as run,
    ):
        assert (run.recovery, run.history.left) == (Recovery(swept=2, lost=("a", "b", "c")), {one, other, foreign})
        assert [process.poll() is None for process in (first, second, third)] == [False, False, True]


def test_what_was_taken_up_is_told_on_one_line() -> None:
    assert str(Recovery()) == ""
    assert str(Recovery(1, ("a",), ("b",))) == (
        "a former run has died: ended 1 process that it had left running, took 1 result that came while it was dying, "
        "1 attempt was cut and will be made again"
    )
    assert str(Recovery(lost=("a", "b"))) == "a former run has died: 2 attempts were cut and will be made again"


def test_this_boot_is_this_one() -> None:
    assert (boot_id(), bool(boot_id())) == (boot_id(), True)


def test_where_the_kernel_does_not_say_the_boot_is_known_by_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentcell.batch.boot.BOOT_ID", tmp_path / "none")
    assert boot_id().isdigit()
