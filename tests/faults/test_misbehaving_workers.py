"""Whatever a worker does, the host gets one true result and nothing of the cell is left."""

import json
import stat
import tracemalloc
from dataclasses import replace
from functools import partial

import anyio
import pytest
from tests.faults.harness import BOUND_SECONDS, KEY, Room, Told, told

from agentcell import reap, supervise
from agentcell.limits import Limits
from agentcell.resources import Resources
from agentcell.run import run_attempt
from agentcell.spawn import start_cold
from agentcell.stop import Stop
from agentcell_protocol.codec import encode
from agentcell_protocol.errors import Category
from agentcell_protocol.framing import LINE_LIMIT
from agentcell_protocol.result import Usage
from agentcell_protocol.text import PARTIAL_CHARACTERS

pytestmark = pytest.mark.anyio

either_start = pytest.mark.parametrize("room", ["fork", "cold"], indirect=True)
"""Workers are forked; these tests are done with those that start afresh as well."""

ID = "11111111-1111-4111-8111-111111111111"

CRASHED = partial(Told, status="error", category=Category.CRASHED, partial="half")


@either_start
async def test_garbage_before_the_result_is_counted_and_named(room: Room) -> None:
    result = await room.run("prints_garbage")
    assert told(result) == Told(warnings=("protocol",))
    assert result.warnings[0].message.startswith("5 lines on the worker's stdout could not be used: ")


async def test_garbage_instead_of_a_result_breaks_the_protocol(room: Room) -> None:
    result = await room.run("speaks_nonsense")
    assert result.error is not None
    assert (result.error.category, result.error.details) == (
        Category.PROTOCOL,
        {"exit_code": 0, "killed_by_host": False},
    )
    assert "All done!" in result.response


@either_start
async def test_forged_results_are_not_believed(room: Room) -> None:
    result = await room.run("forges_results")
    assert told(result) == Told(warnings=("protocol",))
    assert result.warnings[0].message.startswith("3 lines on the worker's stdout could not be used: ")


@either_start
async def test_a_tool_cannot_forge_a_result_through_the_open_files_of_its_worker(room: Room) -> None:
    assert told(await room.run("forges_through_proc")) == Told()


@either_start
@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV"])
async def test_a_death_in_the_middle_of_a_line_names_the_signal_and_keeps_what_was_said(room: Room, name: str) -> None:
    response = f"the worker was killed by {name} in the middle of a line; its last event was text"
    assert told(await room.run("dies_in_a_line", name)) == CRASHED(
        response=response, end=name, details={"signal": name, "last_event": "text", "killed_by_host": False}
    )


@either_start
@pytest.mark.parametrize("code", [0, 7])
async def test_an_exit_without_a_result_is_a_crash(room: Room, code: int) -> None:
    assert told(await room.run("exits_silently", str(code))) == CRASHED(
        response=f"the worker exited with {code} without a result; its last event was text",
        end=code,
        details={"exit_code": code, "last_event": "text", "killed_by_host": False},
    )


@pytest.mark.slow
async def test_two_hundred_megabytes_on_stderr_neither_stall_nor_fill_memory(room: Room) -> None:
    tracemalloc.start()
    try:
        result = await room.run("floods_stderr", "200")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert told(result) == Told()
    assert peak < 8 * 1024 * 1024


async def test_the_end_of_stderr_is_kept_marked_as_cut_and_masked(room: Room) -> None:
    tail = (await room.run("floods_stderr", "1")).stderr_tail
    assert tail is not None
    assert tail.startswith("[cut: the last 8192 characters of ")
    assert tail.endswith("yyythe end, with [masked] and [masked]")
    assert KEY not in tail


@either_start
async def test_all_of_stderr_is_kept_where_its_order_says(room: Room) -> None:
    file = room.path.parent / "stderr.log"
    order = replace(room.order(), stderr_file=file)
    result = await run_attempt(order, Resources(room.spawner("floods_stderr", "1")))
    assert (told(result), stat.S_IMODE(file.stat().st_mode)) == (Told(), 0o600)
    kept = file.read_bytes()
    assert kept.count(b"x") == 1023 * 1024
    assert kept.endswith(b"yyythe end, with [masked] and [masked]")


@either_start
async def test_a_place_where_stderr_cannot_be_kept_is_a_warning(room: Room) -> None:
    order = replace(room.order(), stderr_file=room.path)
    result = await run_attempt(order, Resources(room.spawner("answers_then_exits", "0")))
    assert told(result) == Told(warnings=("stderr_not_kept",))


@either_start
async def test_the_last_words_of_a_worker_are_read_to_their_end(room: Room) -> None:
    result = await room.run("dies_with_a_traceback")
    assert (result.error and result.error.category, result.exit_code) == (Category.CRASHED, 1)
    assert str(result.stderr_tail).endswith(" the very end\n")


@either_start
async def test_a_grandchild_that_holds_the_pipes_delays_nothing_and_is_swept(room: Room) -> None:
    with anyio.fail_after(10):
        assert told(await room.run("leaves_a_grandchild")) == Told(swept=1)


@either_start
async def test_a_grandchild_of_a_killed_worker_is_swept(room: Room) -> None:
    result = await room.run("leaves_a_grandchild", "die")
    assert (result.signal, result.swept_processes) == ("SIGKILL", 1)


async def test_a_grandchild_that_writes_without_end_delays_nothing(room: Room) -> None:
    result = await room.run("floods_through_a_grandchild")
    assert (result.response, result.swept_processes) == ("done", 1)


async def test_a_worker_that_ignores_sigterm_is_killed_after_its_grace(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reap, "GRACE_SECONDS", 0.2)
    stop = Stop()
    result = await room.run(
        "ignores_sigterm", on_event=lambda _: stop.cancel() if stop.reason is None else None, stop=stop
    )
    assert told(result) == Told(
        status="error",
        response="the session was cancelled by SIGTERM",
        category=Category.CANCELLED,
        partial="half",
        end="SIGKILL",
        details={"signal": "SIGTERM", "last_event": "text", "killed_by_host": True},
    )


@either_start
async def test_a_second_stop_kills_at_once(room: Room) -> None:
    stop = Stop()
    with anyio.fail_after(reap.GRACE_SECONDS - 1):
        result = await room.run("ignores_sigterm", on_event=lambda _: stop.cancel("SIGINT"), stop=stop)
    assert result.error is not None
    assert (result.error.category, result.error.details["signal"]) == (Category.CANCELLED, "SIGINT")
    assert result.signal == "SIGKILL"


@pytest.mark.parametrize("worker", ["never_greets", "never_reads"])
async def test_a_worker_that_does_not_start_its_session_meets_the_startup_limit(room: Room, worker: str) -> None:
    members = {"starting_message": "x" * 1_000_000}
    result = await room.run(worker, limits=Limits(startup_seconds=0.3), members=members)
    assert told(result) == Told(
        status="error",
        response="the session had not started after 0.3 s (startup_seconds)",
        category=Category.TIMEOUT,
        end="SIGTERM",
        details={"signal": "SIGTERM", "killed_by_host": True, "limit": "startup"},
        violated=("startup_seconds",),
    )


@pytest.mark.slow
async def test_a_worker_that_falls_silent_meets_the_wall_limit_with_all_it_had_said(room: Room) -> None:
    result = await room.run("falls_silent", limits=Limits(max_execution_seconds=2))
    assert told(result) == Told(
        status="error",
        response="the session had not ended after 2 s (max_execution_seconds)",
        category=Category.TIMEOUT,
        partial="half",
        end="SIGTERM",
        details={"signal": "SIGTERM", "last_event": "usage", "killed_by_host": True, "limit": "wall"},
        violated=("max_execution_seconds",),
    )
    assert (result.session_id, result.model) == ("s", "m")
    assert result.usage == Usage(input_tokens=3, output_tokens=5)


@pytest.mark.slow
async def test_a_worker_that_answers_a_limit_with_its_result_keeps_all_but_the_category(room: Room) -> None:
    result = await room.run("cleans_up", limits=Limits(max_execution_seconds=2))
    assert told(result) == Told(
        status="error",
        response="the session had not ended after 2 s (max_execution_seconds)",
        category=Category.TIMEOUT,
        partial="half",
        end=143,
        details={"signal": "SIGTERM", "limit": "wall"},
        violated=("max_execution_seconds",),
    )
    assert (result.usage, result.cost_usd) == (Usage(input_tokens=7), 0.5)


@either_start
async def test_a_success_wins_over_an_odd_exit_code(room: Room) -> None:
    result = await room.run("answers_then_exits", "3")
    assert told(result) == Told(end=3, warnings=("odd_exit",))
    assert result.warnings[0].message == "the worker gave its result and then exited with 3"


@either_start
async def test_a_worker_that_lives_on_after_its_result_is_ended(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "EXIT_SECONDS", 0.2)
    assert told(await room.run("answers_then_hangs")) == Told(end="SIGTERM", warnings=("worker_lingered",))


async def test_a_worker_that_never_ends_its_clean_up_is_ended(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "CLEANUP_SECONDS", 0.2)
    result = await room.run("answers_then_hangs", "outcome", limits=Limits(drain_seconds=0))
    assert told(result) == Told(end="SIGTERM", warnings=("worker_lingered",))


@either_start
async def test_an_outcome_survives_the_death_of_its_worker(room: Room) -> None:
    assert told(await room.run("knows_its_outcome_and_dies")) == Told(end="SIGKILL", warnings=("odd_exit",))


@pytest.mark.slow
async def test_an_event_of_fifty_megabytes_is_dropped_and_named(room: Room) -> None:
    result = await room.run("speaks_at_length", "50")
    assert told(result) == Told(warnings=("protocol",))
    assert "longer than the limit of 33554432 bytes" in result.warnings[0].message


async def test_an_event_of_twenty_megabytes_is_read(room: Room) -> None:
    lengths: list[int] = []
    result = await room.run("speaks_at_length", "20", on_event=lambda event: lengths.append(len(event.get("text", ""))))
    assert told(result) == Told()
    assert max(lengths) == 20 * 1024 * 1024


async def test_an_answer_that_leaves_no_room_for_what_the_host_adds_is_an_error_with_a_part_of_it(room: Room) -> None:
    result = await room.run("answers_at_length", str(LINE_LIMIT))
    assert result.error is not None
    assert (result.error.category, result.error.details["limit"]) == (Category.PROTOCOL, LINE_LIMIT)
    assert (result.error.partial_response, result.session_id) == ("x" * PARTIAL_CHARACTERS, "s")
    assert [(attempt.number, attempt.status) for attempt in result.attempts] == [(1, "error")]
    assert len(encode(result.to_message())) < LINE_LIMIT


async def test_characters_that_come_byte_by_byte_are_joined(room: Room) -> None:
    assert told(await room.run("stutters")) == Told(response="🦊\u2028\x00")


async def test_bytes_that_are_not_utf8_are_replaced(room: Room) -> None:
    result = await room.run("mangles_text")
    assert told(result) == Told(response="bad \ufffd byte")
    assert result.stderr_tail == "bad \ufffd byte\n"


async def test_a_request_of_thirty_megabytes_arrives(room: Room) -> None:
    result = await room.run("measures_its_request", members={"starting_message": "x" * 30_000_000})
    assert json.loads(result.response)["message"] == 30_000_000


@pytest.mark.parametrize("members", [{"session_id": ID}, {"resume": ID}])
@pytest.mark.parametrize("worker", ["never_greets", "speaks_nonsense", "not there", "stopped"])
async def test_every_failed_result_has_the_id_of_its_session(room: Room, worker: str, members: dict[str, str]) -> None:
    stop = Stop()
    if worker == "stopped":
        stop.cancel()
    spawn = partial(start_cold, command=("/no/such/python",)) if worker == "not there" else room.spawner(worker)
    with anyio.fail_after(BOUND_SECONDS):
        order = room.order(Limits(startup_seconds=0.3), stop=stop, members=members)
        result = await run_attempt(order, Resources(spawn))
    assert (result.status, result.session_id, result.attempts[0].session_id) == ("error", ID, ID)


async def test_a_failed_result_has_the_id_that_was_made_for_its_session(room: Room) -> None:
    results = [await room.run("never_greets", limits=Limits(startup_seconds=0.3)) for _ in range(2)]
    assert len({result.session_id for result in results} - {None}) == 2


async def test_a_missing_interpreter_is_a_result(room: Room) -> None:
    spawn = partial(start_cold, command=("/no/such/python",))
    result = await run_attempt(room.order(), Resources(spawn))
    assert result.error is not None
    assert (result.error.category, result.error.details) == (Category.SPAWN_FAILED, {"errno": 2})
