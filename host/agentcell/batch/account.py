"""The account that all rows share: open, paused until a time, or closed. Pure: the clock comes in.

What a session met there is not its row's fault: the row goes back, and costs none of its retries.
"""

from dataclasses import dataclass, replace
from math import inf

from agentcell.retry import wait_asked_for
from agentcell_protocol.credentials import credential_variables
from agentcell_protocol.errors import Category, SessionError
from agentcell_protocol.request import SessionRequest

FIRST_PAUSE_SECONDS = 30.0
"""After a rate limit that says nothing of its end; doubled while the limit lasts."""

LONGEST_PAUSE_SECONDS = 600.0
"""Between two looks whether the account works again, when it does not say when."""

PATIENCE_SECONDS = 3600.0
"""A rate limit that lasts longer is a quota that is used up: whoever did not ask to wait for it is told."""

CLOSING = frozenset({Category.AUTHENTICATION, Category.BILLING})
"""Categories after which no other session of the account would do better."""


@dataclass(frozen=True, slots=True)
class Account:
    """What the sessions so far have told of it; all times are Unix seconds.

    Nothing is admitted before `opens_at`, and nothing at all once it is `closed`, which says why in one sentence.
    `pauses` counts those in a row whose end nobody named, the last of them made at `paused_at`; `limited_at` is when
    the first limit was met since a session came through.
    """

    opens_at: float = 0.0
    closed: str | None = None
    pauses: int = 0
    paused_at: float = 0.0
    limited_at: float | None = None

    def is_paused(self, now: float) -> bool:
        """Whether the next session has to wait."""
        return self.closed is None and now < self.opens_at


def is_the_accounts(error: SessionError | None, request: SessionRequest) -> bool:
    """Whether the error is about the account that rows share, and not about credentials that are the row's own."""
    is_about_one = error is not None and (error.category in CLOSING or error.category is Category.RATE_LIMIT)
    return is_about_one and not has_its_own(request)


def has_its_own(request: SessionRequest) -> bool:
    """Whether the request brings credentials, so that how its session ends says nothing of the account."""
    return any(credential_variables(request.env or {}))


def after_session(
    account: Account,
    request: SessionRequest,
    error: SessionError | None,
    *,
    started: float,
    now: float,
    waits_for_quota: bool = False,
) -> Account:
    """A session that `started` then has ended `now`: well, or with an error that need not be the account's."""
    if has_its_own(request):
        return account
    if error is None:
        return after_success(account, started=started)
    if is_the_accounts(error, request):
        return after_error(account, error, started=started, now=now, waits_for_quota=waits_for_quota)
    return account


def after_success(account: Account, *, started: float) -> Account:
    """A session came through that `started` after the last pause was made, so the limit is over."""
    if account.closed is not None or started < account.paused_at:
        return account
    return Account(opens_at=account.opens_at)


def after_error(
    account: Account, error: SessionError, *, started: float, now: float, waits_for_quota: bool = False
) -> Account:
    """A session that `started` then met an error of the account `now`."""
    if account.closed is not None:
        return account
    if error.category is Category.AUTHENTICATION:
        return replace(account, closed=f"the API cannot be used: {error}")
    if error.category is Category.BILLING and not waits_for_quota:
        return replace(account, closed=f"the account cannot pay: {error}")
    return _limited(account, error, started=started, now=now, patience=inf if waits_for_quota else PATIENCE_SECONDS)


def _limited(account: Account, error: SessionError, *, started: float, now: float, patience: float) -> Account:
    limited_at = now if account.limited_at is None else account.limited_at
    if asked := wait_asked_for(error, now):
        paused = replace(account, opens_at=max(account.opens_at, now + asked), paused_at=now, limited_at=limited_at)
    elif account.limited_at is not None and started < account.paused_at:
        return account  # it was under way when the limit was met: this is not another one
    else:
        seconds = min(FIRST_PAUSE_SECONDS * 2.0**account.pauses, LONGEST_PAUSE_SECONDS)
        paused = Account(
            opens_at=max(account.opens_at, now + seconds),
            pauses=account.pauses + 1,
            paused_at=now,
            limited_at=limited_at,
        )
    if paused.opens_at - limited_at > patience:
        return replace(paused, closed=f"the account's quota is used up: {error}")
    return paused
