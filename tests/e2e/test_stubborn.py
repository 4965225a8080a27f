"""Sessions whose CLI, tools or servers will not end, or hold what is the worker's: they end in time all the same."""

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.scenes import Played, Scene, living, play

from agentcell import Limits, reap
from agentcell_protocol.errors import Category

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SERVER = Path(__file__).parents[1] / "faults/workers/stubborn_mcp.py"

IDLE_SECONDS = 4
"""In which a tool begins and ends, on a busy machine too."""

ENDING_SECONDS = reap.GRACE_SECONDS + 3
"""From a limit to the result, whatever the cell does; a busy machine gets twice as long in these tests."""

WORKER = "$(cut -d' ' -f4 /proc/$PPID/stat)"
"""For a command of the Bash tool: its parent is the CLI."""

LOOKS = {"tools": [{"name": "mcp__stubborn__look", "input": {}}]}
STALLS = {"stall": "start", "times": "always"}
DONE = {"text": "Done."}


def bash(command: str) -> dict[str, Any]:
    return {"tools": [{"name": "Bash", "input": {"command": command}}]}


def served(*turns: dict[str, Any], **members: Any) -> Scene:
    """With that server in use."""
    server = {"command": sys.executable, "args": [str(SERVER)]}
    asked = {"mcp_servers": {"stubborn": server}, "allowed_tools": ["Bash", "mcp__stubborn__look"]}
    return Scene([LOOKS, *turns], asked, **members)


IDLE = Limits(idle_seconds=IDLE_SECONDS)

SCENES = {
    "a server after success": served(DONE),
    "a server after a limit": served(STALLS, limits=IDLE),
    "a server after a crash": served(bash(f"kill -9 {WORKER}")),
    "a CLI that does not hear": Scene([bash("(sleep 1; kill -STOP $PPID) & echo soon"), STALLS], limits=IDLE),
    "a CLI that is not heard": Scene(
        [bash(f"(sleep 1; kill -STOP {WORKER}) & echo soon"), {"delay": 2, "text": "x" * 10_000_000}, STALLS],
        limits=IDLE,
    ),
    "a child that holds stderr": Scene(
        [bash(f"exec 2> /proc/{WORKER}/fd/2; echo held >&2; setsid tail -f /dev/null > /dev/null & "), DONE]
    ),
}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Played]:
    folder = tmp_path_factory.mktemp("stubborn")
    ended = play(SCENES, folder)
    assert living(folder) == []
    return ended


def test_a_server_that_will_not_end_is_ended_after_success(played: dict[str, Played]) -> None:
    ended = played["a server after success"]
    assert (ended.result.status, ended.result.response, ended.result.tool_calls) == ("complete", "Done.", 1)
    assert ended.result.swept_processes >= 1


def test_a_server_that_will_not_end_is_ended_after_a_limit(played: dict[str, Played]) -> None:
    ended = played["a server after a limit"]
    assert (ended.error.category, ended.result.violated_limits) == (Category.TIMEOUT, ["idle_seconds"])
    assert ended.seconds_after("tool_result") < IDLE_SECONDS + 2 * ENDING_SECONDS


def test_a_server_that_will_not_end_is_ended_after_a_crash(played: dict[str, Played]) -> None:
    ended = played["a server after a crash"]
    assert (ended.error.category, ended.result.signal) == (Category.CRASHED, "SIGKILL")
    assert ended.result.swept_processes >= 3  # the CLI, the server and its child


@pytest.mark.parametrize("name", ["a server after success", "a server after a limit", "a server after a crash"])
def test_the_server_was_in_use(played: dict[str, Played], name: str) -> None:
    results = [event["is_error"] for event in played[name].events if event["type"] == "tool_result"]
    assert results[:1] == [False]


@pytest.mark.parametrize("name", ["a CLI that does not hear", "a CLI that is not heard"])
def test_a_cli_that_cannot_end_is_ended(played: dict[str, Played], name: str) -> None:
    ended = played[name]
    assert (ended.error.category, ended.result.violated_limits) == (Category.TIMEOUT, ["idle_seconds"])
    assert len(ended.requests) >= 2
    assert ended.seconds_after("tool_result") < IDLE_SECONDS + 2 * ENDING_SECONDS


def test_a_child_that_holds_the_workers_stderr_delays_nothing(played: dict[str, Played]) -> None:
    ended = played["a child that holds stderr"]
    assert (ended.result.status, ended.result.response, ended.result.stderr_tail) == ("complete", "Done.", "held\n")
    assert ended.result.swept_processes == 1


@pytest.mark.parametrize("name", SCENES)
def test_no_traceback_tells_of_it(played: dict[str, Played], name: str) -> None:
    assert "Traceback" not in str(played[name].result.stderr_tail)
