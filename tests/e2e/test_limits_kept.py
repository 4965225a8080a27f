"""Limits on the real SDK and the real CLI: what passes one is ended and named, and what does not is left alone."""

import sys
from typing import Any

import pytest
from tests.e2e.scenes import Played, Scene, play

from agentcell import Limits
from agentcell_protocol.errors import Category

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

HOG = "import time; taken = [bytearray(100 << 20) for _ in range(20) if not time.sleep(0.05)]; time.sleep(600)"


def bash(command: str) -> dict[str, Any]:
    return {"name": "Bash", "input": {"command": command}}


LOOKS = {"text": "I look.", "tools": [bash("echo one")], "usage": {"input_tokens": 70, "output_tokens": 7}}
GROWS = {"text": "I grow.", "tools": [bash(f'{sys.executable} -c "{HOG}"')]}
WORKS = {"text": "I work.", "tools": [bash("sleep 6")]}
STREAMS = {"text": "Half of it. " * 20, "chunks": 4, "stall": "middle"}
STALLS = {"stall": "start", "times": "always"}

SCENES = {
    "memory": Scene([LOOKS, GROWS, STALLS], limits=Limits(max_memory_mb=1024, max_execution_seconds=90)),
    "small": Scene([LOOKS, {"text": "Done."}], limits=Limits(max_memory_mb=1024)),
    "connect": Scene([{"text": "Done."}], limits=Limits(startup_seconds=0.05)),
    "streaming": Scene([LOOKS, STREAMS], {"events": "full"}, Limits(max_execution_seconds=15)),
    "idle": Scene([LOOKS, STALLS], limits=Limits(idle_seconds=4, max_execution_seconds=90)),
    "working": Scene([WORKS, {"text": "Done."}], limits=Limits(idle_seconds=4)),
}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Played]:
    return play(SCENES, tmp_path_factory.mktemp("limits"))


def test_a_tool_over_the_memory_limit_is_killed_and_named(played: dict[str, Played]) -> None:
    result = played["memory"].result
    assert result.error is not None
    assert (result.error.category, result.violated_limits) == (Category.MEMORY_LIMIT, ["max_memory_mb"])
    assert result.error.details["process"].startswith("python")
    assert 1024 < result.error.details["reached"] <= (result.peak_memory_mb or 0) < 1024 + 300
    assert str(result.error.partial_response).startswith("I look.")
    assert result.session_id
    assert result.usage.input_tokens >= 70


def test_a_small_session_has_room_in_a_gibibyte(played: dict[str, Played]) -> None:
    result = played["small"].result
    assert (result.response, result.violated_limits) == ("Done.", [])
    assert 100 < (result.peak_memory_mb or 0) < 700


@pytest.mark.parametrize(
    ("scene", "limit", "partial"),
    [
        ("connect", "startup", None),
        ("streaming", "wall", "I look.\n\nHalf of it."),
        ("idle", "idle", "I look."),
    ],
)
def test_a_clock_names_itself_and_keeps_what_there_was(
    played: dict[str, Played], scene: str, limit: str, partial: str | None
) -> None:
    result = played[scene].result
    assert result.error is not None
    assert (result.error.category, result.error.details["limit"]) == (Category.TIMEOUT, limit)
    assert str(result.error.partial_response).startswith(str(partial))
    if partial is not None:
        assert result.session_id
        assert result.usage.input_tokens >= 70


def test_a_tool_that_works_longer_than_the_idle_limit_is_waited_for(played: dict[str, Played]) -> None:
    assert played["working"].result.response == "Done."
