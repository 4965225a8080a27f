"""What became of each row is what the journal and the results say of it."""

import tracemalloc
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcell.attempts import Tried
from agentcell.batch import journal
from agentcell.batch.counts import Spending
from agentcell.batch.history import History, ItemHistory, OpenAttempt, fold
from agentcell.batch.index import Entry, Index
from agentcell_protocol.errors import Category, session_error
from agentcell_protocol.result import Attempt, Usage

ROWS = 2_000

SESSION = "0c4989bf-3a27-495f-bd3f-2db89ed162d9"


def start(number: int = 1, id_: str = "a", **more: Any) -> dict[str, Any]:
    members: dict[str, Any] = {
        "digest": "1:aa",
        "line": 7,
        "mode": "fresh",
        "session_id": SESSION,
        "marker": f"m{number}",
        "host_pid": 5,
        "boot_id": "b",
    }
    return journal.started(10.0 + number, id=id_, attempt=number, **{**members, **more})


def tried(number: int = 1, category: Category | None = Category.CRASHED, *, is_counted: bool = True) -> Tried:
    error = None if category is None else session_error(category, "it ended", signal="SIGSEGV")
    attempt = Attempt(
        number=number,
        status="error" if error else "complete",
        error=error,
        usage=Usage(input_tokens=number),
        cost_usd=0.5,
        session_id=SESSION,
        signal="SIGSEGV",
        execution_time=1.5,
    )
    return Tried(attempt, tool_calls=2, has_transcript=True, is_counted=is_counted)


def end(number: int = 1, id_: str = "a", *, is_counted: bool = True, retry_at: float | None = None) -> dict[str, Any]:
    return journal.ended(20.0 + number, id=id_, tried=tried(number, is_counted=is_counted), retry_at=retry_at)


def folded(*messages: dict[str, Any], finished: dict[str, Entry] | None = None) -> History:
    """The history of these lines once they were in a file."""
    return fold([orjson.loads(orjson.dumps(message)) for message in messages], Index.of(finished or {}))


def test_a_row_that_was_never_tried_has_none() -> None:
    assert folded(start()).of("b") is None


def test_an_attempt_that_was_started_is_open() -> None:
    history = folded(start())
    open_attempt = OpenAttempt(
        number=1,
        mode="fresh",
        session_id=SESSION,
        marker="m1",
        boot_id="b",
        at=11.0,
    )
    assert history.of("a") == ItemHistory("a", "1:aa", 7, last_attempt=1)
    assert list(history.open_attempts()) == [("a", open_attempt)]


def test_an_attempt_that_has_ended_is_what_it_was() -> None:
    history = folded(start(), end(retry_at=99.0))
    assert history.of("a") == ItemHistory("a", "1:aa", 7, past=(tried(),), last_attempt=1, retry_at=99.0)
    assert list(history.open_attempts()) == []


def test_attempts_are_in_order_and_those_that_count_are_counted() -> None:
    item = folded(start(), end(), start(2), end(2, is_counted=False), start(3), end(3)).of("a")
    assert item is not None
    assert [attempt.number for attempt in item.attempts] == [1, 2, 3]
    assert ([one.is_counted for one in item.past], item.last_attempt) == ([True, False, True], 3)


def test_while_an_attempt_is_open_nothing_is_due() -> None:
    item = folded(start(), end(retry_at=99.0), start(2)).of("a")
    assert item is not None
    assert (item.retry_at, item.past, item.last_attempt) == (None, (tried(),), 2)


def test_what_an_attempt_said_is_not_in_the_journal() -> None:
    error = session_error(Category.CRASHED, "it ended", partial_response="x" * 1000)
    spoken = Tried(Attempt(number=1, status="error", error=error))
    line = journal.ended(1.0, id="a", tried=spoken)
    assert line["error"] == {name: value for name, value in error.model_dump().items() if name != "partial_response"}
    item = folded(start(), line).of("a")
    assert item is not None
    assert item.attempts == [Attempt(number=1, status="error", error=session_error(Category.CRASHED, "it ended"))]


def test_a_row_that_is_finished_has_its_attempts_in_its_result() -> None:
    finished = {"a": Entry(0, "error", "crashed", "1:ab"), "b": Entry(9, "complete", None, None)}
    history = folded(start(), end(), finished=finished)
    assert history.of("a") == ItemHistory(
        "a", "1:ab", last_attempt=1, is_finished=True, status="error", category="crashed"
    )
    assert history.of("b") == ItemHistory("b", None, is_finished=True, status="complete")
    assert list(history.pending()) == []


def test_an_attempt_at_a_row_that_is_finished_can_be_open() -> None:
    history = folded(start(), end(), start(2), finished={"a": Entry(0, "error", "crashed", "1:ab")})
    assert [(id_, attempt.number) for id_, attempt in history.open_attempts()] == [("a", 2)]
    assert history.apply(end(2))
    assert list(history.open_attempts()) == []
    assert history.of("a") == ItemHistory(
        "a", "1:ab", last_attempt=2, is_finished=True, status="error", category="crashed"
    )


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4))
def test_it_is_the_same_whether_the_result_is_known_before_the_journal_or_after_it(lives: list[int]) -> None:
    """Each life is so many attempts; between two of them the row was run again as if it had not been tried."""
    lines, last = list[dict[str, Any]](), 0
    for attempts in lives:
        lines += [journal.reopened(1.0, ids={"a"})] if last else []
        for number in range(last + 1, last + attempts + 1):
            lines += [start(number), end(number)]
        last += attempts
    result = Entry(0, "error", "crashed", "1:aa")
    before, after = folded(*lines, finished={"a": result}), folded(*lines)
    after.finished.add("a", result)
    assert before.of("a") == after.of("a")
    assert before.spending == after.spending
    assert before.spending.retries == sum(lives) - len(lives)


def test_a_row_that_is_finished_costs_nothing_beside_its_entry() -> None:
    ids = [f"row-{number}" for number in range(ROWS)]
    finished = Index.of({id_: Entry(0, "complete", None, "1:ab") for id_ in ids})
    lines = [orjson.dumps(line) for id_ in ids for line in (start(id_=id_), end(id_=id_))]
    tracemalloc.start()
    try:
        history = fold(map(orjson.loads, lines), finished)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (history.spending.known_costs, taken < ROWS) == (ROWS, True)


def test_a_row_that_is_run_again_has_all_its_retries_and_no_number_twice() -> None:
    item = folded(start(), end(), journal.reopened(1.0, ids={"a", "none"}), start(2, digest="1:bb")).of("a")
    assert item is not None
    assert (item.past, item.last_attempt, item.digest) == ((), 2, "1:bb")


def test_what_was_spent_on_rows_that_run_again_or_have_finished_counts_once() -> None:
    lines = [start(), end(), start(2), end(2), journal.reopened(1.0, ids={"a"}), start(3), end(3)]
    spent = Spending({"input_tokens": 6}, known_usd=1.5, known_costs=3, retries=1)
    assert folded(*lines).spending == spent
    assert folded(*lines, finished={"a": Entry(0, "error", "crashed", "1:ab")}).spending == spent


def test_of_an_attempt_that_does_not_say_what_it_cost_nobody_knows_it() -> None:
    amounts = [None, "1", -1.0, 1e300, True]
    history = folded(
        *({**end(), "usage": {"output_tokens": "many", "input_tokens": 2}, "cost_usd": cost} for cost in amounts)
    )
    assert history.spending == Spending({"input_tokens": 10}, unknown_costs=5)


def test_the_batch_itself_is_open_paused_or_closed() -> None:
    opened = journal.opened(1.0, host_pid=5, boot_id="b", config={"concurrency": 2})
    paused = journal.paused(2.0, reason="rate_limit", until=9.0)
    closed = journal.closed(4.0, reason="finished")
    states = [
        folded(*lines)
        for lines in (
            [opened, paused],
            [opened, paused, journal.resumed(3.0), closed],
            [opened, paused, closed, opened],
        )
    ]
    assert [(state.opened, state.paused, state.closed) for state in states] == [
        (opened, paused, None),
        (opened, None, closed),
        (opened, None, None),
    ]


@pytest.mark.parametrize(
    "line",
    [
        {},
        {"event": 3},
        {"event": "started"},
        {"event": "started", "id": "a", "attempt": "1"},
        {"event": "started", "id": "a", "attempt": 1},
        {**start(), "attempt": True},
        {**start(), "attempt": 0},
        {**end(), "attempt": 2**32},
        {"event": "ended", "id": "a", "attempt": 1},
        {"event": "ended", "id": "a", "attempt": 1, "status": ["error"]},
        {"event": "reopened", "ids": "a"},
    ],
)
def test_a_line_that_makes_no_sense_is_refused_and_changes_nothing(line: dict[str, Any]) -> None:
    history = folded(start())
    before = history.of("a")
    assert (history.apply(line), history.of("a")) == (False, before)


def test_an_event_of_a_later_version_is_passed_over() -> None:
    assert History(Index()).apply({"event": "moved", "id": "a"})


def test_an_attempt_whose_end_cannot_be_read_was_lost() -> None:
    item = folded(start(), {"event": "ended", "id": "a", "attempt": 1, "status": "error", "usage": "much"}).of("a")
    assert item is not None
    error = session_error(Category.HOST_LOST, "the journal does not say how this attempt ended")
    assert item.past == (Tried(Attempt(number=1, status="error", error=error)),)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(st.sampled_from([start(), end()]), st.dictionaries(st.sampled_from(sorted({*start(), *end()})), JSON))
def test_whatever_a_line_says_the_history_can_be_told(line: dict[str, Any], changes: dict[str, Any]) -> None:
    history = folded(start(), {**line, **changes}, start(2))
    assert all(history.of(id_) is not None for id_ in history.pending())
    assert len(list(history.open_attempts())) >= 1
