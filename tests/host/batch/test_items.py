"""What is done with a row, and what becomes of it after each attempt."""

from errno import EMFILE, ENOENT
from typing import Any

import pytest

from agentcell.attempts import Tried
from agentcell.batch.history import ItemHistory
from agentcell.batch.items import MOST_PUT_BACKS, Again, Cut, Final, Item, Plan, is_spent, plan, verdict
from agentcell.batch.rows import Row
from agentcell.limits import Limits
from agentcell.retry import RetryPolicy
from agentcell_protocol.errors import Category, session_error
from agentcell_protocol.request import SessionRequest
from agentcell_protocol.result import SessionResult, failed

ONE, OTHER = "1:0123456789abcdef", "1:fedcba9876543210"


def item(**known: Any) -> Item:
    members = {"session_name": "a", "agent_type": "coder", "project_dir": "/", "starting_message": "hi"}
    request = SessionRequest.model_validate(members)
    return Item(Row(1, 0, "a", ONE, request, Limits()), **known)


def becomes(category: Category | None, cut: Cut | None = None, *, attempts: int = 3, **known: Any) -> Final | Again:
    error = None if category is None else session_error(category, "no")
    result = SessionResult(status="complete", response="x", session_name="a") if error is None else failed(error)
    policy = RetryPolicy(max_attempts=attempts)
    return verdict(item(**known), tried(result), result, cut, policy, now=0.0, chance=1.0)


def tried(result: SessionResult) -> Tried:
    return Tried.of(result, 1, "fresh")


@pytest.mark.parametrize(
    ("history", "flags", "expected"),
    [
        (None, {}, "new"),
        (ItemHistory("a", ONE, last_attempt=1), {}, "goes on"),
        (ItemHistory("a", ONE, is_finished=True, status="complete"), {}, "finished"),
        (ItemHistory("a", ONE, is_finished=True, status="complete"), {"retry_failed": True}, "finished"),
        (ItemHistory("a", ONE, is_finished=True, status="error"), {}, "finished"),
        (ItemHistory("a", ONE, is_finished=True, status="error"), {"retry_failed": True}, "again"),
        (ItemHistory("a", OTHER, is_finished=True, status="complete"), {}, "refused"),
        (ItemHistory("a", OTHER, last_attempt=1), {}, "refused"),
        (ItemHistory("a", OTHER, is_finished=True, status="complete"), {"rerun_changed": True}, "changed"),
        (ItemHistory("a", "0:0123456789abcdef", last_attempt=1), {}, "goes on"),
        (
            ItemHistory("a", OTHER, is_finished=True, status="error", category="crashed"),
            {"retry_failed": True},
            "refused",
        ),
        (ItemHistory("a", OTHER, is_finished=True, status="error", category="bad_request"), {}, "again"),
        (ItemHistory("a", ONE, is_finished=True, status="error", category="bad_request"), {}, "again"),
        (
            ItemHistory("a", ONE, last_attempt=1, is_finished=True, status="error", category="bad_request"),
            {},
            "finished",
        ),
        (ItemHistory("a", None, last_attempt=1), {}, "new"),
    ],
)
def test_what_is_done_with_a_row(history: ItemHistory | None, flags: dict[str, bool], expected: Plan) -> None:
    assert plan(ONE, history, **flags) == expected


@pytest.mark.parametrize(
    ("category", "cut", "expected"),
    [
        (Category.CRASHED, None, Again(1.0)),
        (Category.CANCELLED, "interrupted", Again(is_counted=False)),
        (Category.CANCELLED, "memory", Again(is_counted=False)),
        (Category.RATE_LIMIT, None, Again(is_counted=False)),
        (Category.AUTHENTICATION, None, Again(is_counted=False)),
        (Category.CRASHED, "interrupted", Again(1.0)),
        (Category.SPAWN_FAILED, None, Again(1.0)),
    ],
)
def test_what_goes_again(category: Category, cut: Cut | None, expected: Again) -> None:
    assert becomes(category, cut) == expected


@pytest.mark.parametrize(
    ("category", "cut", "attempts"),
    [
        (None, None, 3),
        (None, "interrupted", 3),
        (Category.REFUSAL, None, 3),
        (Category.MEMORY_LIMIT, None, 3),
        (Category.CRASHED, None, 1),
        (Category.CANCELLED, None, 3),
    ],
)
def test_what_is_finished(category: Category | None, cut: Cut | None, attempts: int) -> None:
    end = becomes(category, cut, attempts=attempts)
    assert isinstance(end, Final)
    assert (end.result.error and end.result.error.category) == category
    assert len(end.result.attempts) == 1


def test_a_row_that_takes_all_memory_itself_fails_for_it_in_the_end() -> None:
    assert becomes(Category.CANCELLED, "memory", put_backs=MOST_PUT_BACKS - 1) == Again(is_counted=False)
    end = becomes(Category.CANCELLED, "memory", put_backs=MOST_PUT_BACKS)
    assert isinstance(end, Final)
    assert end.result.error is not None
    assert end.result.error.category is Category.MEMORY_LIMIT
    assert [attempt.error for attempt in end.result.attempts] == [end.result.error]


def test_numbers_go_on_after_all_that_was_ever_tried() -> None:
    assert item(last_attempt=4).next().number == 5


@pytest.mark.parametrize(("number", "expected"), [(EMFILE, Again(is_counted=False)), (ENOENT, Again(1.0))])
def test_a_machine_that_has_run_out_is_not_the_rows_fault(number: int, expected: Again) -> None:
    result = failed(session_error(Category.SPAWN_FAILED, "no", errno=number))
    policy = RetryPolicy(max_attempts=3)
    assert verdict(item(), tried(result), result, None, policy, now=0.0, chance=1.0) == expected


def test_where_a_former_run_has_left_a_row_it_goes_on() -> None:
    past = (tried(failed(session_error(Category.CRASHED, "no"))),)
    history = ItemHistory("a", ONE, past=past, last_attempt=3, retry_at=7.0)
    assert Item.of(item().row, history) == item(past=past, last_attempt=3, due=7.0)


def test_after_an_attempt_it_is_known_and_a_cut_for_memory_is_counted() -> None:
    last = tried(failed(session_error(Category.CANCELLED, "no")))
    assert item().after(last, 7.0, "memory") == item(past=(last,), last_attempt=1, due=7.0, put_backs=1)
    assert item().after(last, 7.0, None) == item(past=(last,), last_attempt=1, due=7.0)


@pytest.mark.parametrize(
    ("category", "is_counted", "attempts", "expected"),
    [
        (Category.CRASHED, True, 2, False),
        (Category.CRASHED, True, 1, True),
        (Category.CRASHED, False, 1, False),
        (Category.REFUSAL, True, 3, True),
        (Category.CANCELLED, False, 3, False),
    ],
)
def test_whether_a_row_has_no_attempt_left(category: Category, is_counted: bool, attempts: int, expected: bool) -> None:
    last = Tried.of(failed(session_error(category, "no")), 1, "fresh", is_counted=is_counted)
    assert is_spent(item(past=(last,)), RetryPolicy(max_attempts=attempts), now=0.0) is expected
    assert not is_spent(item(), RetryPolicy(max_attempts=attempts), now=0.0)
