"""What is said to the model is what the caller wrote, on the real SDK and the real CLI."""

import os
from pathlib import Path

import anyio
import pytest
from tests.e2e.scenes import Played, Scene, play

from agentcell import RequestError, run_session
from agentcell.offline import offline_environment, offline_model
from agentcell_protocol.errors import Category
from agentcell_worker.client import create_client
from agentcell_worker.session import run_agent_session

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

BOUND_SECONDS = 120

MIB = 1024 * 1024

ID = "11111111-1111-4111-8111-111111111111"

PROMPTS = (
    "/clear",
    "/compact now",
    "/no-such-command",
    "see @secret.txt and @/etc/hostname",
    "! touch made.txt",
    "# remember this",
    "  two lines\n\n  and a tab\t",
)
"""All of them mean something to a person's terminal, and nothing here."""

HIDDEN = "what stands in the file"


def test_prompts_reach_the_model_verbatim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret.txt").write_text(HIDDEN)

    async def converse() -> list[str]:
        answers = []
        client = create_client(tmp_path, None, None)
        with anyio.fail_after(BOUND_SECONDS):
            async with client:
                for prompt in PROMPTS:
                    _, response, *_ = await run_agent_session(client, prompt, None)
                    answers.append(response)
        return answers

    turns = [{"text": f"Answer {number}."} for number in range(len(PROMPTS))]
    with offline_model({"turns": turns}) as endpoint:
        _surround(monkeypatch, {**offline_environment(endpoint, tmp_path), "TMPDIR": str(tmp_path)})
        answers = anyio.run(converse)
        asked = [request for request in endpoint.requests if request.kind == "turn"]
    assert answers == [turn["text"] for turn in turns]
    assert asked[-1].prompt == "\n".join(PROMPTS)
    assert HIDDEN not in str(asked[-1].body)
    assert not (tmp_path / "made.txt").exists()


def test_a_client_is_entered_again_with_a_session_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def converse() -> list[str | None]:
        client = create_client(tmp_path, None, None, session_id=ID)
        ids = []
        with anyio.fail_after(BOUND_SECONDS):
            for _ in range(3):
                async with client:
                    status, *_, trace = await run_agent_session(client, "Again.", None)
                assert status == "complete"
                ids.append(trace.session_id)
        return ids

    with offline_model({"turns": [{"text": "Here."}]}) as endpoint:
        _surround(monkeypatch, {**offline_environment(endpoint, tmp_path), "TMPDIR": str(tmp_path)})
        ids = anyio.run(converse)
        asked = [(request.session_id, request.prompt) for request in endpoint.requests if request.kind == "turn"]
    assert asked == [(session_id, "Again.") for session_id in ids]
    assert ids[0] == ID
    assert len(set(ids)) == 3


def _surround(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    """Let this process have that environment and nothing else: the SDK passes on all it finds."""
    for name in os.environ.keys() - environment.keys():
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


LONG = {
    "system prompt of 129 KiB": Scene([{"text": "Read."}], {"system_prompt": "r" * 129 * 1024}),
    "system prompt of 1 MiB": Scene([{"text": "Read."}], {"system_prompt": "r" * MIB}),
    "message of 20 MiB": Scene(
        [{"text": "Read."}], message="m" * 20 * MIB, env={"CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE": "1000000000"}
    ),
}

TOO_LONG = {"too long": Scene([{"text": "Read."}], message="m" * 20 * MIB)}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Played]:
    return play(LONG | TOO_LONG, tmp_path_factory.mktemp("prompts"))


@pytest.mark.parametrize("name", LONG)
def test_a_long_prompt_reaches_the_model_whole(played: dict[str, Played], name: str) -> None:
    ended, scene = played[name], LONG[name]
    parts = [*scene.members.values(), f"{scene.message} [{name}]"]
    assert (ended.result.status, ended.result.response) == ("complete", "Read.")
    assert ended.requests[0].prompt == "\n\n".join(parts)


def test_a_prompt_that_no_model_can_take_is_named(played: dict[str, Played]) -> None:
    ended = played["too long"]
    assert (ended.error.category, ended.error.retryable) == (Category.CONTEXT_OVERFLOW, False)
    assert ended.requests == []


@pytest.mark.parametrize("message", ["", " \n\t"])
def test_an_empty_prompt_is_refused_before_anything_starts(tmp_path: Path, message: str) -> None:
    request = {"session_name": "a", "agent_type": "coder", "project_dir": str(tmp_path), "starting_message": message}
    events: list[object] = []
    with pytest.raises(RequestError) as refused:
        anyio.run(lambda: run_session(request, on_event=events.append))
    assert (refused.value.member, events) == ("starting_message", [])
