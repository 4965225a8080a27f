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

from agentcell import RequestError, run_agent_session_isolated
from agentcell.offline import Endpoint, offline_environment, offline_model

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


def test_a_refused_key_is_an_error_soon(tmp_path: Path) -> None:
    with scripted(turns=[{"error": {"status": 401}, "times": "always"}]) as endpoint:
        app = App(tmp_path, endpoint)
        status, text, _ = asyncio.run(app.run("Go.", subtask_id="subtask-1"))
        assert len(endpoint.requests) <= 2
    assert status == "error"
    assert "scripted error" not in text


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


def test_an_unknown_agent_type_is_the_callers_mistake(tmp_path: Path) -> None:
    with scripted(turns=[{"text": "never"}]) as endpoint:
        app = App(tmp_path, endpoint)
        with pytest.raises(RequestError) as refused:
            asyncio.run(run_agent_session_isolated(app.project, None, "codr", None, "hi", env=app.environment))
    assert refused.value.member == "agent_type"
