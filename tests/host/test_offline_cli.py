"""The real CLI takes the offline endpoint for the API."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    Message,
    ResultMessage,
    SystemMessage,
    TextBlock,
)

from agentcell.offline import Endpoint, offline_environment, offline_model

pytestmark = [
    pytest.mark.slow,
    pytest.mark.e2e,
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
]

SECONDS = 60.0
"""A bound on a session, which takes one second on an idle machine."""

TOOLS = ["Read", "Glob", "Write", "Bash", "Agent", "WebSearch"]

Offline = Callable[[dict[str, Any]], AbstractContextManager[Endpoint]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Where the agent works."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Offline:
    """Plays a script, in an environment where nothing else is left: the SDK passes on all it finds."""

    @contextmanager
    def play(script: dict[str, Any]) -> Iterator[Endpoint]:
        with offline_model(script) as endpoint:
            environment = {**offline_environment(endpoint, tmp_path), "TMPDIR": str(tmp_path)}  # the CLI leaves some
            for name in set(os.environ) - set(environment):
                monkeypatch.delenv(name)
            for name, value in environment.items():
                monkeypatch.setenv(name, value)
            yield endpoint

    return play


def client(project: Path) -> ClaudeSDKClient:
    return ClaudeSDKClient(
        ClaudeAgentOptions(
            cwd=project,
            tools=TOOLS,
            allowed_tools=TOOLS,
            permission_mode="acceptEdits",
            setting_sources=[],
        )
    )


async def converse(project: Path, prompt: str = "hi") -> list[Message]:
    """Everything the CLI says about one prompt."""
    with anyio.fail_after(SECONDS):
        async with client(project) as session:
            await session.query(prompt)
            messages = [message async for message in session.receive_response()]
    return messages


def texts(messages: list[Message]) -> list[str]:
    """What the model said, and the CLI in its place."""
    said = [message for message in messages if isinstance(message, AssistantMessage)]
    return [block.text for message in said for block in message.content if isinstance(block, TextBlock)]


def ending(messages: list[Message]) -> ResultMessage:
    assert isinstance(messages[-1], ResultMessage)
    return messages[-1]


async def test_a_text_is_the_answer_of_a_session(offline: Offline, project: Path) -> None:
    usage = {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 7}
    with offline({"turns": [{"thinking": "hm", "text": ["one", "two"], "usage": usage}]}) as endpoint:
        messages = await converse(project, "what is it?")
    result = ending(messages)
    assert texts(messages) == ["one", "two"]
    assert (result.subtype, result.is_error, result.result, result.stop_reason) == ("success", False, "two", "end_turn")
    assert result.usage is not None
    assert {name: result.usage[name] for name in usage} == usage
    [request] = endpoint.requests
    assert (request.kind, request.turn, request.session_id) == ("turn", 1, result.session_id)
    assert (request.prompt, request.headers["x-api-key"]) == ("what is it?", "***")


async def test_tools_really_run_with_paths_relative_to_the_project(offline: Offline, project: Path) -> None:
    script = {
        "turns": [
            {
                "tools": [
                    {"name": "Write", "input": {"file_path": "notes/a.txt", "content": "é😀\n"}},
                    {"name": "Bash", "input": {"command": "cat notes/a.txt > copy.txt"}},
                ]
            },
            {"text": "done"},
        ]
    }
    with offline(script):
        messages = await converse(project)
    assert (project / "copy.txt").read_text("utf-8") == "é😀\n"
    assert (ending(messages).result, ending(messages).num_turns) == ("done", 3)


async def test_an_overloaded_api_is_asked_again_until_it_answers(offline: Offline, project: Path) -> None:
    with offline({"turns": [{"error": {"status": 529}, "times": 2}, {"text": "at last"}]}) as endpoint:
        messages = await converse(project)
    retries = [
        message.data for message in messages if isinstance(message, SystemMessage) and message.subtype == "api_retry"
    ]
    assert [(retry["attempt"], retry["error_status"], retry["error"]) for retry in retries] == [
        *((1, 529, "overloaded"), (2, 529, "overloaded"))
    ]
    assert ending(messages).result == "at last"
    assert [request.turn for request in endpoint.requests] == [1, 2, 3]


async def test_a_dropped_connection_is_tried_again_with_the_next_turn(offline: Offline, project: Path) -> None:
    with offline({"turns": [{"drop": "start"}, {"text": "half of this", "drop": "middle"}, {"text": "whole"}]}):
        messages = await converse(project)
    assert (texts(messages), ending(messages).is_error) == (["whole"], False)


async def test_a_malformed_body_is_asked_for_once_more_without_streaming(offline: Offline, project: Path) -> None:
    with offline({"turns": [{"body": "{", "times": 2}]}) as endpoint:
        messages = await converse(project)
    assert [request.is_streamed for request in endpoint.requests] == [True, False]
    assert (ending(messages).is_error, ending(messages).terminal_reason) == (True, "api_error")


async def test_a_subagent_does_not_take_the_turns_of_its_session(offline: Offline, project: Path) -> None:
    task = {"description": "look", "prompt": "explore it", "subagent_type": "Explore", "run_in_background": False}
    script = {
        "sessions": [{"match": "explore it", "turns": [{"text": "found"}]}],
        "turns": [{"tools": [{"name": "Agent", "input": task}]}, {"text": "main"}],
    }
    with offline(script) as endpoint:
        messages = await converse(project)
    assert "main" in texts(messages)
    assert {request.agent_id is None: request.turn for request in endpoint.requests} == {True: 2, False: 1}


async def test_what_the_cli_asks_beside_the_session_takes_no_turn(
    offline: Offline, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = {"turns": [{"tools": [{"name": "WebSearch", "input": {"query": "cells"}}]}, {"text": "main"}]}
    with offline(script) as endpoint:
        monkeypatch.delenv("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC")
        messages = await converse(project, "Please look around the project, and then write down what you see.")
    assert ending(messages).result == "main"
    kinds = [(request.kind, request.turn) for request in endpoint.requests if request.kind != "other"]
    assert sorted(kinds, key=str) == [("search", None), ("title", None), ("turn", 1), ("turn", 2)]


@pytest.mark.parametrize("moment", ["start", "middle"])
async def test_a_stalled_answer_lasts_until_the_session_is_interrupted(
    offline: Offline, project: Path, moment: str
) -> None:
    with (
        offline({"turns": [{"text": "never said", "chunks": 4, "stall": moment}]}) as endpoint,
        anyio.fail_after(SECONDS),
    ):
        async with client(project) as session:
            await session.query("hi")
            while not endpoint.requests:
                await anyio.lowlevel.checkpoint()
            await session.interrupt()
            messages = [message async for message in session.receive_response()]
    assert "never said" not in texts(messages)
    assert len(endpoint.requests) == 1


async def test_an_answer_of_two_million_characters_arrives_whole(offline: Offline, project: Path) -> None:
    with offline({"turns": [{"text": "é😀xyzabcd\n", "repeat": 200_000}]}), anyio.fail_after(SECONDS):
        options = ClaudeAgentOptions(cwd=project, tools=[], setting_sources=[], max_buffer_size=16 * 1024 * 1024)
        async with ClaudeSDKClient(options) as session:
            await session.query("hi")
            messages = [message async for message in session.receive_response()]
    assert texts(messages) == ["é😀xyzabcd\n" * 200_000]
