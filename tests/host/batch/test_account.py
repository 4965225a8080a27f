"""What one session learns of the account counts for all of them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcell.batch.account import (
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    Account,
    after_error,
    after_session,
    after_success,
    has_its_own,
    is_the_accounts,
)
from agentcell_protocol.errors import Category, SessionError, session_error
from agentcell_protocol.request import SessionRequest

NOW = 1_800_000_000.0


def error(category: Category = Category.RATE_LIMIT, **members: Any) -> SessionError:
    return session_error(category, "no", **members)


def request(**env: str) -> SessionRequest:
    members = {"session_name": "a", "agent_type": "coder", "project_dir": ".", "starting_message": "hi"}
    return SessionRequest.model_validate({**members, "env": env or None})


def limited(account: Account, *, at: float, **members: Any) -> Account:
    """After a session that started and met a rate limit then."""
    return after_error(account, error(**members), started=at, now=at)


def test_a_reset_that_is_named_is_waited_for() -> None:
    account = limited(Account(), at=NOW, resets_at=NOW + 900)
    assert account == Account(opens_at=NOW + 900, paused_at=NOW, limited_at=NOW)
    assert account.is_paused(NOW + 899)
    assert not account.is_paused(NOW + 900)


def test_a_wait_that_is_asked_for_is_waited_for() -> None:
    assert limited(Account(), at=NOW, retry_after_s=7.0).opens_at == NOW + 7


def test_a_reset_that_has_gone_by_says_nothing() -> None:
    assert limited(Account(), at=NOW, resets_at=NOW - 5).opens_at == NOW + FIRST_PAUSE_SECONDS


def test_without_a_word_the_pauses_double_up_to_ten_minutes() -> None:
    account, at, pauses = Account(), NOW, []
    for _ in range(6):
        account = limited(account, at=at)
        pauses.append(account.opens_at - at)
        at = account.opens_at
    assert pauses == [30.0, 60.0, 120.0, 240.0, 480.0, LONGEST_PAUSE_SECONDS]


def test_sessions_that_were_under_way_when_the_limit_was_met_do_not_double_the_pause() -> None:
    once = limited(Account(), at=NOW)
    assert after_error(once, error(), started=NOW - 60, now=NOW + 1) == once


def test_an_end_that_is_named_later_counts_too() -> None:
    once = limited(Account(), at=NOW)
    twice = after_error(once, error(retry_after_s=50.0), started=NOW - 60, now=NOW + 1)
    assert twice.opens_at == NOW + 51


def test_a_session_that_comes_through_begins_anew() -> None:
    account = limited(limited(Account(), at=NOW), at=NOW + 30)
    through = after_success(account, started=NOW + 90)
    assert (through.pauses, through.limited_at) == (0, None)
    assert after_success(account, started=NOW - 1) == account


def test_a_limit_that_lasts_for_hours_is_a_quota() -> None:
    account = limited(Account(), at=NOW, resets_at=NOW + 4 * 3600)
    assert account.closed == "the account's quota is used up: no"
    assert not account.is_paused(NOW)


def test_a_quota_is_waited_for_when_that_is_asked_for() -> None:
    account = after_error(Account(), error(resets_at=NOW + 4 * 3600), started=NOW, now=NOW, waits_for_quota=True)
    assert (account.closed, account.opens_at) == (None, NOW + 4 * 3600)


def test_rate_limits_without_a_word_end_after_an_hour() -> None:
    account, at = Account(), NOW
    while account.closed is None:
        account = limited(account, at=at)
        at = account.opens_at
    assert at - NOW < 3600 + LONGEST_PAUSE_SECONDS


@pytest.mark.parametrize(
    ("category", "waits", "closed"),
    [
        (Category.AUTHENTICATION, False, "the API cannot be used: no; mend it"),
        (Category.AUTHENTICATION, True, "the API cannot be used: no; mend it"),
        (Category.BILLING, False, "the account cannot pay: no; mend it"),
        (Category.BILLING, True, None),
    ],
)
def test_what_no_session_can_mend_closes_the_account(category: Category, waits: bool, closed: str | None) -> None:
    account = after_error(Account(), error(category, hint="mend it"), started=NOW, now=NOW, waits_for_quota=waits)
    assert account.closed == closed
    assert account.is_paused(NOW) is (closed is None)


@pytest.mark.parametrize(
    ("category", "env", "expected"),
    [
        (Category.RATE_LIMIT, {}, True),
        (Category.AUTHENTICATION, {}, True),
        (Category.BILLING, {"NODE_ENV": "test"}, True),
        (Category.AUTHENTICATION, {"ANTHROPIC_API_KEY": "sk-ant-own"}, False),
        (Category.RATE_LIMIT, {"CLAUDE_CODE_USE_BEDROCK": "1"}, False),
        (Category.AUTHENTICATION, {"ANTHROPIC_API_KEY": ""}, True),
        (Category.OVERLOADED, {}, False),
        (Category.CRASHED, {}, False),
    ],
)
def test_only_errors_of_shared_credentials_are_the_accounts(
    category: Category, env: dict[str, str], expected: bool
) -> None:
    assert is_the_accounts(error(category), request(**env)) is expected


def test_a_success_is_not_about_the_account() -> None:
    assert not is_the_accounts(None, request())


def test_a_session_with_credentials_of_its_own_changes_nothing_and_another_does() -> None:
    account = limited(Account(), at=NOW)
    for ending in (None, error(), error(Category.AUTHENTICATION)):
        own = after_session(account, request(ANTHROPIC_API_KEY="sk-ant-own"), ending, started=NOW + 60, now=NOW + 61)
        assert own == account
        assert after_session(account, request(), ending, started=NOW + 60, now=NOW + 61) != account


def test_who_brings_credentials_says_nothing_of_the_account() -> None:
    assert has_its_own(request(ANTHROPIC_API_KEY="sk-ant-own"))
    assert not has_its_own(request(NODE_ENV="test"))


def test_a_shorter_wait_opens_it_no_earlier() -> None:
    account = limited(limited(Account(), at=NOW, retry_after_s=900), at=NOW + 1, retry_after_s=10)
    assert account.opens_at == NOW + 900


@given(
    st.lists(
        st.tuples(st.sampled_from([*Category]), st.floats(0, 1e4), st.floats(0, 1e4), st.none() | st.floats(0, 1e5)),
        max_size=20,
    )
)
def test_it_never_opens_earlier_and_stays_closed(
    endings: list[tuple[Category, float, float, float | None]],
) -> None:
    account, now = Account(), NOW
    for category, passed, took, asked in endings:
        now += passed
        before = account
        if category in {Category.RATE_LIMIT, Category.BILLING, Category.AUTHENTICATION}:
            account = after_error(account, error(category, retry_after_s=asked), started=now - took, now=now)
        else:
            account = after_success(account, started=now - took)
        assert account.opens_at >= before.opens_at
        assert before.closed is None or account == before
