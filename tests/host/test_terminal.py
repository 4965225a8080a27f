"""What a person at a terminal is shown."""

from typing import Any

import pytest

from agentcell.terminal import (
    closing_line,
    error_lines,
    event_line,
    flow_lines,
    one_line,
    tool_line,
    warning_lines,
    without_escapes,
)
from agentcell_protocol.errors import Category, session_error
from agentcell_protocol.result import Notice, SessionResult, Usage


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;a title\x07after", "after"),
        ("\x1b]52;c;Zm9v\x1b\\after", "after"),
        ("\x1bPq#0\x1b\\after", "after"),
        ("\x1bcafter", "after"),
        ("a\rb\x08c\x7f\x9b31m", "abc31m"),
        ("left \u202eright\u2066", "left right"),
        ("👩‍💻 é 漢", "👩‍💻 é 漢"),
        ("unfinished \x1b[31", "unfinished 31"),
    ],
)
def test_nothing_that_drives_a_terminal_gets_through(text: str, shown: str) -> None:
    assert without_escapes(text) == shown


def test_what_is_put_on_one_line_stays_there() -> None:
    assert one_line("a\n  b\u2028c\x1b[2J") == "a b c"


@pytest.mark.parametrize(
    ("event", "line"),
    [
        ({"name": "Bash", "input": {"description": "d", "command": "ls\n-l"}}, "Bash ls -l"),
        ({"name": "Write", "input": {"content": "x", "file_path": "a.py"}}, "Write a.py"),
        ({"name": "Read\x1b[2J", "input": {"file_path": "\x1b]0;x\x07a"}}, "Read a"),
        ({"name": "TodoWrite", "input": {"todos": []}}, "TodoWrite"),
        ({"name": "Bash", "input": {"command": 7}}, "Bash"),
        ({"name": "Bash", "input": {"command": "x" * 200}}, "Bash " + "x" * 94 + "…"),
    ],
)
def test_a_tool_is_a_short_line(event: dict[str, Any], line: str) -> None:
    assert tool_line(event) == line


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            {"type": "hello", "pid": 7, "start": "cold", "agentcell": "1", "sdk": "2", "cli": None, "protocol": 1},
            "cell 7 (cold start): agentcell 1, SDK 2",
        ),
        ({"type": "session_started", "session_id": "s", "model": None}, "session s with the default model"),
        (
            {"type": "api_retry", "attempt": 1, "max_retries": 10, "delay_s": 0.6, "http_status": 529, "error": None},
            "the API failed (529), asking again in 1 s (1 of 10)",
        ),
        (
            {"type": "api_retry", "attempt": 1, "max_retries": 10, "delay_s": 2, "http_status": None, "error": None},
            "the API failed (no answer), asking again in 2 s (1 of 10)",
        ),
        ({"type": "rate_limit", "status": "allowed_warning", "resets_at": None}, "rate limit: allowed_warning"),
        ({"type": "permission_denied", "tool_name": "Bash", "tool_use_id": "t"}, "not permitted: Bash"),
        ({"type": "check", "name": "coverage", "state": "started"}, "check: coverage"),
        ({"type": "check", "name": "coverage", "state": "ended"}, None),
        ({"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}, "• Bash ls"),
        ({"type": "hello"}, None),
        ({"type": "usage"}, None),
        ({"type": "not yet known"}, None),
    ],
)
def test_what_happens_meanwhile_is_a_line(event: dict[str, Any], line: str | None) -> None:
    assert event_line(event) == line


def test_each_warning_is_a_line() -> None:
    warnings = [Notice(code="c", message="m\x1b[2J"), Notice(code="d", message="two\nlines")]
    result = SessionResult(status="complete", response="", session_name="s", warnings=warnings)
    assert warning_lines(result) == ["warning (c): m", "warning (d): two lines"]


TESTS = {
    "generated_files": [f"tests/{name}.py" for name in "abcdefg"],
    "success": True,
    "error": None,
    "framework": "pytest",
    "coverage_analyzed": True,
    "coverage_percent": 87.5,
    "coverage_percent_before": 62.0,
    "coverage_gaps": 1,
    "gaps": [{"file": "a.py", "lines": [[1, 2]], "percent": 50.0}],
    "improved": True,
    "fixture_files": [],
    "validation": {"valid": True, "issues": [], "warnings": ["not all tests pass"]},
    "session_ids": ["s-1", "s-2"],
}


@pytest.mark.parametrize(
    ("flow", "lines"),
    [
        (None, []),
        ("of another worker", []),
        (
            TESTS,
            [
                "generated files: tests/a.py, tests/b.py, tests/c.py, tests/d.py, tests/e.py and 2 more",
                "framework: pytest",
                "coverage gaps: 1",
                "coverage: 62.0 % → 87.5 %",
            ],
        ),
        ({"coverage_percent": 0.0, "coverage_percent_before": None}, ["coverage: 0.0 %"]),
        (
            {
                "checkpoints_created": 2,
                "migration_plan_path": "migration_plan.md",
                "validation": {"valid": False, "issues": ["a.sh: is\nnot \x1b[31mexecutable"]},
            },
            ["checkpoints created: 2", "migration plan path: migration_plan.md", "issue: a.sh: is not executable"],
        ),
        (
            {"success": False, "error": "no", "validation": {"valid": False, "issues": [f"{n}" for n in range(9)]}},
            [*(f"issue: {n}" for n in range(5)), "and 4 more issues"],
        ),
        ({"made": "x" * 1000, "odd": [1, {}], "deep": {"a": 1}}, ["made: " + "x" * 493 + "…"]),
    ],
)
def test_what_a_flow_made_and_found_is_a_few_lines(flow: object, lines: list[str]) -> None:
    assert flow_lines(flow) == lines


def test_an_error_is_shown_with_category_message_and_hint() -> None:
    error = session_error(Category.AUTHENTICATION, "no \x1b[31mkey", hint="set one")
    assert error_lines(error) == ["error (authentication): no key", "hint: set one"]


def test_a_hint_that_the_message_holds_is_not_repeated() -> None:
    assert error_lines(session_error(Category.BAD_REQUEST, "x: wrong; do y", hint="do y")) == [
        "error (bad_request): x: wrong; do y"
    ]


def test_the_closing_line_sums_up() -> None:
    usage = Usage(input_tokens=1000, cache_creation_input_tokens=200, cache_read_input_tokens=34, output_tokens=5)
    result = SessionResult(
        status="complete", response="", session_name="s", usage=usage, cost_usd=0.0123, num_turns=2, execution_time=4.25
    )
    assert closing_line(result) == "complete · 2 turns · 1,234 tokens in, 5 out · $0.0123 · 4.2 s"


def test_an_unknown_cost_is_not_zero() -> None:
    result = SessionResult(status="continue", response="", session_name="s", num_turns=1)
    assert closing_line(result) == "continue · 1 turn · 0 tokens in, 0 out · cost unknown · 0.0 s"
