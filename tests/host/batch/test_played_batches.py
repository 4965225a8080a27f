"""What a batch makes of many rows, limits and torn files; sessions are played at once, without cells."""

from collections.abc import Callable
from pathlib import Path
from time import time
from typing import Any

import orjson
import pytest
from anyio.lowlevel import checkpoint
from tests.host.batch.test_batch import HANG, Room

import agentcell.host
from agentcell.batch.interruption import Interruption
from agentcell.batch.lines import Lines
from agentcell.orders import Order
from agentcell.run import Attempted
from agentcell.testing import stand_in
from agentcell_protocol.errors import Category, SessionError, session_error
from agentcell_protocol.result import SessionResult, failed

pytestmark = pytest.mark.anyio

LIMIT_SECONDS = 1.0

Play = Callable[[Order], SessionError | None]


@pytest.fixture
def anyio_backend() -> str:
    """The command's own."""
    return "asyncio"


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Room:
    play(monkeypatch, lambda _: None)
    return Room(tmp_path, ())


def play(monkeypatch: pytest.MonkeyPatch, session: Play) -> None:
    """Have sessions end with the error that is returned, or well."""

    async def attempt(order: Order, _resources: object) -> Attempted:
        await checkpoint()
        request = order.request
        names: dict[str, Any] = {"session_name": request.session_name, "id": request.identity}
        if (error := session(order)) is not None:
            return Attempted(failed(error, **names))
        return Attempted(SessionResult(status="complete", response=f"{request.identity} fürwahr", **names))

    monkeypatch.setattr(agentcell.host, "attempt", attempt)


@pytest.mark.slow
async def test_a_limit_that_comes_amid_many_rows_is_met_by_those_that_run_and_costs_none(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, until = 0, 0.0

    def limited(_order: Order) -> SessionError | None:
        nonlocal asked, until
        asked += 1
        if asked == 10:
            until = time() + LIMIT_SECONDS
        left = until - time()
        return session_error(Category.RATE_LIMIT, "slow down", retry_after_s=left) if left > 0 else None

    play(monkeypatch, limited)
    end = await room.batch(*room.rows(50), width=5, retries=0)
    assert (end.exit_code, room.statuses()) == (0, {f"row-{number}": "complete" for number in range(50)})
    ended = [line["counted"] for line in room.journal("ended")]
    assert ended.count(True) == 50
    assert 1 <= ended.count(False) <= 5


async def test_a_quota_that_is_used_up_ends_admission_and_all_stay_pending(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(monkeypatch, lambda _: session_error(Category.RATE_LIMIT, "come back later", retry_after_s=7200))
    end = await room.batch(*room.rows(4), width=2, retries=0)
    assert (end.exit_code, end.snapshot.pending, room.statuses()) == (75, 4, {})
    assert end.reason is not None
    assert end.reason.startswith("the account's quota is used up: come back later. 4 rows are pending")


@pytest.mark.parametrize("file", ["journal.jsonl", "results.jsonl"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-40],
        lambda content: content[: content.rindex(b"a")] + "ü".encode()[:1],
        lambda content: content[:-1],
        lambda _: b"",
        lambda content: content.replace(b"\n", b"\r\n"),
        lambda content: content.replace(b"\n", b'\n\0\xff{"id": "row-1"\n', 1),
    ],
    ids=["half an object", "half a character", "no newline", "nothing", "crlf", "garbage amid"],
)
async def test_however_a_file_was_torn_no_row_is_lost_and_none_is_there_twice(
    room: Room, file: str, damage: Callable[[bytes], bytes]
) -> None:
    await room.batch(*room.rows(3))
    whole = room.statuses()
    path = room.run_dir / file
    path.write_bytes(damage(path.read_bytes()))
    end = await room.batch(*room.rows(4))
    assert (end.exit_code, end.snapshot.pending, room.statuses()) == (0, 0, {**whole, "row-3": "complete"})
    assert all(orjson.loads(line) for line in path.read_bytes().splitlines())


async def test_an_interrupt_while_a_result_is_written_loses_neither_it_nor_the_rest(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    interruption, append = Interruption(), Lines.append

    async def interrupted(self: Lines, message: dict[str, Any]) -> int:
        if message.get("status") == "complete" and "event" not in message:
            interruption.cancel("SIGINT")
            interruption.cancel("SIGINT")
        return await append(self, message)

    monkeypatch.setattr(Lines, "append", interrupted)
    end = await room.batch(*room.rows(3), width=1, interruption=interruption)
    assert (end.exit_code, end.snapshot.pending, room.statuses()) == (130, 2, {"row-0": "complete"})
    monkeypatch.setattr(Lines, "append", append)
    assert (await room.batch(*room.rows(3))).exit_code == 0
    assert len(room.journal("started")) == 3


@pytest.mark.slow
async def test_a_last_row_that_hangs_ends_at_its_limit_and_so_does_the_batch(tmp_path: Path) -> None:
    with stand_in() as command:
        room = Room(tmp_path, command)
        last = room.row("last", *HANG, limits={"max_execution_seconds": 1})
        end = await room.batch(room.row("first"), last, width=2)
    assert (end.exit_code, room.statuses()) == (1, {"first": "complete", "last": "timeout"})
