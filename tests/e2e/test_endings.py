"""How sessions end when the model, the tools or the limits are odd, on the real SDK and the real CLI."""

from typing import Any

import pytest
from tests.e2e.scenes import Played, Scene, play

from agentcell import Limits
from agentcell_protocol.errors import Category, session_error
from agentcell_protocol.result import Notice, Usage

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

EMPTY: dict[str, Any] = {"times": "always"}

WORDS = "The log says: 401, billing, rate limit, permission denied, Not logged in."


def bash(command: str, **options: Any) -> dict[str, Any]:
    return {"name": "Bash", "input": {"command": command, **options}}


def background(command: str) -> list[dict[str, Any]]:
    """A model that ends its turn while a command of its runs on."""
    started = {"tools": [bash(command, run_in_background=True)]}
    return [started, {"text": "Started."}, {"text": "It has ended."}]


SCHEMA = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}

LOOKS = {"text": "I look.", "tools": [bash("echo one")], "usage": {"input_tokens": 1_000_000, "output_tokens": 100}}

DENIED = {"tools": [{"name": "Write", "input": {"file_path": "made.txt", "content": "x"}}]}

SCENES = {
    "nothing": Scene([EMPTY]),
    "a tool that never comes": Scene([{"text": "I will.", "stop_reason": "tool_use", "times": "always"}]),
    "tools without a last word": Scene([{"tools": [bash("echo one")]}, EMPTY]),
    "words": Scene([{"text": WORDS}]),
    "turns": Scene([LOOKS, {"text": "Done."}], members={"max_turns": 1}),
    "budget": Scene([LOOKS, {"text": "Done."}], members={"max_budget_usd": 0.01, "model": "claude-sonnet-4-5"}),
    "output": Scene([{"text": "Cut.", "stop_reason": "max_tokens", "times": "always"}]),
    "structure": Scene([{"text": "No.", "times": "always"}], members={"output_schema": SCHEMA}),
    "structure given": Scene(
        [{"tools": [{"name": "StructuredOutput", "input": {"answer": 42}}]}, {"text": "Given."}],
        members={"output_schema": SCHEMA},
    ),
    "denied": Scene(
        [DENIED, {"text": "I may not."}], members={"permission_mode": "default", "allowed_tools": ["Read"]}
    ),
    "server": Scene([{"text": "Alone."}], members={"mcp_servers": {"tickets": {"command": "/nowhere/tickets-mcp"}}}),
    "background": Scene(background("sleep 3; echo done > marker.txt")),
    "background cut": Scene(background("sleep 600; echo done > marker.txt"), limits=Limits(drain_seconds=0.5)),
}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Played]:
    return play(SCENES, tmp_path_factory.mktemp("endings"))


def test_an_empty_answer_is_never_a_success(played: dict[str, Played]) -> None:
    ended = played["nothing"]
    assert ended.error == session_error(Category.EMPTY_RESPONSE, "the session ended without any text or tool call")
    assert (ended.result.status, ended.result.tool_calls) == ("error", 0)


def test_a_stop_for_a_tool_that_never_comes_is_never_a_success(played: dict[str, Played]) -> None:
    ended = played["a tool that never comes"]
    assert (ended.error.category, ended.result.tool_calls) == (Category.CLI_FAILED, 0)
    assert str(ended.error.partial_response).startswith("I will.")
    assert "malformed_tool_use" in ended.result.response


def test_tools_without_a_last_word_are_a_success_with_a_warning(played: dict[str, Played]) -> None:
    ended = played["tools without a last word"]
    assert (ended.result.status, ended.result.response, ended.warnings) == ("complete", "", ["no_text"])
    assert ended.result.tool_calls == 1


def test_words_about_failures_are_an_answer(played: dict[str, Played]) -> None:
    ended = played["words"]
    assert (ended.result.status, ended.result.response, ended.warnings) == ("complete", WORDS, [])


def test_the_limit_of_turns_has_a_category_with_the_number_reached(played: dict[str, Played]) -> None:
    ended = played["turns"]
    assert ended.error == session_error(
        Category.MAX_TURNS,
        "the session reached its limit of 1 turn",
        hint="raise max_turns, or resume the session",
        partial_response="I look.",
    )
    assert ended.result.error is not None
    assert (ended.result.error.details["num_turns"], ended.result.error.details["max_turns"]) == (2, 1)
    assert ended.result.usage == Usage(input_tokens=1_000_000, output_tokens=100)
    assert _counted(ended)


def test_the_budget_has_a_category_with_the_cost_reached(played: dict[str, Played]) -> None:
    ended = played["budget"]
    assert ended.error == session_error(
        Category.MAX_BUDGET,
        "the session reached its budget of $0.01",
        hint="raise max_budget_usd, or resume the session",
        partial_response="I look.",
    )
    assert ended.result.error is not None
    assert ended.result.error.details["max_budget_usd"] == 0.01
    assert ended.result.error.details["cost_usd"] == ended.result.cost_usd
    assert _counted(ended)


def _counted(ended: Played) -> bool:
    """Whether what was spent until a limit, and the session to go on with, are told."""
    assert ended.result.usage.input_tokens == 1_000_000
    assert ended.result.cost_usd is not None
    assert ended.result.cost_usd > 0.01
    return ended.result.session_id == ended.requests[0].session_id


def test_an_answer_cut_by_the_limit_of_tokens_is_an_error_with_what_there_is(played: dict[str, Played]) -> None:
    ended = played["output"]
    assert (ended.error.category, ended.error.retryable) == (Category.MAX_OUTPUT_TOKENS, False)
    assert str(ended.error.partial_response).startswith("Cut.")


def test_a_structure_that_is_not_delivered_has_a_category(played: dict[str, Played]) -> None:
    ended = played["structure"]
    assert ended.error.category is Category.STRUCTURED_OUTPUT
    assert str(ended.error.partial_response).startswith("No.")
    assert ended.result.structured_output is None


def test_a_structure_that_is_delivered_is_in_the_result(played: dict[str, Played]) -> None:
    ended = played["structure given"]
    assert (ended.result.status, ended.result.structured_output) == ("complete", {"answer": 42})


def test_a_denied_tool_is_listed_and_nobody_is_asked(played: dict[str, Played]) -> None:
    ended = played["denied"]
    assert (ended.result.status, ended.result.response) == ("complete", "I may not.")
    assert [denial.tool_name for denial in ended.result.permission_denials] == ["Write"]
    assert not (ended.project / "made.txt").exists()


def test_a_server_that_cannot_start_is_warned_of(played: dict[str, Played]) -> None:
    ended = played["server"]
    assert (ended.result.status, ended.result.response) == ("complete", "Alone.")
    assert ended.result.warnings == [
        Notice(code="mcp_server", message="the MCP server tickets is not connected (failed)")
    ]


def test_background_work_is_waited_for(played: dict[str, Played]) -> None:
    ended = played["background"]
    assert (ended.result.status, ended.result.response, ended.warnings) == ("complete", "Started.", [])
    assert (ended.project / "marker.txt").read_text() == "done\n"


def test_background_work_that_takes_too_long_is_reported_as_cut_off(played: dict[str, Played]) -> None:
    ended = played["background cut"]
    assert (ended.result.status, ended.result.response, ended.warnings) == ("complete", "Started.", ["background_cut"])
    assert "sleep 600" in ended.result.warnings[0].message
    assert not (ended.project / "marker.txt").exists()
