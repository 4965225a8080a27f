"""The coder phase in a plain asyncio program, on the real SDK and the real CLI."""

import asyncio
import json
import os
import signal
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from agentcell import run_agent_session_isolated
from agentcell.offline import Endpoint, ModelRequest, offline_environment, offline_model

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

BOUND_SECONDS = 120

WRITES = {"tools": [{"name": "Write", "input": {"file_path": "made.txt", "content": "by the agent"}}]}


class App:
    """An app with a project, a spec and an endpoint that answers by a script."""

    def __init__(self, folder: Path, endpoint: Endpoint) -> None:
        self.project = folder / "project"
        self.spec = folder / "spec"
        self.home = folder / "home"
        for directory in (self.project, self.spec, self.home):
            directory.mkdir()
        self.environment = offline_environment(endpoint, self.home)

    def plan(self, *statuses: str) -> None:
        subtasks = [{"id": str(number), "status": status} for number, status in enumerate(statuses)]
        plan = {"phases": [{"id": "1", "subtasks": subtasks}]}
        (self.spec / "implementation_plan.json").write_text(json.dumps(plan))

    async def run(self, message: str, **options: Any) -> tuple[str, str, dict[str, int]]:
        async with asyncio.timeout(BOUND_SECONDS):
            return await run_agent_session_isolated(
                self.project, self.spec, "coder", "claude-test", message, env=self.environment, **options
            )


def scripted(**script: Any) -> AbstractContextManager[Endpoint]:
    return offline_model(script)


def test_a_finished_plan_is_complete_and_the_agents_files_are_there(tmp_path: Path) -> None:
    with scripted(turns=[WRITES, {"text": "Written."}]) as endpoint:
        app = App(tmp_path, endpoint)
        app.plan("completed", "completed")
        status, text, usage = asyncio.run(app.run("Write the file."))
    assert (status, text) == ("complete", "Written.")
    assert usage["input_tokens"] > 0
    assert (app.project / "made.txt").read_text() == "by the agent"


def test_an_unfinished_plan_is_continued(tmp_path: Path) -> None:
    with scripted(turns=[{"text": "One step further."}]) as endpoint:
        app = App(tmp_path, endpoint)
        app.plan("completed", "pending")
        status, text, _ = asyncio.run(app.run("Go on."))
    assert (status, text) == ("continue", "One step further.")


def test_a_killed_worker_is_an_error_that_names_the_signal_and_the_program_goes_on(tmp_path: Path) -> None:
    script = {
        "sessions": [{"match": "Hang", "turns": [{"stall": "start", "times": "always"}]}],
        "turns": [{"text": "Here again."}],
    }

    def kill(event: Mapping[str, Any]) -> None:
        if event["type"] == "hello":
            workers.append(event["pid"])
        if event["type"] == "session_started":
            os.kill(workers[-1], signal.SIGKILL)

    async def program(app: App) -> list[tuple[str, str]]:
        killed = await app.run("Hang.", on_event=kill)
        after = await app.run("Answer.")
        return [killed[:2], after[:2]]

    workers: list[int] = []
    with scripted(**script) as endpoint:
        (status, text), after = asyncio.run(program(App(tmp_path, endpoint)))
    assert status == "error"
    assert "SIGKILL" in text
    assert after == ("continue", "Here again.")


def test_a_killed_worker_is_tried_again_for_a_subtask(tmp_path: Path) -> None:
    def kill_the_first(event: Mapping[str, Any]) -> None:
        if event["type"] == "hello":
            workers.append(event["pid"])
        if event["type"] == "session_started" and len(workers) == 1:
            os.kill(workers[0], signal.SIGKILL)

    workers: list[int] = []
    script = {
        "sessions": [{"session": 1, "turns": [{"stall": "start", "times": "always"}]}],
        "turns": [{"text": "Done."}],
    }
    with scripted(**script) as endpoint:
        app = App(tmp_path, endpoint)
        answer = asyncio.run(app.run("Go.", subtask_id="subtask-1", on_event=kill_the_first))
    assert answer[0] in {"complete", "continue"}
    assert len(workers) == 2


def test_a_worker_that_is_killed_after_a_tool_goes_on_in_the_same_conversation(tmp_path: Path) -> None:
    def kill_at_the_second_tool(event: Mapping[str, Any]) -> None:
        heard.append(event)
        of_tools = [one for one in heard if one["type"] == "tool_use"]
        if event["type"] == "tool_use" and len(of_tools) == 2:
            os.kill(heard[0]["pid"], signal.SIGKILL)

    heard: list[Mapping[str, Any]] = []
    endless = {"tools": [{"name": "Bash", "input": {"command": "tail -f /dev/null"}}]}
    with scripted(turns=[WRITES, endless, {"text": "Done."}]) as endpoint:
        app = App(tmp_path, endpoint)
        app.plan("completed")
        answer = asyncio.run(app.run("Write the file.", subtask_id="subtask-1", on_event=kill_at_the_second_tool))
        turns = [asked for asked in endpoint.requests if asked.kind == "turn"]
    assert answer[:2] == ("complete", "Done.")
    assert [event["type"] for event in heard].count("hello") == 2
    assert len({asked.session_id for asked in turns}) == 1
    assert [asked.turn for asked in turns] == [1, 2, 3]
    assert tool_results(turns[2])[0] == tool_results(turns[1])[0]
    assert "attempt 2 at its task" in turns[2].prompt
    assert turns[2].prompt.count("Write the file.") == 2


def tool_results(asked: ModelRequest) -> list[tuple[str, Any]]:
    blocks = [
        block for message in asked.messages if isinstance(message["content"], list) for block in message["content"]
    ]
    return [(block["tool_use_id"], block["content"]) for block in blocks if block["type"] == "tool_result"]
