"""One test for each row of the table that makes a cell's end its result."""

from collections.abc import Mapping
from typing import Any

import pytest

from agentcell.attempt import Ending, as_attempt, decide, not_started, spawn_failed
from agentcell.causes import Cause, Limited, Lingered, Stopped
from agentcell.record import Record
from agentcell.spawn import UNSEEN, Status
from agentcell.stop import HOST_LOST
from agentcell_protocol.codec import encode
from agentcell_protocol.errors import Category, SessionError, session_error
from agentcell_protocol.request import SessionRequest
from agentcell_protocol.result import Attempt, Notice, SessionResult, Usage, failed

REQUEST = SessionRequest(session_name="a", agent_type="coder", project_dir="/p", starting_message="hi")
WALL = Limited("wall", 30.0)
SUCCESS = SessionResult(
    status="complete", response="done", session_name="a", id="a", agent_type="coder", session_id="s", num_turns=2
)
CANCELLED = SUCCESS.as_error(
    session_error(Category.CANCELLED, "the session was cancelled by SIGTERM", partial_response="half", signal="SIGTERM")
)
REFUSED = SUCCESS.as_error(session_error(Category.AUTHENTICATION, "no key", http_status=401))
STARTED = {"type": "session_started", "session_id": "s", "model": "m"}
TEXT = {"type": "text", "text": "half"}
USAGE = {"type": "usage", "input_tokens": 3, "output_tokens": 5}


def heard(*messages: Mapping[str, object] | bytes) -> Record:
    record = Record("a", "a")
    for message in messages:
        record.hear(message if isinstance(message, bytes) else encode(message))
    return record


def answered(result: SessionResult) -> Record:
    return heard(result.to_message(hosted=False))


def foretold(result: SessionResult) -> Record:
    return heard({"type": "outcome", "result": result.to_message(hosted=False)})


def hosted(result: SessionResult, **members: Any) -> SessionResult:
    """The result with what a host adds."""
    whole = result.model_copy(update={"start": "cold", **members})
    return whole.model_copy(update={"attempts": [as_attempt(whole, 1)]})


def died(error: SessionError, *, record: Record, **members: Any) -> SessionResult:
    known: dict[str, Any] = {"session_id": record.session_id, "model": record.model, "usage": record.usage}
    return hosted(failed(error, session_name="a", id="a", agent_type="coder", **known), **members)


def end(record: Record, status: Status | None, cause: Cause | None = None) -> SessionResult:
    return decide(REQUEST, Ending(record, status, cause))


def test_a_result_is_believed() -> None:
    assert end(answered(SUCCESS), 0) == hosted(SUCCESS, exit_code=0)


def test_an_error_result_with_its_exit_code_is_believed() -> None:
    assert end(answered(REFUSED), 1) == hosted(REFUSED, exit_code=1)


@pytest.mark.parametrize(
    ("status", "members", "how"),
    [
        (3, {"exit_code": 3}, "exited with 3"),
        (-11, {"signal": "SIGSEGV"}, "was killed by SIGSEGV"),
    ],
)
def test_a_result_wins_over_an_odd_exit_which_is_named(status: int, members: dict[str, Any], how: str) -> None:
    warning = Notice(code="odd_exit", message=f"the worker gave its result and then {how}")
    assert end(answered(SUCCESS), status) == hosted(SUCCESS, warnings=[warning], **members)


def test_a_session_that_a_limit_cancelled_is_a_timeout_with_everything_else_kept() -> None:
    error = session_error(
        Category.TIMEOUT,
        "the session had not ended after 30 s (max_execution_seconds)",
        hint="give it more time with max_execution_seconds",
        partial_response="half",
        signal="SIGTERM",
        limit="wall",
    )
    expected = hosted(CANCELLED.as_error(error), exit_code=143, violated_limits=["max_execution_seconds"])
    assert end(answered(CANCELLED), 143, WALL) == expected


@pytest.mark.parametrize("record", [answered(SUCCESS), foretold(SUCCESS)])
def test_a_success_that_a_limit_met_in_its_clean_up_is_kept(record: Record) -> None:
    text = "max_execution_seconds (30 s) was reached when the session had ended, during clean-up"
    warning = Notice(code="limit_in_cleanup", message=text)
    expected = hosted(SUCCESS, exit_code=0, warnings=[warning], violated_limits=["max_execution_seconds"])
    assert end(record, 0, WALL) == expected


def test_an_outcome_that_a_limit_cancelled_is_a_timeout() -> None:
    result = end(foretold(CANCELLED), -9, WALL)
    assert result.error is not None
    assert (result.error.category, result.error.partial_response) == (Category.TIMEOUT, "half")


def test_a_stop_gives_a_cancelled_result_its_own_signal() -> None:
    error = session_error(
        Category.CANCELLED, "the session was cancelled by SIGINT", partial_response="half", signal="SIGINT"
    )
    assert end(answered(CANCELLED), 143, Stopped("SIGINT")) == hosted(CANCELLED.as_error(error), exit_code=143)


def test_a_stop_because_the_host_is_lost_says_so() -> None:
    error = session_error(
        Category.HOST_LOST,
        "the program that started the session is gone",
        hint="with lifeline, stdin must stay open for as long as the session runs; leave lifeline out where it cannot",
        partial_response="half",
        signal="SIGTERM",
    )
    assert end(answered(CANCELLED), 143, Stopped(HOST_LOST)) == hosted(CANCELLED.as_error(error), exit_code=143)


def test_a_success_that_a_stop_came_too_late_for_is_kept() -> None:
    assert end(answered(SUCCESS), 0, Stopped("SIGTERM")) == hosted(SUCCESS, exit_code=0)


def test_a_worker_that_lingers_after_its_result_is_named() -> None:
    warning = Notice(code="worker_lingered", message="the worker still ran 5 s after its result and was ended")
    expected = hosted(SUCCESS, signal="SIGTERM", warnings=[warning])
    assert end(answered(SUCCESS), -15, Lingered("result", 5.0)) == expected


def test_an_outcome_stands_in_for_the_result_of_a_worker_that_died() -> None:
    warning = Notice(code="odd_exit", message="the worker was killed by SIGKILL during clean-up")
    assert end(foretold(SUCCESS), -9) == hosted(SUCCESS, signal="SIGKILL", warnings=[warning])


def test_an_outcome_stands_in_for_the_result_of_a_worker_that_lingered() -> None:
    warning = Notice(code="worker_lingered", message="the worker still ran 40 s after its outcome and was ended")
    expected = hosted(SUCCESS, signal="SIGKILL", warnings=[warning])
    assert end(foretold(SUCCESS), -9, Lingered("outcome", 40.0)) == expected


def test_a_limit_without_a_word_from_the_worker_is_a_timeout_with_what_was_heard() -> None:
    record = heard(STARTED, TEXT, USAGE)
    error = session_error(
        Category.TIMEOUT,
        "the session had not ended after 30 s (max_execution_seconds)",
        hint="give it more time with max_execution_seconds",
        partial_response="half",
        signal="SIGKILL",
        last_event="usage",
        killed_by_host=True,
        limit="wall",
    )
    expected = died(error, record=record, signal="SIGKILL", violated_limits=["max_execution_seconds"])
    assert end(record, -9, WALL) == expected
    assert (expected.session_id, expected.model, expected.usage) == ("s", "m", Usage(input_tokens=3, output_tokens=5))


def test_a_session_that_never_started_may_be_tried_again() -> None:
    text = "the session had not started after 120 s (startup_seconds)"
    error = session_error(Category.TIMEOUT, text, signal="SIGTERM", killed_by_host=True, limit="startup")
    expected = died(error, record=heard(), signal="SIGTERM", violated_limits=["startup_seconds"])
    assert end(heard(), -15, Limited("startup", 120.0)) == expected
    assert error.retryable


def test_a_stop_without_a_word_from_the_worker_is_cancelled() -> None:
    text = "the session was cancelled by SIGHUP"
    error = session_error(Category.CANCELLED, text, last_event=None, signal="SIGHUP")
    error = error.model_copy(update={"details": {"signal": "SIGHUP", "killed_by_host": True}})
    assert end(heard(), -15, Stopped("SIGHUP")) == died(error, record=heard(), signal="SIGTERM")


def test_a_killed_worker_has_crashed_and_the_signal_is_named() -> None:
    record = heard(STARTED, TEXT)
    error = session_error(
        Category.CRASHED,
        "the worker was killed by SIGKILL without a result; its last event was text",
        hint="the kernel may have ended it for lack of memory",
        partial_response="half",
        signal="SIGKILL",
        last_event="text",
        killed_by_host=False,
    )
    assert end(record, -9) == died(error, record=record, signal="SIGKILL")


def test_a_worker_whose_end_nobody_saw_has_crashed() -> None:
    record = heard(STARTED, TEXT)
    error = session_error(
        Category.CRASHED,
        "the worker ended, and nobody was told how, without a result; its last event was text",
        partial_response="half",
        last_event="text",
        killed_by_host=False,
    )
    assert end(record, UNSEEN) == died(error, record=record)


def test_a_worker_that_exits_without_a_result_has_crashed() -> None:
    error = session_error(
        Category.CRASHED, "the worker exited with 0 without a result", exit_code=0, killed_by_host=False
    )
    assert end(heard(), 0) == died(error, record=heard(), exit_code=0)


def test_a_worker_that_dies_in_the_middle_of_a_line_has_crashed() -> None:
    record = heard()
    record.hear_rest(b'{"type": "resu')
    error = session_error(
        Category.CRASHED,
        "the worker was killed by SIGSEGV in the middle of a line",
        signal="SIGSEGV",
        killed_by_host=False,
    )
    assert end(record, -11) == died(error, record=record, signal="SIGSEGV")


def test_a_worker_whose_lines_are_no_messages_breaks_the_protocol() -> None:
    record = heard(b"Hello!", b"[1]")
    result = end(record, 0)
    assert result.error is not None
    assert result.error.category is Category.PROTOCOL
    assert result.error.message.startswith("the worker gave no result that can be read: the line is not valid JSON")
    assert [notice.code for notice in result.warnings] == ["protocol"]
    assert result.warnings[0].message.startswith("2 lines on the worker's stdout could not be used: ")


def test_a_worker_that_speaks_nonsense_and_is_killed_has_crashed() -> None:
    result = end(heard(b"Hello!"), -6)
    assert result.error is not None
    assert (result.error.category, result.error.details) == (
        Category.CRASHED,
        {"signal": "SIGABRT", "killed_by_host": False},
    )


def test_a_worker_that_cannot_be_ended_is_named() -> None:
    result = end(heard(), None, WALL)
    text = "the worker could not be ended; it may still run"
    assert (result.warnings, result.signal, result.exit_code) == ([Notice(code="not_gone", message=text)], None, None)


def test_what_is_quoted_of_a_line_is_masked() -> None:
    ending = Ending(heard(b"my key is hush-hush"), 0, mask=lambda text: text.replace("hush-hush", "***"))
    assert "hush" not in encode(decide(REQUEST, ending).to_message()).decode()


def test_warnings_of_a_worker_that_died_are_kept() -> None:
    record = heard({"type": "warning", "code": "c", "message": "m"})
    assert end(record, -9).warnings == [Notice(code="c", message="m")]


def test_a_result_that_does_not_know_its_session_is_told() -> None:
    record = heard(STARTED, SUCCESS.model_copy(update={"session_id": None}).to_message(hosted=False))
    assert end(record, 0) == hosted(SUCCESS, model="m", exit_code=0)


def test_strays_that_the_host_ended_are_added_to_those_of_the_worker() -> None:
    record = answered(SUCCESS.model_copy(update={"swept_processes": 2}))
    assert decide(REQUEST, Ending(record, 0, swept=3)).swept_processes == 5


def test_a_worker_that_cannot_be_started_is_a_result() -> None:
    problem = FileNotFoundError(2, "No such file or directory", "/no/python")
    error = session_error(
        Category.SPAWN_FAILED,
        "the worker could not be started: No such file or directory (/no/python)",
        hint="check that the interpreter exists, and the limits on processes, memory and open files",
        errno=2,
    )
    expected = failed(error, session_name="a", id="a", agent_type="coder", cost_usd=0.0)
    attempt = Attempt(number=1, status="error", error=error, cost_usd=0.0)
    assert spawn_failed(REQUEST, problem) == expected.model_copy(update={"attempts": [attempt]})
    assert error.retryable


def test_a_session_that_never_ran_has_one_attempt_that_cost_nothing() -> None:
    error = session_error(Category.CANCELLED, "the session was cancelled by SIGINT", signal="SIGINT")
    assert not_started(REQUEST, error).attempts == [Attempt(number=1, status="error", error=error, cost_usd=0.0)]
