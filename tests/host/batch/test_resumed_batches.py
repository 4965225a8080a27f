"""What a former run has left of a row decides what the next one does with it; sessions are played, without cells."""

from pathlib import Path
from time import time
from typing import Any

import orjson
import pytest
from tests.host.batch.run_directory import begun
from tests.host.batch.test_batch import Room
from tests.host.batch.test_played_batches import play

from agentcell.attempts import Tried
from agentcell.batch import journal
from agentcell.batch.identity import digest
from agentcell.orders import Order
from agentcell_protocol.errors import Category, SessionError, session_error
from agentcell_protocol.result import SessionResult, failed

pytestmark = pytest.mark.anyio

CRASHED = session_error(Category.CRASHED, "it crashed")

LOST = session_error(Category.HOST_LOST, "its host died")

WAIT_SECONDS = 0.3


@pytest.fixture
def anyio_backend() -> str:
    """The command's own."""
    return "asyncio"


@pytest.fixture
def played() -> list[tuple[str, float]]:
    """The rows whose sessions were played, and when."""
    return []


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, played: list[tuple[str, float]]) -> Room:
    def session(order: Order) -> SessionError | None:
        played.append((order.request.identity, time()))
        return CRASHED if order.request.identity == "poison" else None

    play(monkeypatch, session)
    return Room(tmp_path, ())


def leave(room: Room, row: dict[str, Any], *ends: tuple[SessionError, bool], retry_at: float | None = None) -> None:
    """A run that has made so many attempts at the row, counted or not, and was killed."""
    with begun(room.run_dir) as run:
        for number, (error, is_counted) in enumerate(ends, 1):
            run.record(
                journal.started(
                    1.0,
                    id=row["session_name"],
                    attempt=number,
                    digest=digest(row),
                    line=1,
                    mode="fresh",
                    session_id=None,
                    marker="m",
                    host_pid=5,
                    boot_id="before",
                )
            )
            tried = Tried.of(failed(error), number, "fresh", is_counted=is_counted)
            run.record(journal.ended(1.0, id=row["session_name"], tried=tried, retry_at=retry_at))


def leave_result(room: Room, row_id: str, number: int, result: SessionResult) -> None:
    with begun(room.run_dir) as run:
        (run.folder(row_id, number) / "result.json").write_bytes(orjson.dumps(result.to_message(hosted=False)))


async def test_a_row_that_was_to_wait_waits_and_the_others_do_not(room: Room, played: list[tuple[str, float]]) -> None:
    row, retry_at = room.row("a"), time() + WAIT_SECONDS
    leave(room, row, (CRASHED, True), retry_at=retry_at)
    end = await room.batch(row, room.row("b"), width=1)
    assert (end.exit_code, [row_id for row_id, _ in played]) == (0, ["b", "a"])
    assert played[1][1] >= retry_at


async def test_attempts_of_all_runs_are_numbered_and_counted_together(room: Room) -> None:
    row = room.row("poison")
    leave(room, row, (CRASHED, True), (LOST, False))
    end = await room.batch(row, retries=2)
    attempts = room.results()["poison"]["attempts"]
    assert (end.exit_code, [(one["number"], one["error"]["category"]) for one in attempts]) == (
        1,
        [(1, "crashed"), (2, "host_lost"), (3, "crashed"), (4, "crashed")],
    )
    assert room.counted("poison") == [True, False, True, True]


async def test_a_row_without_a_retry_left_has_the_result_that_was_found(
    room: Room, played: list[tuple[str, float]]
) -> None:
    row, file = room.row("poison"), room.path / "poison.json"
    row["result_file"] = str(file)
    leave(room, row, (CRASHED, True), (CRASHED, True))
    leave_result(room, "poison", 2, failed(CRASHED, session_name="poison", tool_calls=7))
    end = await room.batch(row, retries=1)
    result = room.results()["poison"]
    assert (end.exit_code, played, end.snapshot.failed) == (1, [], 1)
    assert (result["error"]["category"], result["tool_calls"]) == ("crashed", 7)
    assert [one["number"] for one in result["attempts"]] == [1, 2]
    assert orjson.loads(file.read_bytes())["attempts"] == result["attempts"]


async def test_with_more_retries_it_gets_them(room: Room) -> None:
    row = room.row("poison")
    leave(room, row, (CRASHED, True), (CRASHED, True))
    leave_result(room, "poison", 2, failed(CRASHED, session_name="poison"))
    await room.batch(row, retries=2)
    assert [one["number"] for one in room.results()["poison"]["attempts"]] == [1, 2, 3]


async def test_where_its_result_is_lost_it_runs_again(room: Room) -> None:
    row = room.row("poison")
    leave(room, row, (CRASHED, True), (CRASHED, True))
    await room.batch(row, retries=1)
    assert [one["number"] for one in room.results()["poison"]["attempts"]] == [1, 2, 3]
