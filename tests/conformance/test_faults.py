"""What does not follow its schema is told in the words of the wire."""

import json
from typing import Any

import pytest

from agentcell.conformance.check import Check, judged, told
from agentcell.conformance.host_checks import HOST_CHECKS
from agentcell.conformance.program import Line
from agentcell.conformance.stage import Seen
from agentcell.conformance.worker_checks import WORKER_CHECKS

RESULT = {"type": "result", "status": "complete", "response": "hi", "session_name": "a"}


def found(number: str, message: dict[str, Any]) -> tuple[str, str]:
    """What a check expected of a program that writes this message, and what came."""
    check: Check = next(one for one in (*WORKER_CHECKS, *HOST_CHECKS) if one.number == number)
    seen = Seen("a scene", (Line(json.dumps(message).encode() + b"\n", message),), 0, 0.1, (), (), {})
    finding = judged(check, [seen] * len(check.scenes))
    assert finding.grade == "failed"
    return finding.expected, finding.came.removesuffix(" in a scene")


ERROR_WITH_STATUS = "an error exactly when the status is error"


@pytest.mark.parametrize(
    ("members", "expected", "came"),
    [
        ({"usage": []}, "usage: an object", "an array"),
        ({"usage": {"input_tokens": "1"}}, "usage.input_tokens: a whole number", '"1"'),
        ({"cost_usd": True}, "cost_usd: a number", "true"),
        ({"response": None}, "response: a string", "null"),
        ({"warnings": [7]}, "warnings.0: an object", "7"),
        ({"status": "done"}, "status: 'complete', 'continue' or 'error'", '"done"'),
        ({"status": "error"}, ERROR_WITH_STATUS, 'status "error", error null'),
        (
            {"error": {"category": "internal", "message": "x"}},
            ERROR_WITH_STATUS,
            'status "complete", error an object',
        ),
        ({"status": "error", "error": {"category": "internal"}}, "error.message: to be there", "no such member"),
    ],
)
def test_what_is_wrong_with_a_result(members: dict[str, Any], expected: str, came: str) -> None:
    assert found("W07", {**RESULT, **members}) == (expected, f"{came}, for the result")


def test_what_is_wrong_with_an_event() -> None:
    assert found("W15", {"type": "text", "text": 1}) == ("text: a string", "1, for `text`")
    hello = {"type": "hello", "protocol": 1, "pid": 7, "agentcell": "mine", "sdk": None, "cli": None, "start": "cold"}
    assert found("W15", hello) == ("sdk: a string", "null, for `hello`")
    assert found("W15", {"type": "text"}) == ("text: to be there", "no such member, for `text`")


def test_of_the_events_that_are_due_only_those_that_are_missing_are_named() -> None:
    due = [Line(b"", {"type": kind}) for kind in ("hello", "session_started", "text")]
    check = next(one for one in WORKER_CHECKS if one.number == "W14")
    finding = judged(check, [Seen("a scene", tuple(due), 0, 0.1, (), (), {})] * len(check.scenes))
    assert (finding.expected, finding.came) == ("also outcome", "hello, session_started, text in a scene")


def test_what_is_wrong_with_a_line_of_a_host() -> None:
    assert found("H05", {"type": "thinned", "id": "r1", "dropped": 0}) == ("dropped: 1 or more", "0, for `thinned`")
    assert found("H05", {"type": "warning", "code": 1}) == ("code: a string", "1, for `warning`")


def test_values_are_told_as_json() -> None:
    assert [told(value) for value in (None, True, "ü", {"a": [1.5]}, {"b", "a"})] == [
        "null",
        "true",
        '"ü"',
        '{"a": [1.5]}',
        '["a", "b"]',
    ]


def test_a_judge_that_stumbles_does_not_speak_of_itself() -> None:
    assert found("W45", {**RESULT, "type": ["result"], "tool_calls": 1})[0].startswith("tool_calls 0")
    message = {**RESULT, "status": "error", "error": {"category": "timeout", "message": "x", "details": 7}}
    assert found("W46", message) == (
        "messages that follow their schema",
        "one that lacks a member, or has a value of another kind",
    )
