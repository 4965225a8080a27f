"""What a batch makes of many rows, limits and torn files; sessions are played at once, without cells."""

from collections.abc import Callable
from errno import EIO, EMFILE, ENOSPC
from pathlib import Path
from threading import Thread
from time import time
from typing import Any

import orjson
import pytest
from anyio.lowlevel import checkpoint
from tests.host.batch.test_batch import HANG, Room, Rows, read

import agentcell.executors.local
from agentcell.batch import machine
from agentcell.batch.interruption import Interruption
from agentcell.batch.lines import Lines
from agentcell.batch.rows import Problem, Row
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

    monkeypatch.setattr(agentcell.executors.local, "attempt", attempt)


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


async def test_all_is_on_the_disk_before_what_follows_from_it(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []
    append = Lines.append

    async def noted(self: Lines, message: dict[str, Any]) -> int:
        if message.get("event") == "started":
            happened.extend(file.name for file in room.run_dir.glob(f"cells/*/{message['attempt']}/*"))
        offset = await append(self, message)
        happened.append(message.get("event", "result"))
        return offset

    def session(_order: Order) -> SessionError | None:
        is_first = "session" not in happened
        happened.append("session")
        return session_error(Category.OVERLOADED, "too much") if is_first else None

    monkeypatch.setattr(Lines, "append", noted)
    play(monkeypatch, session)
    await room.batch(room.row("a"), on_result=lambda _: happened.append("told"))
    begin = ["request.json", "started", "session"]
    assert happened == [*begin, "ended", *begin, "result", "told", "ended", "closed"]
    first, last = room.journal("ended")
    assert (first["retry_at"], last["retry_at"]) == (first["at"], None)  # by chance there is no delay


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


async def test_an_interrupt_that_leaves_no_row_is_a_success(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    interruption = Interruption()
    play(monkeypatch, lambda _: interruption.cancel("SIGINT"))
    end = await room.batch(room.row("a"), interruption=interruption)
    assert (end.exit_code, end.reason, room.statuses()) == (0, None, {"a": "complete"})


@pytest.mark.slow
async def test_a_last_row_that_hangs_ends_at_its_limit_and_so_does_the_batch(tmp_path: Path) -> None:
    with stand_in() as command:
        room = Room(tmp_path, command)
        last = room.row("last", *HANG, limits={"max_execution_seconds": 1})
        end = await room.batch(room.row("first"), last, width=2)
    assert (end.exit_code, room.statuses()) == (1, {"first": "complete", "last": "timeout"})


def no_descriptors(_order: Order) -> SessionError:
    return session_error(Category.SPAWN_FAILED, "no more open files", errno=EMFILE)


async def test_a_machine_that_has_run_out_for_a_while_costs_no_row_its_retries(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "FIRST_PAUSE_SECONDS", 0.1)
    failures = iter(range(3))
    play(monkeypatch, lambda order: None if next(failures, None) is None else no_descriptors(order))
    end = await room.batch(*room.rows(5), width=2, retries=0)
    assert (end.exit_code, room.statuses()) == (0, {f"row-{number}": "complete" for number in range(5)})
    assert sorted(line["counted"] for line in room.journal("ended")) == [False] * 3 + [True] * 5
    assert {line["reason"] for line in room.journal("paused")} == {"no more open files"}


async def test_a_machine_that_starts_no_cell_at_all_ends_the_batch_and_all_stay_pending(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "FIRST_PAUSE_SECONDS", 0.01)
    play(monkeypatch, no_descriptors)
    end = await room.batch(*room.rows(5), width=2, retries=0)
    assert (end.exit_code, end.snapshot.pending, room.statuses()) == (75, 5, {})
    assert end.reason is not None
    assert end.reason.startswith("no more open files, with no session of ours running: raise the limits on")
    assert end.reason.endswith(". 5 rows are pending: run the same command again to go on")


async def test_a_machine_that_has_no_thread_left_ends_no_batch(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Thread, "start", none_left)
    end = await room.batch(*room.rows(2))
    assert (end.exit_code, room.statuses()) == (0, {"row-0": "complete", "row-1": "complete"})


async def test_an_end_that_cannot_be_written_down_is_no_success(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    append = Lines.append

    async def full(self: Lines, message: dict[str, Any]) -> int:
        if message.get("event") == "closed":
            raise OSError(ENOSPC, "No space left on device")
        return await append(self, message)

    monkeypatch.setattr(Lines, "append", full)
    end = await room.batch(*room.rows(2))
    assert (end.exit_code, end.reason) == (1, f"{room.run_dir} cannot be written: No space left on device")
    assert room.statuses() == {"row-0": "complete", "row-1": "complete"}
    monkeypatch.undo()
    assert (await room.batch(*room.rows(2))).exit_code == 0


async def test_rows_that_cannot_be_read_any_further_end_the_batch(room: Room) -> None:
    class Torn(Rows):
        async def next(self) -> Row | Problem | None:
            if (found := await super().next()) is None:
                raise OSError(EIO, "Input/output error")
            return found

    end = await room.batch(source=Torn(read(room.row("a"))), width=1)
    assert end.exit_code == 1
    assert end.reason is not None
    assert end.reason.startswith("the rows cannot be read any further: Input/output error")
