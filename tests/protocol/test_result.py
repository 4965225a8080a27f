"""A result tells how a session ended, and its parts agree."""

from typing import Any

import pytest
from pydantic import ValidationError

from agentcell_protocol.errors import Category, RequestError, session_error
from agentcell_protocol.result import HOST_MEMBERS, Attempt, Notice, SessionResult, Usage, failed, refused

DONE = SessionResult(status="complete", response="Done.", session_name="a", num_turns=2)
GONE = session_error(Category.CRASHED, "the worker was killed by SIGKILL", signal="SIGKILL")


def test_usage_adds_up() -> None:
    first = Usage(input_tokens=1, output_tokens=2, cache_creation_input_tokens=3, cache_read_input_tokens=4)
    second = Usage(input_tokens=10, output_tokens=20)
    assert first + second == Usage(
        input_tokens=11, output_tokens=22, cache_creation_input_tokens=3, cache_read_input_tokens=4
    )


def test_a_failed_result_says_what_its_error_says() -> None:
    assert failed(GONE, session_name="a", num_turns=1) == SessionResult(
        status="error", response="the worker was killed by SIGKILL", error=GONE, session_name="a", num_turns=1
    )


def test_a_failed_result_needs_no_name() -> None:
    assert failed(GONE).session_name is None


def test_a_success_that_ends_badly_keeps_its_text_in_the_error() -> None:
    error = GONE.model_copy(update={"partial_response": "Done."})
    assert DONE.as_error(GONE) == failed(error, session_name="a", num_turns=2)


def test_an_error_that_ends_differently_does_not_become_its_own_partial_response() -> None:
    cancelled = session_error(Category.CANCELLED, "cancelled by SIGTERM", signal="SIGTERM")
    assert failed(GONE, session_name="a").as_error(cancelled) == failed(cancelled, session_name="a")


def test_a_bare_cell_leaves_out_what_only_a_host_knows() -> None:
    hosted = DONE.to_message()
    assert list(hosted)[-len(HOST_MEMBERS) :] == list(HOST_MEMBERS)
    assert DONE.to_message(hosted=False) == {key: hosted[key] for key in hosted if key not in HOST_MEMBERS}


@pytest.mark.parametrize(
    "members",
    [
        {"status": "error"},
        {"status": "complete", "error": GONE},
        {"status": "continue", "error": GONE},
        {"status": "done"},
        {"status": "complete", "response": None},
        {"status": "complete", "num_turns": "2"},
        {"status": "error", "error": {"category": "bad_luck", "message": "x"}},
        {},
    ],
)
def test_a_result_that_contradicts_itself_is_none(members: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SessionResult.model_validate({"response": "", "session_name": "a", **members})


def test_members_that_a_later_version_may_add_are_ignored() -> None:
    message = {**DONE.to_message(), "mood": "good", "usage": {"input_tokens": 0, "audio_tokens": 3}}
    assert SessionResult.model_validate(message) == DONE


def test_a_result_with_attempts_is_read_as_it_was_written() -> None:
    attempt = Attempt(number=1, mode="resumed", status="error", error=GONE, signal="SIGKILL")
    result = failed(GONE, session_name="a", attempts=[attempt])
    assert SessionResult.model_validate(result.to_message()) == result


def test_a_refused_request_is_told_apart_by_what_it_said_of_itself() -> None:
    mistake = RequestError("max_turns", "0 is not allowed here", "give 1 or more")
    result = refused(mistake, {"session_name": "a", "id": 7, "max_turns": 0})
    assert result == failed(mistake.as_session_error(), session_name="a", cost_usd=0.0)


def test_what_is_said_about_a_session_can_be_masked_but_not_what_it_said() -> None:
    def mask(text: str) -> str:
        return text.replace("secret", "*")

    error = session_error(
        Category.CLI_FAILED, "secret 1", hint="secret 2", partial_response="secret 3", lines=["secret 4", 5], code=6
    )
    notice = Notice(code="odd", message="secret 7")
    attempt = Attempt(number=1, status="error", error=error)
    result = failed(error, warnings=[notice], attempts=[attempt], flow="secret 8").masked(mask)
    hidden = session_error(
        Category.CLI_FAILED, "* 1", hint="* 2", partial_response="secret 3", lines=["* 4", 5], code=6
    )
    assert result == failed(
        hidden,
        warnings=[Notice(code="odd", message="* 7")],
        attempts=[Attempt(number=1, status="error", error=hidden)],
        flow="secret 8",
    )
    assert DONE.masked(mask) == DONE
