"""A batch of stand-ins: every row has its result, whatever its cell did, and what is cut goes on another time."""

import errno
import os
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from tests.host.batch.run_directory import begun

from agentcell import Host, reap
from agentcell.batch.batch import Batch
from agentcell.batch.caps import Caps, MaxFailures
from agentcell.batch.ending import BatchEnd
from agentcell.batch.interruption import Interruption
from agentcell.batch.lines import Lines
from agentcell.batch.rows import Problem, Row, read_rows
from agentcell.batch.settings import Settings
from agentcell.batch.sources import Source
from agentcell.batch.tally import Snapshot, Tally
from agentcell.testing import stand_in

pytestmark = pytest.mark.anyio

both_loops = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])

BOUND_SECONDS = 60.0

Steps = tuple[dict[str, Any], ...]

HANG: Steps = ({"text": "halfway"}, {"hang": True})


class Rows:
    """Rows that are there already."""

    def __init__(self, rows: list[Row | Problem]) -> None:
        self._rows = iter(rows)

    async def next(self) -> Row | Problem | None:
        return next(self._rows, None)


def read(*rows: dict[str, Any]) -> list[Row | Problem]:
    """The rows of a file that has these on its lines."""
    return list(read_rows(BytesIO(b"".join(orjson.dumps(row) + b"\n" for row in rows))))


class Room:
    """A project, an environment and a run directory, for one batch after the other."""

    def __init__(self, path: Path, command: tuple[str, ...]) -> None:
        self.path = path
        self.run_dir = path / "rows.run"
        self.command = command
        (path / "project").mkdir()
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(path), "ANTHROPIC_API_KEY": "sk-ant-test"}

    def row(self, name: str, *steps: dict[str, Any], **members: Any) -> dict[str, Any]:
        context = {"context": {"stand_in": list(steps)}} if steps else {}
        common = {"agent_type": "coder", "project_dir": str(self.path / "project"), "starting_message": f"Do {name}."}
        return {"session_name": name, **common, **context, **members}

    def rows(self, count: int, *steps: dict[str, Any]) -> list[dict[str, Any]]:
        return [self.row(f"row-{number}", *steps) for number in range(count)]

    async def batch(
        self,
        *rows: dict[str, Any],
        width: int = 4,
        interruption: Interruption | None = None,
        on_change: Callable[[Snapshot], object] | None = None,
        on_result: Callable[[Any], object] | None = None,
        free_mb: Callable[[], float] = lambda: 1e6,
        source: Source | None = None,
        **settings: Any,
    ) -> BatchEnd:
        chosen = Settings(environment=self.environment, **settings)
        with begun(self.run_dir) as run, anyio.fail_after(BOUND_SECONDS):
            tally = Tally(0.0, total=len(rows))
            async with Host(max_sessions=width, worker_command=self.command) as host:
                batch = Batch(
                    source or Rows(read(*rows)),
                    host,
                    run,
                    chosen,
                    tally=tally,
                    interruption=interruption or Interruption(),
                    on_change=on_change,
                    on_result=on_result,
                    free_mb=free_mb,
                    chance=lambda: 0.0,
                )
                return await batch.run()

    def results(self) -> dict[str, dict[str, Any]]:
        lines = [orjson.loads(line) for line in (self.run_dir / "results.jsonl").read_bytes().splitlines()]
        assert len({line["id"] for line in lines}) == len(lines)
        return {line["id"]: line for line in lines}

    def statuses(self) -> dict[str, str]:
        """Of each row that has a result: the status, or the error's category."""
        return {id_: (line["error"] or {}).get("category", line["status"]) for id_, line in self.results().items()}

    def journal(self, *events: str) -> list[dict[str, Any]]:
        """The lines of these events."""
        lines = map(orjson.loads, (self.run_dir / "journal.jsonl").read_bytes().splitlines())
        return [line for line in lines if line["event"] in events]

    def counted(self, row_id: str) -> list[bool]:
        """Of each attempt at the row whether it cost a retry."""
        return [line["counted"] for line in self.journal("ended") if line["id"] == row_id]


@pytest.fixture
def anyio_backend() -> str:
    """The command's loop; what a batch does beside its host's work is tried on both."""
    return "asyncio"


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    with stand_in([{"text": "done"}]) as command:
        yield Room(tmp_path, command)


def when_running(count: int, act: Callable[[], object]) -> Callable[[Snapshot], None]:
    """Acts once, when so many rows run that have said something."""
    has_acted = False

    def on_change(seen: Snapshot) -> None:
        nonlocal has_acted
        spoken = [one for one in seen.running if one.last_event is not None and one.last_event["type"] == "text"]
        if not has_acted and len(spoken) == count:
            has_acted = True
            act()

    return on_change


@both_loops
async def test_every_row_has_its_own_ending(room: Room) -> None:
    end = await room.batch(
        room.row("well", {"text": "fine"}),
        room.row("killed", {"die": "SIGKILL"}),
        room.row("faulty", {"die": "SIGSEGV"}),
        room.row("torn", {"stdout": '{"type": "res'}, {"exit": 3}),
        room.row("refused", {"fail": {"category": "refusal", "message": "no"}}),
        retries=0,
    )
    assert (end.exit_code, end.reason, end.snapshot.done, end.snapshot.failed) == (1, None, 1, 4)
    expected = {"well": "complete", "killed": "crashed", "faulty": "crashed", "torn": "crashed", "refused": "refusal"}
    assert room.statuses() == expected
    ends = {id_: (line["signal"], line["exit_code"]) for id_, line in room.results().items()}
    assert (ends["killed"], ends["faulty"], ends["torn"]) == (("SIGKILL", None), ("SIGSEGV", None), (None, 3))


async def test_all_rows_that_succeed_are_a_success_and_so_is_nothing_to_do(room: Room) -> None:
    assert (await room.batch(*room.rows(5))).exit_code == 0
    first = room.results()
    again = await room.batch(*room.rows(5))
    assert (again.exit_code, again.snapshot.done, room.results()) == (0, 5, first)
    assert len(room.journal("started")) == 5
    assert (await room.batch()).exit_code == 0


async def test_a_poison_row_is_tried_so_often_and_the_batch_goes_on(room: Room) -> None:
    end = await room.batch(room.row("poison", {"die": "SIGABRT"}), *room.rows(3), retries=3, width=2)
    assert end.exit_code == 1
    attempts = room.results()["poison"]["attempts"]
    assert [(one["number"], one["mode"], one["signal"]) for one in attempts] == [
        (number, "fresh", "SIGABRT") for number in (1, 2, 3, 4)
    ]
    assert room.statuses() == {"poison": "crashed", **{f"row-{number}": "complete" for number in range(3)}}


async def test_what_only_would_happen_again_is_not_tried_again(room: Room) -> None:
    await room.batch(room.row("hungry", {"fail": {"category": "memory_limit", "message": "too much"}}), retries=3)
    assert len(room.results()["hungry"]["attempts"]) == 1


async def test_a_crash_after_a_tool_has_run_is_gone_on_with(room: Room) -> None:
    with stand_in([{"tool": {"name": "Bash"}}, {"die": "SIGKILL"}], [{"text": "done"}]) as room.command:
        await room.batch(room.row("a"), retries=1)
    result = room.results()["a"]
    assert [(one["mode"], one["status"]) for one in result["attempts"]] == [("fresh", "error"), ("resumed", "complete")]
    assert {one["session_id"] for one in result["attempts"]} == {result["session_id"]}


async def test_usage_of_every_attempt_counts_and_an_unknown_cost_is_not_nothing(room: Room) -> None:
    spent = {"usage": {"input_tokens": 7, "output_tokens": 2}, "cost_usd": 0.25}
    broken = {
        "status": "error",
        "response": "x",
        "error": {"category": "overloaded", "message": "x", "retryable": True},
    }
    with stand_in([{"result": {**spent, **broken}}], [{"result": spent}]) as room.command:
        end = await room.batch(room.row("known"), room.row("unknown", {"die": "SIGKILL"}), retries=1)
    results = room.results()
    assert (results["known"]["usage"]["input_tokens"], results["known"]["cost_usd"]) == (14, 0.5)
    assert results["unknown"]["cost_usd"] is None
    assert (end.snapshot.usage.input_tokens, end.snapshot.cost_usd, end.snapshot.unknown_costs) == (14, 0.5, 2)


@both_loops
async def test_a_rate_limit_pauses_all_and_costs_no_row_its_retries(room: Room) -> None:
    limit = {"fail": {"category": "rate_limit", "message": "slow down", "retry_after_s": 0.3}}
    with stand_in([limit], [{"text": "done"}]) as room.command:
        end = await room.batch(*room.rows(6), retries=0, width=2)
    assert (end.exit_code, set(room.statuses().values())) == (0, {"complete"})
    pauses = room.journal("paused")
    assert {line["reason"] for line in pauses} == {"the account's rate limit"}
    assert room.journal("paused", "resumed")[-1]["event"] == "resumed"
    for number in range(6):
        assert room.counted(f"row-{number}") == [False, True]
    for pause in pauses:
        started = [line["at"] for line in room.journal("started")]
        assert not [at for at in started if pause["at"] < at < pause["until"]]


@pytest.mark.parametrize("category", ["authentication", "billing"])
async def test_an_account_that_is_refused_ends_admission_and_the_rest_stays_pending(room: Room, category: str) -> None:
    bad = room.row("bad", {"fail": {"category": category, "message": "no such key"}})
    end = await room.batch(bad, *room.rows(5), width=1)
    assert (end.exit_code, end.snapshot.pending, room.statuses()) == (75, 6, {})
    assert end.reason is not None
    assert "no such key. 6 rows are pending: run the same command again to go on" in end.reason
    assert room.counted("bad") == [False]
    mended = await room.batch({**bad, "env": {"WELL": "1"}, "context": {"stand_in": []}}, rerun_changed=True)
    assert mended.exit_code == 0


async def test_a_row_with_credentials_of_its_own_fails_alone(room: Room) -> None:
    fail = {"fail": {"category": "authentication", "message": "no such key"}}
    own = room.row("own", fail, env={"ANTHROPIC_API_KEY": "sk-ant-own"})
    end = await room.batch(own, *room.rows(3), width=1)
    assert (end.exit_code, room.statuses()["own"], end.snapshot.done) == (1, "authentication", 3)


async def test_so_many_failures_and_nothing_more_is_begun(room: Room) -> None:
    rows = room.rows(6, {"fail": {"category": "refusal", "message": "no"}})
    end = await room.batch(*rows, width=1, caps=Caps(max_failures=MaxFailures(2)))
    assert (end.exit_code, end.snapshot.failed, end.snapshot.pending) == (75, 2, 4)
    assert end.reason is not None
    assert "--max-failures 2 is reached" in end.reason
    assert end.reason.endswith("4 rows are pending: run the command again with another cap to go on")


async def test_a_batch_that_has_cost_enough_begins_nothing_more(room: Room) -> None:
    end = await room.batch(*room.rows(6, {"result": {"cost_usd": 0.4}}), width=1, caps=Caps(max_cost_usd=1.0))
    assert (end.exit_code, end.snapshot.done, end.snapshot.cost_usd) == (75, 3, 1.2)


async def test_a_deadline_that_is_over_lets_nothing_begin(room: Room) -> None:
    end = await room.batch(*room.rows(2), caps=Caps(deadline=1.0))
    assert (end.exit_code, end.snapshot.pending, room.statuses()) == (75, 2, {})


async def test_a_cap_that_is_reached_by_the_last_row_is_no_pause(room: Room) -> None:
    end = await room.batch(*room.rows(1, {"result": {"cost_usd": 2.0}}), caps=Caps(max_cost_usd=1.0))
    assert (end.exit_code, end.reason) == (0, None)


async def test_while_memory_is_scarce_the_youngest_makes_room_and_loses_nothing(room: Room) -> None:
    free = 2000.0

    def starve() -> None:
        nonlocal free
        free = 400.0

    def recover(seen: Snapshot) -> None:
        nonlocal free
        begin(seen)
        if free < 1000 and len(seen.running) == 1:
            assert [one.id for one in seen.running] == ["old"]
            free = 2000.0

    begin = when_running(2, starve)
    with stand_in(HANG, [{"text": "done"}]) as room.command:
        old = room.row("old", {"text": "here"}, {"wait": 4})
        end = await room.batch(old, room.row("young"), width=2, retries=0, on_change=recover, free_mb=lambda: free)
    assert (end.exit_code, room.statuses()) == (0, {"old": "complete", "young": "complete"})
    assert room.counted("young") == [False, True]


async def test_without_memory_nothing_begins(room: Room) -> None:
    looks = iter([100.0] * 2)
    end = await room.batch(room.row("a"), free_mb=lambda: next(looks, 5000.0))
    assert end.exit_code == 0
    assert [line["reason"] for line in room.journal("paused")] == ["less than 1024 MB of memory are free"]


async def test_once_interrupted_what_runs_may_finish(room: Room) -> None:
    interruption = Interruption()
    rows = room.rows(6, {"text": "halfway"}, {"wait": 1}, {"text": "done"})
    on_change = when_running(2, lambda: interruption.cancel("SIGINT"))
    end = await room.batch(*rows, width=2, interruption=interruption, on_change=on_change)
    begun = {line["id"] for line in room.journal("started")}
    assert (end.exit_code, room.statuses()) == (130, dict.fromkeys(begun, "complete"))
    left = 6 - len(begun)
    assert end.reason == f"interrupted by SIGINT. {left} rows are pending: run the same command again to go on"
    assert (await room.batch(*rows)).exit_code == 0
    assert len(room.statuses()) == 6


async def test_after_the_grace_what_still_runs_is_cancelled_and_pending(room: Room) -> None:
    interruption = Interruption()
    on_change = when_running(2, interruption.cancel)
    rows = [*room.rows(2, *HANG), *(room.row(f"later-{number}") for number in range(2))]
    end = await room.batch(*rows, width=2, interruption=interruption, on_change=on_change, grace_seconds=0.1)
    assert (end.exit_code, end.snapshot.pending, room.statuses()) == (143, 4, {})
    assert room.counted("row-0") == room.counted("row-1") == [False]


@both_loops
async def test_twice_interrupted_what_runs_is_cancelled_at_once(room: Room) -> None:
    interruption = Interruption()

    def twice() -> None:
        interruption.cancel("SIGINT")
        interruption.cancel("SIGTERM")

    end = await room.batch(*room.rows(4, *HANG), width=2, interruption=interruption, on_change=when_running(2, twice))
    assert (end.exit_code, end.snapshot.pending, room.statuses()) == (130, 4, {})


async def test_three_times_interrupted_what_minds_no_signal_is_killed(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reap, "GRACE_SECONDS", 30.0)  # longer than the whole may take
    interruption = Interruption()

    def thrice() -> None:
        for _ in range(3):
            interruption.cancel("SIGINT")

    stubborn: Steps = ({"ignore": ["SIGTERM", "SIGINT", "SIGHUP", "EOF"]}, *HANG)
    on_change = when_running(2, thrice)
    with anyio.fail_after(20):
        end = await room.batch(*room.rows(2, *stubborn), width=2, interruption=interruption, on_change=on_change)
    assert (end.exit_code, end.snapshot.pending, room.counted("row-0")) == (130, 2, [False])


@pytest.mark.parametrize(("signal", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
async def test_interrupted_before_anything_has_begun_nothing_begins(room: Room, signal: str, code: int) -> None:
    interruption = Interruption()
    interruption.cancel(signal)
    end = await room.batch(*room.rows(3), interruption=interruption)
    assert (end.exit_code, room.statuses(), room.journal("started")) == (code, {}, [])


@both_loops
async def test_a_callback_that_raises_ends_the_batch_and_loses_nothing(room: Room) -> None:
    def on_result(result: Any) -> None:
        raise LookupError("no such shelf")

    with pytest.raises(LookupError, match="no such shelf"):
        await room.batch(room.row("done"), *room.rows(3, *HANG), width=4, on_result=on_result)
    assert room.statuses() == {"done": "complete"}
    assert room.counted("row-0") == [False]


async def test_a_view_that_raises_ends_the_batch(room: Room) -> None:
    def on_change(seen: Snapshot) -> None:
        if len(seen.running) == 2:
            raise RuntimeError("no such colour")

    with pytest.raises(RuntimeError, match="no such colour"):
        await room.batch(*room.rows(3, *HANG), width=2, on_change=on_change)
    assert room.statuses() == {}


@both_loops
async def test_a_full_disk_ends_what_runs_and_says_so(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    append = Lines.append

    async def full(self: Lines, message: dict[str, Any]) -> int:
        if message.get("id") == "last" and "event" not in message:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return await append(self, message)

    monkeypatch.setattr(Lines, "append", full)
    await room.batch(room.row("first"))
    end = await room.batch(room.row("first"), room.row("last"), *room.rows(2, *HANG), width=3)
    assert (end.exit_code, room.statuses()) == (1, {"first": "complete"})
    assert end.reason is not None
    assert "rows.run cannot be written: No space left on device. 3 rows are pending" in end.reason
    monkeypatch.undo()
    assert (await room.batch(room.row("first"), room.row("last"))).exit_code == 0


async def test_a_line_that_is_no_row_has_a_result_too(room: Room) -> None:
    end = await room.batch(room.row("a"), {"id": "odd", "agent_type": "coder"}, room.row("a"))
    assert (end.exit_code, room.statuses()) == (1, {"a": "complete", "odd": "bad_request", "line-3": "bad_request"})


async def test_a_line_that_was_no_row_and_has_been_mended_is_simply_run(room: Room) -> None:
    await room.batch({"id": "odd", "agent_type": "coder"})
    assert room.statuses() == {"odd": "bad_request"}
    assert ((await room.batch(room.row("odd"))).exit_code, room.statuses()) == (0, {"odd": "complete"})


async def test_failed_rows_run_again_only_when_that_is_asked_for(room: Room) -> None:
    with stand_in([{"fail": {"category": "refusal", "message": "no"}}], [{"text": "done"}]) as room.command:
        row = room.row("a")
        assert (await room.batch(row)).exit_code == 1
        assert (await room.batch(row)).exit_code == 1
        assert (await room.batch(row, retry_failed=True)).exit_code == 0
    assert [one["number"] for one in room.results()["a"]["attempts"]] == [2]


async def test_a_row_that_was_changed_is_refused_unless_it_is_to_run_again(room: Room) -> None:
    await room.batch(room.row("a"))
    changed = room.row("a", {"text": "other"})
    refused = await room.batch(changed)
    told = "1 row was changed since: --rerun-changed runs it again"
    assert (refused.exit_code, refused.reason, room.results()["a"]["response"]) == (1, told, "done")
    assert room.journal("closed")[-1]["reason"] == told
    await room.batch(changed, rerun_changed=True)
    assert room.results()["a"]["response"] == "other"


async def test_the_rows_own_result_file_has_the_whole_result(room: Room) -> None:
    file = room.path / "a.json"
    await room.batch(room.row("a", result_file=str(file)))
    result = orjson.loads(file.read_bytes())
    assert (result["id"], len(result["attempts"])) == ("a", 1)
