"""A summary shows the beginning of things."""

from agentcell_protocol.summary import shorten, summarized


def test_a_summary_shows_the_beginning_of_things() -> None:
    value = {"text": "x" * 300, "list": list(range(50)), "deep": {"a": {"b": {"c": {}}}}, "n": 1}
    assert shorten(value) == {
        "text": "x" * 200 + "…",
        "list": list(range(20)),
        "deep": {"a": {"b": {"c": {}}}},
        "n": 1,
    }


def test_only_the_input_of_a_tool_is_shortened() -> None:
    text = {"type": "text", "text": "x" * 300}
    assert summarized(text) == text
    call = {"type": "tool_use", "id": "t", "name": "Write", "input": {"content": "x" * 300}}
    assert summarized(call) == {**call, "input": {"content": "x" * 200 + "…"}}
