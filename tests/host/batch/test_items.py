"""What is done with a row, and what becomes of it after each attempt."""

from typing import Any

import pytest

from agentcell.attempts import Tried
from agentcell.batch.history import ItemHistory
from agentcell.batch.items import MOST_PUT_BACKS, Again, Cut, Final, Item, Plan, plan, verdict
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
    tried = Tried.of(result, 1, "fresh")
    policy = RetryPolicy(max_attempts=attempts)
    return verdict(item(**known), tried, result, cut, policy, now=0.0, chance=1.0)


@pytest.mark.parametrize(
    ("history", "flags", "expected"),
    [
        (None, {}, "fresh"),
        (ItemHistory("a", ONE, last_attempt=1), {}, "resumed"),
        (ItemHistory("a", ONE, is_finished=True, status="complete"), {}, "finished"),
        (ItemHistory("a", ONE, is_finished=True, status="complete"), {"retry_failed": True}, "finished"),
        (ItemHistory("a", ONE, is_finished=True, status="error"), {}, "finished"),
        (ItemHistory("a", ONE, is_finished=True, status="error"), {"retry_failed": True}, "again"),
        (ItemHistory("a", OTHER, is_finished=True, status="complete"), {}, "refused"),
        (ItemHistory("a", OTHER, last_attempt=1), {}, "refused"),
        (ItemHistory("a", OTHER, is_finished=True, status="complete"), {"rerun_changed": True}, "changed"),
        (ItemHistory("a", "0:0123456789abcdef", last_attempt=1), {}, "resumed"),
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
