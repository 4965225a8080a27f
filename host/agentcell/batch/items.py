"""A row on its way through a batch, and what becomes of it after each attempt. Pure: clock and chance come in."""

from dataclasses import dataclass, replace
from typing import Literal, Self

from agentcell.attempts import Next, Tried, combined, following, next_attempt
from agentcell.batch.account import is_the_accounts
from agentcell.batch.history import ItemHistory
from agentcell.batch.identity import DIGEST_VERSION
from agentcell.batch.machine import is_the_machines
from agentcell.batch.rows import Row
from agentcell.retry import RetryPolicy
from agentcell_protocol.errors import Category, SessionError, session_error
from agentcell_protocol.result import SessionResult

Plan = Literal["new", "goes on", "again", "changed", "finished", "refused"]
"""What this run does with a row: begins it, goes on with it, runs it again because it failed or was changed, leaves it
as it is, or refuses it because it was changed and nobody said that it is to run again. Users read these words."""

TO_BE_RUN: frozenset[Plan] = frozenset({"new", "goes on", "again", "changed"})

Cut = Literal["interrupted", "memory", "aborted"]
"""Why the batch ended a cell that could have gone on."""

MOST_PUT_BACKS = 3
"""A row that had to make room more often than that takes the memory itself, and fails for it."""


@dataclass(frozen=True, slots=True)
class Item:
    """A row that has not finished, with the attempts at it so far; it may go on at `due` (Unix seconds).

    `last_attempt` is the number of the last one that was ever made, `put_backs` how often it had to make room.
    """

    row: Row
    past: tuple[Tried, ...] = ()
    last_attempt: int = 0
    due: float = 0.0
    put_backs: int = 0

    @classmethod
    def of(cls, row: Row, history: ItemHistory) -> Self:
        """The row where a former run has left it."""
        return cls(row, history.past, history.last_attempt, history.retry_at or 0.0)

    def next(self) -> Next:
        """The attempt to be made now."""
        return replace(following(self.row.request, self.past), number=self.last_attempt + 1)

    def after(self, tried: Tried, due: float, cut: Cut | None) -> Self:
        """The same after this attempt, which was cut or not."""
        put_backs = self.put_backs + (cut == "memory")
        return replace(self, past=(*self.past, tried), last_attempt=tried.attempt.number, due=due, put_backs=put_backs)


@dataclass(frozen=True, slots=True)
class Final:
    """The row has its result, and gets no further attempt."""

    result: SessionResult


@dataclass(frozen=True, slots=True)
class Again:
    """The row is tried again, in `delay` seconds; an attempt that `is_counted` cost it one of its retries."""

    delay: float = 0.0
    is_counted: bool = True


def plan(
    digest: str | None, history: ItemHistory | None, *, retry_failed: bool = False, rerun_changed: bool = False
) -> Plan:
    """What to do with a row of this digest that has this history."""
    if history is None or history.is_reopened:
        return "new"
    was_changed = is_another(digest, history.digest)
    if history.category == Category.BAD_REQUEST and (was_changed or not history.last_attempt):
        return "again"  # the line was no request, and has been mended
    if was_changed:
        return "changed" if rerun_changed else "refused"
    if history.is_finished:
        return "again" if retry_failed and history.status == "error" else "finished"
    return "goes on" if history.last_attempt else "new"


def is_another(digest: str | None, former: str | None) -> bool:
    """Whether the content is another; digests that were made in different ways do not tell."""
    if digest is None or former is None:
        return digest != former
    version = f"{DIGEST_VERSION}:"
    return digest != former and digest.startswith(version) and former.startswith(version)


def is_spent(item: Item, policy: RetryPolicy, *, now: float) -> bool:
    """Whether the last attempt was the last that the row is allowed, so that its result is the row's."""
    was_counted = bool(item.past) and item.past[-1].is_counted
    return was_counted and next_attempt(item.row.request, item.past, policy, now=now, chance=0.0) is None


def verdict(
    item: Item, tried: Tried, result: SessionResult, cut: Cut | None, policy: RetryPolicy, *, now: float, chance: float
) -> Final | Again:
    """What becomes of the row after this attempt, which is not yet among its `past`."""
    error = result.error
    if error is not None and cut is not None and error.category is Category.CANCELLED:
        if cut == "memory" and item.put_backs >= MOST_PUT_BACKS:
            return _final(item, tried, result.as_error(_out_of_memory(error)))
        return Again(is_counted=False)
    if is_the_accounts(error, item.row.request) or is_the_machines(error):
        return Again(is_counted=False)
    follows = next_attempt(item.row.request, [*item.past, tried], policy, now=now, chance=chance)
    return _final(item, tried, result) if follows is None else Again(follows.delay, tried.is_counted)


def _final(item: Item, last: Tried, result: SessionResult) -> Final:
    attempt = last.attempt.model_copy(update={"error": result.error})
    return Final(combined(result, [*(one.attempt for one in item.past), attempt]))


def _out_of_memory(error: SessionError) -> SessionError:
    return session_error(
        Category.MEMORY_LIMIT,
        f"the session was ended {MOST_PUT_BACKS + 1} times because the machine ran out of memory",
        hint="run fewer sessions at a time (-j), or give the row the limit max_memory_mb",
        partial_response=error.partial_response,
    )
