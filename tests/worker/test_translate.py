"""Each message of the SDK as the events of the wire."""

from typing import Any

import pytest
from claude_agent_sdk import (
    AssistantMessage,
    RateLimitEvent,
    RateLimitInfo,
    ResultMessage,
    ServerToolResultBlock,
    StreamEvent,
    SystemMessage,
    TaskNotificationMessage,
    TaskStartedMessage,
    TaskUpdatedMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from agentcell_worker.outcome import TurnEnd
from agentcell_worker.translate import counts_of, events_of, task_change_of, turn_end_of

RETRY = {"attempt": 1, "max_retries": 10, "retry_delay_ms": 500, "error_status": 529, "error": "overloaded"}
TASK: dict[str, Any] = {"data": {}, "task_id": "b1", "uuid": "u", "session_id": "s"}


def system(subtype: str, **data: Any) -> SystemMessage:
    """A system message."""
    return SystemMessage(subtype=subtype, data=data)


@pytest.mark.parametrize(
    ("message", "events"),
    [
        (
            system("init", session_id="s", model="m"),
            [{"type": "session_started", "session_id": "s", "model": "m"}],
        ),
        (
            system("init", mcp_servers=[{"name": "a", "status": "connected"}, {"name": "b", "status": "failed"}, {}]),
            [
                {"type": "session_started", "session_id": None, "model": None},
                {"type": "warning", "code": "mcp_server", "message": "the MCP server b is not connected (failed)"},
            ],
        ),
        (
            system("api_retry", **RETRY),
            [
                {
                    "type": "api_retry",
                    "attempt": 1,
                    "max_retries": 10,
                    "delay_s": 0.5,
                    "http_status": 529,
                    "error": "overloaded",
                }
            ],
        ),
        (
            system("permission_denied", tool_name="Write", tool_use_id="t1"),
            [{"type": "permission_denied", "tool_name": "Write", "tool_use_id": "t1"}],
        ),
        (system("something_new"), []),
        (
            AssistantMessage(
                content=[ThinkingBlock("hm", "s"), TextBlock("a"), ToolUseBlock("t1", "Read", {"p": 1})], model="m"
            ),
            [{"type": "text", "text": "a"}, {"type": "tool_use", "id": "t1", "name": "Read", "input": {"p": 1}}],
        ),
        (
            AssistantMessage(content=[ServerToolResultBlock("t1", {"type": "text", "text": "found"})], model="m"),
            [{"type": "tool_result", "id": "t1", "is_error": False, "bytes": 5}],
        ),
        (AssistantMessage(content=[TextBlock("prose")], model="<synthetic>"), []),
        (AssistantMessage(content=[TextBlock("a")], model="m", parent_tool_use_id="t0"), []),
        (
            UserMessage(content=[ToolResultBlock("t1", "é", is_error=True), ToolResultBlock("t2", None)]),
            [
                {"type": "tool_result", "id": "t1", "is_error": True, "bytes": 2},
                {"type": "tool_result", "id": "t2", "is_error": False, "bytes": 0},
            ],
        ),
        (
            UserMessage(content=[ToolResultBlock("t1", [{"type": "text", "text": "\ud800"}, {"type": "image"}])]),
            [{"type": "tool_result", "id": "t1", "is_error": False, "bytes": 3 + 16}],
        ),
        (UserMessage(content="hi"), []),
        (
            StreamEvent("u", "s", {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}}),
            [{"type": "text_delta", "text": "a"}],
        ),
        (
            StreamEvent("u", "s", {"type": "content_block_delta", "delta": {"type": "input_json_delta"}}),
            [{"type": "text_delta", "text": ""}],
        ),
        (StreamEvent("u", "s", {"type": "content_block_delta", "delta": {}}, parent_tool_use_id="t0"), []),
        (StreamEvent("u", "s", {"type": "message_stop"}), []),
        (
            RateLimitEvent(RateLimitInfo(status="rejected", resets_at=5), "u", "s"),
            [{"type": "rate_limit", "status": "rejected", "resets_at": 5}],
        ),
        (object(), []),
    ],
)
def test_a_message_becomes_its_events(message: Any, events: list[dict[str, Any]]) -> None:
    assert events_of(message) == events


def test_a_result_says_how_its_turn_ended() -> None:
    message = ResultMessage(
        subtype="success",
        duration_ms=1,
        duration_api_ms=1,
        is_error=False,
        num_turns=2,
        session_id="s",
        stop_reason="end_turn",
        total_cost_usd=0.5 + 1e-12,
        usage={"input_tokens": 1, "output_tokens": 2, "service_tier": "standard"},
        result="a",
        permission_denials=[{"tool_name": "Write", "tool_use_id": "t1", "tool_input": {}}, "odd"],
        terminal_reason="completed",
        user_message_uuid="p",
    )
    assert turn_end_of(message) == TurnEnd(
        subtype="success",
        is_error=False,
        num_turns=2,
        terminal_reason="completed",
        stop_reason="end_turn",
        text="a",
        cost_usd=0.5,
        usage={
            "input_tokens": 1,
            "output_tokens": 2,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
        session_id="s",
        denials=(("Write", "t1"),),
        answers=("p",),
    )
    assert turn_end_of(object()) is None


@pytest.mark.parametrize("odd", [5, -1, 2.5, 10**400, float("nan"), "x", True, ["x"], {"a": 1}, None])
def test_what_a_result_says_in_another_type_counts_as_not_said(odd: Any) -> None:
    turn = turn_end_of(
        ResultMessage(
            subtype=odd,
            duration_ms=odd,
            duration_api_ms=odd,
            is_error=odd,
            num_turns=odd,
            session_id=odd,
            stop_reason=odd,
            total_cost_usd=odd,
            usage=odd,
            result=odd,
            permission_denials=odd,
            errors=odd,
            terminal_reason=odd,
            api_error_status=odd,
            user_message_uuid=odd,
            user_message_uuids=odd,
        )
    )
    assert turn is not None
    texts = (turn.subtype, turn.stop_reason, turn.text, turn.terminal_reason, turn.session_id, *turn.answers)
    counts = (turn.num_turns, turn.http_status, *turn.usage.values(), *counts_of({"input_tokens": odd}).values())
    assert all(isinstance(text, str | None) for text in texts)
    assert all(count is None or 0 <= count <= 2**53 for count in counts)
    assert turn.cost_usd is None or abs(turn.cost_usd) < 6


@pytest.mark.parametrize("odd", [5, -1, 10**400, "x", ["x"], {"a": 1}, None])
def test_messages_in_which_everything_is_of_another_type_are_still_read(odd: Any) -> None:
    messages = [
        system("init", session_id=odd, model=odd, mcp_servers=odd),
        system("api_retry", attempt=odd, max_retries=odd, retry_delay_ms=odd, error_status=odd, error=odd),
        UserMessage(content=[ToolResultBlock("t1", odd), ToolResultBlock("t2", [odd, {"type": "text", "text": odd}])]),
        AssistantMessage(content=[TextBlock(odd)], model="m"),
        StreamEvent("u", "s", odd),
        StreamEvent("u", "s", {"type": "content_block_delta", "delta": odd}),
        StreamEvent("u", "s", {"type": "content_block_delta", "delta": {"type": "text_delta", "text": odd}}),
        RateLimitEvent(RateLimitInfo(status=odd, resets_at=odd), "u", "s"),
    ]
    types = [event["type"] for message in messages for event in events_of(message)]
    assert types[:5] == ["session_started", "api_retry", "tool_result", "tool_result", "text"]


@pytest.mark.parametrize(
    ("message", "change"),
    [
        (TaskStartedMessage(subtype="task_started", description="tests", **TASK), ("b1", "tests")),
        (TaskUpdatedMessage(subtype="task_updated", patch={}, status="killed", **TASK), ("b1", None)),
        (TaskUpdatedMessage(subtype="task_updated", patch={}, status="running", **TASK), None),
        (
            TaskNotificationMessage(
                subtype="task_notification", status="completed", output_file="f", summary="s", **TASK
            ),
            ("b1", None),
        ),
        (system("init"), None),
    ],
)
def test_background_tasks_are_followed(message: Any, change: tuple[str, str | None] | None) -> None:
    assert task_change_of(message) == change


def test_missing_counts_are_none() -> None:
    assert set(counts_of(None).values()) == {0}
