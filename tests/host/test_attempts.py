"""The next attempt goes on where the former one was cut off, if there is anything to go on with."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcell.attempts import FLOW_TYPES, Mode, Next, Tried, combined, following, next_attempt, resumed
from agentcell.retry import RetryPolicy
from agentcell_protocol.errors import Category, SessionError, session_error
from agentcell_protocol.request import SessionRequest
from agentcell_protocol.result import Attempt, SessionResult, Usage, failed
from agentcell_worker.agents.registry import AGENT_CONFIGS

POLICY = RetryPolicy(max_attempts=3)
FIRST, SECOND = "5f0c1d0e-0000-4000-8000-000000000001", "5f0c1d0e-0000-4000-8000-000000000002"

REQUEST = SessionRequest(
    session_name="a", agent_type="coder", project_dir="/p", starting_message="Add {braces}.", system_prompt="Be brief."
)
GIVEN = REQUEST.model_copy(update={"session_id": FIRST})

CRASHED = session_error(Category.CRASHED, "the worker was killed by SIGKILL", signal="SIGKILL")
IDLE = session_error(Category.TIMEOUT, "nothing was heard", limit="idle")
LOST = session_error(Category.HOST_LOST, "the program that started the session is gone")
CLI_DIED = session_error(Category.CLI_FAILED, "the CLI died")
BUSY = session_error(Category.OVERLOADED, "no room")
UNKNOWN = session_error(Category.UNKNOWN_SESSION, "the session to resume is not known here")


def tried(
    error: SessionError | None = CRASHED,
    number: int = 1,
    mode: Mode = "fresh",
    *,
    session_id: str | None = FIRST,
    tool_calls: int = 1,
    transcript: str | None = "/kept.jsonl",
) -> Tried:
    known: dict[str, Any] = {"session_name": "a", "session_id": session_id, "tool_calls": tool_calls}
    known |= {"transcript": transcript}
    done = SessionResult(status="complete", response="done", **known)
    return Tried.of(done if error is None else failed(error, **known), number, mode)


def upcoming(*past: Tried, request: SessionRequest = GIVEN, policy: RetryPolicy = POLICY) -> Next | None:
    return next_attempt(request, past, policy, now=0.0, chance=1.0)


def modes(*past: Tried, request: SessionRequest = GIVEN) -> tuple[str, str | None] | None:
    """How the next attempt begins, and with which conversation."""
    attempt = upcoming(*past, request=request)
    return None if attempt is None else (attempt.mode, attempt.request.resume)


def test_the_first_attempt_is_the_request_itself() -> None:
    assert upcoming() == Next(1, "fresh", GIVEN)


@pytest.mark.parametrize("error", [None, session_error(Category.MEMORY_LIMIT, "too much"), UNKNOWN])
def test_after_what_would_only_happen_again_there_is_none(error: SessionError | None) -> None:
    assert upcoming(tried(error)) is None


@pytest.mark.parametrize("error", [CRASHED, IDLE, LOST, CLI_DIED, BUSY], ids=lambda error: str(error.category))
def test_what_was_cut_off_after_a_tool_is_resumed(error: SessionError) -> None:
    past = tried(error)
    assert upcoming(past) == Next(2, "resumed", resumed(GIVEN, past.attempt), delay=1.0)


@pytest.mark.parametrize("past", [tried(tool_calls=0), tried(transcript=None), tried(session_id=None)])
def test_what_has_nothing_to_go_on_with_begins_anew_and_gets_another_id(past: Tried) -> None:
    assert upcoming(past) == Next(2, "fresh", REQUEST, delay=1.0)


def test_a_flow_always_begins_anew() -> None:
    without_message = GIVEN.model_copy(update={"starting_message": None})
    generator = GIVEN.model_copy(update={"agent_type": "test_generator"})
    assert modes(tried(), request=without_message) == modes(tried(), request=generator) == ("fresh", None)


def test_the_agent_types_that_need_no_message_are_the_flows() -> None:
    assert {name for name, agent in AGENT_CONFIGS.items() if not agent.needs_message} == FLOW_TYPES


def test_a_resumed_session_has_the_role_the_task_and_the_error_again() -> None:
    request = resumed(GIVEN, tried().attempt)
    message = request.starting_message or ""
    assert request == REQUEST.model_copy(update={"resume": FIRST, "starting_message": message})
    assert message.startswith("This session was interrupted, and this is attempt 2 at its task. Attempt 1 ended")
    assert "\n> the worker was killed by SIGKILL\n" in message
    assert message.endswith("This is the task as it was given:\n\nAdd {braces}.")


def test_a_long_error_of_many_lines_is_told_on_one() -> None:
    attempt = tried(session_error(Category.CRASHED, "one\n\ntwo " + 1000 * "x")).attempt
    lines = (resumed(GIVEN, attempt).starting_message or "").splitlines()
    assert [(line[:12], len(line)) for line in lines if line.startswith(">")] == [("> one two xx", 502)]


def test_a_third_attempt_names_the_second_and_has_the_task_once() -> None:
    last = upcoming(tried(), tried(IDLE, 2, "resumed", tool_calls=0, transcript=None))
    assert last is not None
    message = last.request.starting_message or ""
    assert (last.number, last.mode, last.request.resume, last.delay) == (3, "resumed", FIRST, 2.0)
    assert ("attempt 3" in message, "> nothing was heard" in message, message.count("Add {braces}.")) == (True, True, 1)


def test_what_does_not_find_its_conversation_begins_anew_at_once_and_did_not_count() -> None:
    lost = tried(UNKNOWN, 2, "resumed", tool_calls=0, transcript=None)
    assert not lost.is_counted
    assert upcoming(tried(), lost) == Next(3, "fresh", REQUEST)
    begun = tried(CRASHED, 3, session_id=SECOND)
    assert modes(tried(), lost, begun) == ("resumed", SECOND)
    assert upcoming(tried(), lost, begun, tried(CRASHED, 4, "resumed", session_id=SECOND)) is None


def test_a_request_that_goes_on_with_a_conversation_never_loses_it() -> None:
    own = REQUEST.model_copy(update={"resume": FIRST})
    assert upcoming(tried(tool_calls=0), request=own) == Next(2, "fresh", own, delay=1.0)
    assert modes(tried(), request=own) == ("resumed", FIRST)
    assert modes(tried(UNKNOWN), request=own) is None


def test_attempts_that_do_not_count_leave_others_their_turn() -> None:
    result = failed(BUSY, session_name="a", session_id=FIRST)
    free = [Tried.of(result, number, "fresh", is_counted=False) for number in range(1, 6)]
    assert upcoming(*free) == Next(6, "fresh", REQUEST, delay=1.0)


def test_what_was_cut_off_on_purpose_can_go_on_all_the_same() -> None:
    cut = tried(session_error(Category.CANCELLED, "the session was cancelled by SIGTERM", signal="SIGTERM"))
    assert upcoming(cut) is None
    assert following(GIVEN, [cut]) == Next(2, "resumed", resumed(GIVEN, cut.attempt))
    assert following(GIVEN, []) == Next(1, "fresh", GIVEN)


ERRORS = st.sampled_from([CRASHED, IDLE, LOST, CLI_DIED, BUSY, UNKNOWN])


@given(errors=st.lists(ERRORS, min_size=20, max_size=20), tools=st.lists(st.integers(0, 2), min_size=20, max_size=20))
def test_whatever_happens_attempts_come_to_an_end(errors: list[SessionError], tools: list[int]) -> None:
    past: list[Tried] = []
    for error, tool_calls in zip(errors, tools, strict=True):
        if (attempt := upcoming(*past)) is None:
            break
        session_id = attempt.request.resume or f"session-{attempt.number}"
        past.append(tried(error, attempt.number, attempt.mode, session_id=session_id, tool_calls=tool_calls))
    assert upcoming(*past) is None
    assert sum(one.is_counted for one in past) <= POLICY.max_attempts
    assert not any(not one.is_counted and not other.is_counted for one, other in pairwise(past))
    assert [one.attempt.number for one in past] == list(range(1, len(past) + 1))


TOKENS = Usage(input_tokens=2, output_tokens=1)


def entry(number: int, cost_usd: float | None) -> Attempt:
    return Attempt(number=number, status="continue", usage=TOKENS, cost_usd=cost_usd)


@pytest.mark.parametrize(
    ("costs", "cost"), [([0.1, 0.2], 0.3), ([0.0, 0.0], 0.0), ([None, 0.2], None), ([0.2, None], None), ([None], None)]
)
def test_what_all_attempts_used_is_summed_up_and_an_unknown_cost_stays_unknown(
    costs: list[float | None], cost: float | None
) -> None:
    result = SessionResult(status="continue", response="done", session_name="a", usage=TOKENS, cost_usd=costs[-1])
    attempts = [entry(number, cost_usd) for number, cost_usd in enumerate(costs, 1)]
    usage = Usage(input_tokens=2 * len(costs), output_tokens=len(costs))
    assert combined(result, attempts) == result.model_copy(
        update={"attempts": attempts, "usage": usage, "cost_usd": cost}
    )
