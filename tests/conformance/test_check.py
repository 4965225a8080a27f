"""Whatever a program says, it is judged: a check never breaks off at it."""

import json
from collections import Counter
from typing import Any

import pytest

from agentcell.conformance.check import judged
from agentcell.conformance.host_checks import HOST_CHECKS
from agentcell.conformance.program import Line
from agentcell.conformance.stage import Seen
from agentcell.conformance.worker_checks import WORKER_CHECKS

NAMES = (
    *(
        "id",
        "status",
        "response",
        "session_name",
        "capabilities",
        "protocol",
        "max_sessions",
        "tool_use_id",
        "cost_usd",
    ),
    *("violated_limits", "text", "code", "is_error", "agent_type", "tool_calls", "pid"),
)
TYPES = ("hello", "text", "text_delta", "tool_use", "tool_result", "refused", "warning", "thinned", "result")

TOLD = ("hello", "again", "unknown", "cancelled", "queued", "anew", "late", "unfinished", "ended")
TRUE = dict.fromkeys(("is_filled", "is_killed", "went on"), True)


def seen(value: Any) -> Seen:
    """A program that has this value in all members of all its messages."""
    messages = [{"type": kind, **dict.fromkeys(NAMES, value), "error": error(value)} for kind in (*TYPES, value)]
    told = {name: {**messages[0], "type": "hello"} for name in TOLD}
    more = {"due": Counter(r1=1, r2=1), "max_sessions": 2, "refused": {"no JSON": messages[5]}, "stderr": "", **TRUE}
    lines = tuple(Line(json.dumps(message).encode() + b"\n", message) for message in messages)
    return Seen("odd", lines, 0, 0.1, (), (), {**told, **more})


def error(value: Any) -> Any:
    return {"category": "bad_request", "details": value, "hint": value}


@pytest.mark.parametrize("value", [None, True, 7, -0.5, "x", [], [[]], {}, {"a": {}}], ids=repr)
def test_messages_with_odd_values_are_judged(value: Any) -> None:
    findings = [judged(check, [seen(value)] * len(check.scenes)) for check in (*HOST_CHECKS, *WORKER_CHECKS)]
    assert all(finding.expected and finding.came for finding in findings if finding.grade == "failed")
    assert "H06" in {finding.number for finding in findings if finding.grade == "failed"}


def test_a_line_that_is_nested_without_end_is_no_message() -> None:
    deep = Line(b'{"type":"text","text":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", None)
    only = [check for check in WORKER_CHECKS if check.number == "W03"]
    finding = judged(only[0], [Seen("deep", (deep,), 0, 0.1, (), (), {})] * len(only[0].scenes))
    assert (finding.grade, "recursion" in finding.came) == ("failed", True)
