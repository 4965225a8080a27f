"""The tally counts what a batch has come to."""

from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from agentcell.batch.counts import RATE_ROWS
from agentcell.batch.tally import Running, Snapshot, Tally
from agentcell_protocol.errors import Category, session_error
from agentcell_protocol.result import SessionResult, Usage, failed

NOW = 1_800_000_000.0


def success(seconds: float = 1.0, status: Literal["complete", "continue"] = "complete") -> SessionResult:
    return SessionResult(status=status, response="done", session_name="a", execution_time=seconds)


def test_a_batch_that_has_not_begun_has_everything_before_it() -> None:
    assert Tally(NOW, total=3).snapshot(NOW) == Snapshot(total=3, pending=3)


def test_rows_that_run_finish_and_fail_are_told_apart() -> None:
    tally = Tally(NOW, total=4)
    for row_id in ("a", "b", "c"):
        tally.started(row_id, 1, NOW)
    tally.heard("c", {"type": "tool_use", "name": "Read"})
    tally.ended("a", Usage(input_tokens=5), 0.5)
    tally.has_finished("a", success(2.0, "continue"), NOW + 2)
    tally.ended("b", Usage(output_tokens=3), None)
    tally.has_finished("b", failed(session_error(Category.CRASHED, "gone"), execution_time=4.0), NOW + 4)
    assert tally.snapshot(NOW + 4) == Snapshot(
        total=4,
        done=1,
        failed=1,
        running=(Running("c", 1, NOW, {"type": "tool_use", "name": "Read"}),),
        pending=1,
        usage=Usage(input_tokens=5, output_tokens=3),
        cost_usd=0.5,
        unknown_costs=1,
        elapsed=4.0,
        rate=0.5,
        eta=4.0,
        by_status={"continue": 1, "error": 1},
        by_category={"crashed": 1},
        slowest=(("b", 4.0), ("a", 2.0)),
    )


def test_a_row_that_is_tried_again_is_pending_meanwhile() -> None:
    tally = Tally(NOW, total=1)
    tally.started("a", 1, NOW)
    tally.ended("a", Usage(), 0.1)
    assert (tally.snapshot(NOW).pending, tally.snapshot(NOW).retries) == (1, 0)
    tally.started("a", 2, NOW, is_retry=True)
    assert (tally.snapshot(NOW).pending, tally.snapshot(NOW).retries) == (0, 1)


def test_former_runs_count_but_not_for_the_rate() -> None:
    tally = Tally(NOW, total=10)
    for _ in range(8):
        tally.finished_before("complete", None)
        tally.spending.add({"input_tokens": 1}, 0.25)
    tally.finished_before("error", "timeout")
    seen = tally.snapshot(NOW + 5)
    assert (seen.done, seen.failed, seen.pending, seen.rate, seen.eta, seen.cost_usd) == (8, 1, 1, 0.0, None, 2.0)
    assert seen.by_category == {"timeout": 1}


def test_a_cost_that_nobody_knows_is_not_nothing() -> None:
    tally = Tally(NOW)
    tally.ended("a", Usage(), None)
    assert (tally.snapshot(NOW).cost_usd, tally.snapshot(NOW).unknown_costs) == (None, 1)


def test_of_a_stream_nobody_knows_the_end() -> None:
    tally = Tally(NOW)
    tally.started("a", 1, NOW)
    tally.ended("a", Usage(), 0.0)
    tally.has_finished("a", success(), NOW + 1)
    seen = tally.snapshot(NOW + 1)
    assert (seen.total, seen.pending, seen.eta, seen.rate) == (None, None, None, 1.0)


def test_the_rate_is_that_of_late() -> None:
    tally = Tally(NOW, total=1000)
    for second in range(100):
        tally.has_finished("a", success(), NOW + 1000 + second)
    assert tally.snapshot(NOW + 1100).rate == 1.0
    assert tally.snapshot(NOW + 1050 + RATE_ROWS * 10).rate == 0.1


def test_a_pause_is_shown_until_something_starts() -> None:
    tally = Tally(NOW)
    tally.paused("the rate limit of the account", NOW + 30)
    assert (tally.snapshot(NOW).paused, tally.snapshot(NOW).paused_until) == ("the rate limit of the account", NOW + 30)
    tally.started("a", 1, NOW)
    assert tally.snapshot(NOW).paused is None


def test_an_event_of_a_row_that_has_ended_is_late() -> None:
    tally = Tally(NOW)
    tally.heard("a", {"type": "text"})
    assert tally.snapshot(NOW).running == ()


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["start", "retry", "finish", "fail"])), max_size=60))
def test_every_row_is_always_in_exactly_one_place(steps: list[tuple[int, str]]) -> None:
    tally = Tally(NOW, total=10)
    over: set[str] = set()
    for number, step in steps:
        row_id = f"row-{number}"
        is_running = row_id in {one.id for one in tally.snapshot(NOW).running}
        if step == "start" and row_id not in over and not is_running:
            tally.started(row_id, 1, NOW)
        elif step != "start" and is_running:
            tally.ended(row_id, Usage(), 0.0)
            if step in {"finish", "fail"}:
                over.add(row_id)
                error = failed(session_error(Category.CRASHED, "gone"))
                tally.has_finished(row_id, success() if step == "finish" else error, NOW)
        seen = tally.snapshot(NOW)
        assert seen.done + seen.failed + len(seen.running) + (seen.pending or 0) == 10
        assert seen.done + seen.failed == len(over)
