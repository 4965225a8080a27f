"""How far a session has come, told from its events."""

from typing import Any

from agentcell_protocol.result import Denial, Notice, Usage
from agentcell_worker.progress import Progress


def retry(status: int | None, delay: float) -> dict[str, object]:
    """The CLI says that it waits."""
    return {"type": "api_retry", "attempt": 1, "max_retries": 1, "delay_s": delay, "http_status": status, "error": "x"}


def test_events_add_up() -> None:
    progress = Progress()
    usage = {"input_tokens": 1, "output_tokens": 2, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 4}
    events: list[dict[str, Any]] = [
        {"type": "session_started", "session_id": "s", "model": "m"},
        {"type": "text_delta", "text": "o"},
        {"type": "text", "text": "one"},
        {"type": "tool_use", "id": "t1", "name": "Read", "input": {}},
        {"type": "permission_denied", "tool_name": "Read", "tool_use_id": "t1"},
        {"type": "warning", "code": "c", "message": "m"},
        {"type": "usage", **usage},
        {"type": "text_delta", "text": "tw"},
        {"type": "something_new"},
    ]
    for event in events:
        progress.note(event, 0.0)
    assert (progress.session_id, progress.model, progress.tool_calls) == ("s", "m", 1)
    assert progress.text == "one\n\ntw"
    assert progress.usage == Usage(**usage)
    assert progress.denials == [Denial(tool_name="Read", tool_use_id="t1")]
    assert progress.notices == [Notice(code="c", message="m")]


def test_waits_on_rate_limits_and_overload_are_counted_as_far_as_they_passed() -> None:
    progress = Progress()
    progress.note(retry(429, 2.0), 0.0)
    progress.note(retry(529, 60.0), 5.0)  # the first wait has passed whole
    progress.note(retry(500, 60.0), 6.0)  # one second of the second
    progress.settle(100.0)  # a server error is no such wait
    assert progress.waited_seconds == 3.0
