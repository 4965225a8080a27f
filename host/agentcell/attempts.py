"""From the attempts at a request to the next one, and to the result of all of them. Pure.

what ended the last one                      →  the next one
nothing, or what would only happen again        none
a resumed one did not find its conversation     fresh, at once; that one did not count
anything else, a tool had run                   resumed, when there is a conversation to go on with
anything else, no tool had run                  fresh
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

from agentcell.attempt import as_attempt
from agentcell.retry import RetryPolicy, delay_before_next
from agentcell_protocol.errors import Category, SessionError
from agentcell_protocol.request import SessionRequest
from agentcell_protocol.result import COST_DIGITS, Attempt, SessionResult, Usage

Mode = Literal["fresh", "resumed"]
"""Whether an attempt begins as the request says, or goes on with the conversation of the one before."""

FLOW_TYPES = frozenset({"documentation_generator", "fixture_generator", "migration_assistant", "test_generator"})
"""Agent types that write their messages themselves, and so cannot be told to go on."""

SHOWN = 500
"""Characters of the former error that the model is told."""

RECOVERY = """\
This session was interrupted, and this is attempt {number} at its task. Attempt {former} ended before the task was done:

> {reason}

What was done until then is still there, in this conversation and in the files. The last command may have been cut off
half-way, and what it had started has been ended. See what is there, then go on from it: do not begin the task anew,
and do not do again what is done. This is the task as it was given:

{task}"""


@dataclass(frozen=True, slots=True)
class Tried:
    """An attempt that has ended, with what decides on the next one.

    `tool_calls` are those of this attempt, `has_transcript` says that its conversation is kept. One that `is_counted`
    is one of the attempts that the policy allows.
    """

    attempt: Attempt
    tool_calls: int = 0
    has_transcript: bool = False
    is_counted: bool = True

    @classmethod
    def of(cls, result: SessionResult, number: int, mode: Mode, *, is_counted: bool = True) -> Self:
        """The attempt with this number that had this result."""
        attempt = as_attempt(result, number).model_copy(update={"mode": mode})
        has_transcript = result.transcript is not None
        return cls(attempt, result.tool_calls, has_transcript, is_counted and not has_lost_its_way(attempt))


@dataclass(frozen=True, slots=True)
class Next:
    """An attempt to be made, in `delay` seconds; a fresh one that is not the first has an id yet to be chosen."""

    number: int
    mode: Mode
    request: SessionRequest
    delay: float = 0.0


def next_attempt(
    request: SessionRequest, past: Sequence[Tried], policy: RetryPolicy, *, now: float, chance: float
) -> Next | None:
    """The attempt that follows the `past` ones at the request, or None when there is to be none.

    `now` is in Unix seconds, `chance` from 0 to 1.
    """
    if not past or has_lost_its_way(past[-1].attempt):
        return following(request, past)
    counted = sum(one.is_counted for one in past)
    delay = delay_before_next(past[-1].attempt.error, counted, policy, now=now, chance=chance)
    return None if delay is None else following(request, past, delay)


def following(request: SessionRequest, past: Sequence[Tried], delay: float = 0.0) -> Next:
    """The attempt that follows the `past` ones if there is to be one, whatever ended them."""
    number = past[-1].attempt.number + 1 if past else 1
    if not past:
        return Next(number, "fresh", request, delay)
    if can_go_on(request, past):
        return Next(number, "resumed", resumed(request, past[-1].attempt), delay)
    return Next(number, "fresh", request.model_copy(update={"session_id": None}), delay)


def can_go_on(request: SessionRequest, past: Sequence[Tried]) -> bool:
    """Whether there is something to go on with: a conversation in which a tool has run."""
    last = past[-1].attempt
    if request.starting_message is None or request.agent_type in FLOW_TYPES or has_lost_its_way(last):
        return False
    same = [one for one in past if last.session_id is not None and one.attempt.session_id == last.session_id]
    return any(one.tool_calls for one in same) and any(one.has_transcript for one in same)


def has_lost_its_way(attempt: Attempt) -> bool:
    """Whether it was to go on with a conversation that turned out to be no use."""
    is_unknown = attempt.error is not None and attempt.error.category is Category.UNKNOWN_SESSION
    return is_unknown and attempt.mode == "resumed"


def resumed(request: SessionRequest, former: Attempt) -> SessionRequest:
    """The request that goes on with the conversation of the `former` attempt.

    It has all members of the first one, the role prompt too: after a long conversation was cut short it may be gone.
    """
    message = RECOVERY.format(
        number=former.number + 1, former=former.number, reason=_reason(former.error), task=request.starting_message
    )
    return request.model_copy(update={"session_id": None, "resume": former.session_id, "starting_message": message})


def combined(result: SessionResult, attempts: Sequence[Attempt]) -> SessionResult:
    """The result of the last attempt, with what all of them used and cost; unknown when one's cost is."""
    usage = sum((one.usage for one in attempts), start=Usage())
    known = [one.cost_usd for one in attempts if one.cost_usd is not None]
    cost = round(sum(known), COST_DIGITS) if len(known) == len(attempts) else None
    return result.model_copy(update={"attempts": list(attempts), "usage": usage, "cost_usd": cost})


def _reason(error: SessionError | None) -> str:
    """Why the former attempt ended, on one line."""
    text = " ".join((error.message if error else "it was cut off").split())
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
