"""The coder phase: one call, tried again when that may help."""

import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from tests.faults.harness import KEY

from agentcell import isolated
from agentcell.isolated import run_agent_session_isolated, run_attempts
from agentcell.limits import Limits
from agentcell.orders import Order
from agentcell.resources import sharing
from agentcell.retry import RetryPolicy
from agentcell.testing import Step, stand_in
from agentcell_protocol.errors import Category, RequestError, SessionError, session_error
from agentcell_protocol.request import SessionRequest, parse_request
from agentcell_protocol.result import SessionResult, Usage, failed

pytestmark = pytest.mark.anyio

SECONDS = 30.0
"""A bound on every wait here; what is waited for takes well under a second."""

TOKENS = Usage(input_tokens=2, output_tokens=1)
DONE = SessionResult(status="continue", response="done", session_name="a", usage=TOKENS, cost_usd=0.25)
DIED = failed(session_error(Category.CRASHED, "killed by SIGKILL"), usage=TOKENS, session_id="s")

WORK: Step = {"tool": {"name": "Write", "input": {"file_path": "a"}}}
SPENT: Step = {"emit": {"type": "usage", "input_tokens": 2, "output_tokens": 1}}
DIE: Step = {"die": "SIGKILL"}

STRAY = """
import os, signal, socket, sys
worker = os.getppid()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.setsid()
alive = socket.socket(socket.AF_UNIX)
alive.connect(sys.argv[1])
os.kill(worker, signal.SIGKILL)
signal.pause()
"""
"""Proves by a socket that it lives, lets its worker die, and minds no SIGTERM."""


class App:
    """Runs one task of an app, in cells that do what its test says, and looks at what there is between two attempts."""

    def __init__(self, folder: Path) -> None:
        places = {name: str(folder) for name in ("HOME", "XDG_STATE_HOME", "TMPDIR")}
        self.pauses: list[float] = []
        self.between: Callable[[], object] = lambda: None
        self.kept = folder / "agentcell/transcripts"
        self.order = Order(
            parse_request(
                {"session_name": "a", "agent_type": "coder", "project_dir": str(folder), "starting_message": "Do it."}
            ),
            environment={"PATH": "/usr/bin:/bin", **places, "ANTHROPIC_API_KEY": KEY},
        )

    async def run(self, *runs: Sequence[Step], **changes: Any) -> SessionResult:
        with anyio.fail_after(SECONDS), stand_in(*runs) as command:
            async with sharing(command=command) as resources:
                return await run_attempts(
                    replace(self.order, **changes),
                    resources,
                    RetryPolicy(3),
                    pause=self.pause,
                    clock=lambda: 0.0,
                    chance=lambda: 1.0,
                )

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.between()

    def said(self) -> list[list[str]]:
        """The messages of each conversation that is kept, as far as they begin with how the app or the host begins."""
        files = sorted(self.kept.glob("*/*/*.jsonl"), key=lambda file: file.stat().st_mtime_ns)
        return [[beginning(line) for line in file.read_bytes().splitlines()] for file in files]


def beginning(line: bytes) -> str:
    return str(orjson.loads(line)["content"]).partition(",")[0]


def attempts(result: SessionResult) -> list[tuple[int, str, str | None, str | None]]:
    return [
        (one.number, one.mode, None if one.error is None else one.error.category.value, one.signal)
        for one in result.attempts
    ]


@pytest.fixture
def app(tmp_path: Path) -> App:
    return App(tmp_path)


async def test_a_crash_before_any_tool_begins_anew_in_another_conversation(app: App) -> None:
    result = await app.run([SPENT, DIE], [SPENT, {"text": "done"}])
    assert (result.status, result.response, app.pauses) == ("complete", "done", [1.0])
    assert attempts(result) == [(1, "fresh", "crashed", "SIGKILL"), (2, "fresh", None, None)]
    assert app.said() == [["Do it."], ["Do it."]]


async def test_a_crash_after_a_tool_goes_on_with_the_conversation(app: App) -> None:
    result = await app.run([WORK, DIE], [{"text": "done"}])
    assert (result.status, result.response) == ("complete", "done")
    assert attempts(result) == [(1, "fresh", "crashed", "SIGKILL"), (2, "resumed", None, None)]
    assert {one.session_id for one in result.attempts} == {result.session_id}
    assert app.said() == [["Do it.", "This session was interrupted"]]


async def test_silence_after_a_tool_goes_on_with_the_conversation(app: App) -> None:
    result = await app.run([WORK, {"hang": True}], [{"text": "done"}], limits=Limits(idle_seconds=0.3))
    assert attempts(result) == [(1, "fresh", "timeout", None), (2, "resumed", None, None)]
    assert app.said() == [["Do it.", "This session was interrupted"]]


async def test_what_always_crashes_is_tried_so_often_and_each_attempt_is_told(app: App) -> None:
    result = await app.run([SPENT, WORK, DIE])
    assert attempts(result) == [
        (1, "fresh", "crashed", "SIGKILL"),
        (2, "resumed", "crashed", "SIGKILL"),
        (3, "resumed", "crashed", "SIGKILL"),
    ]
    assert (result.usage, result.cost_usd, app.pauses) == (TOKENS + TOKENS + TOKENS, None, [1.0, 2.0])
    assert app.said() == [["Do it.", *2 * ["This session was interrupted"]]]


async def test_what_ran_out_of_memory_is_not_tried_again(app: App) -> None:
    result = await app.run([WORK, {"fail": {"category": "memory_limit", "message": "too much"}}], [{"text": "done"}])
    assert (attempts(result), app.pauses) == ([(1, "fresh", "memory_limit", None)], [])


@pytest.mark.slow
async def test_a_conversation_that_is_lost_is_begun_anew_and_costs_no_attempt(app: App) -> None:
    def lose() -> None:
        for file in app.kept.glob("*/*/*.jsonl"):
            file.unlink()

    app.between = lose
    result = await app.run([WORK, DIE], [{"text": "never"}], [WORK, DIE], [{"text": "done"}])
    assert (result.status, result.response, app.pauses) == ("complete", "done", [1.0, 0.0, 2.0, 0.0])
    assert attempts(result) == [
        (1, "fresh", "crashed", "SIGKILL"),
        (2, "resumed", "unknown_session", None),
        (3, "fresh", "crashed", "SIGKILL"),
        (4, "resumed", "unknown_session", None),
        (5, "fresh", None, None),
    ]


@pytest.mark.slow
async def test_an_attempt_begins_when_nothing_is_left_of_the_one_before(app: App) -> None:
    def look() -> None:
        alive, _ = listener.accept()
        with alive:
            alive.setblocking(False)
            seen.append(alive.recv(1))

    seen: list[bytes] = []
    app.between = look
    with socket.socket(socket.AF_UNIX) as listener:
        place = str(app.kept.parent.parent / "alive")
        listener.bind(place)
        listener.listen()
        listener.settimeout(SECONDS)
        stray = [sys.executable, "-c", STRAY, place]
        result = await app.run([WORK, {"spawn": stray}, {"hang": True}], [{"text": "done"}])
    assert seen == [b""]
    assert attempts(result) == [(1, "fresh", "crashed", "SIGKILL"), (2, "resumed", None, None)]


class Cells:
    """Gives one result after the other, and keeps what was ordered."""

    def __init__(self, *results: SessionResult) -> None:
        self.results = list(results)
        self.requests: list[SessionRequest] = []

    async def run(self, order: Order, _resources: object) -> SessionResult:
        self.requests.append(order.request)
        return self.results.pop(0)


@asynccontextmanager
async def nothing_shared() -> AsyncIterator[None]:
    yield


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Cells]:
    """Replaces cells by results."""

    def replace_by(*results: SessionResult) -> Cells:
        cells = Cells(*results)
        monkeypatch.setattr(isolated, "run_attempt", cells.run)
        monkeypatch.setattr(isolated, "sharing", nothing_shared)
        monkeypatch.setattr(isolated, "RetryPolicy", lambda max_attempts: RetryPolicy(max_attempts, first_delay=0.0))
        return cells

    return replace_by


async def test_without_a_subtask_there_is_one_attempt(running: Callable[..., Cells], tmp_path: Path) -> None:
    cells = running(DIED, DONE)
    answer = await run_agent_session_isolated(tmp_path, None, "coder", None, "go")
    assert answer == ("error", "killed by SIGKILL", TOKENS.model_dump())
    assert len(cells.requests) == 1


async def test_with_a_subtask_attempts_are_summed_up(running: Callable[..., Cells], tmp_path: Path) -> None:
    cells = running(DIED, DONE)
    status, text, usage = await run_agent_session_isolated(
        tmp_path, tmp_path / "spec", "coder", "m", "go", "Be brief.", 1000, "coder-1", None, "subtask-1"
    )
    assert (status, text) == ("continue", "done")
    assert usage == {
        "input_tokens": 4,
        "output_tokens": 2,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    }
    assert cells.requests == 2 * [
        SessionRequest(
            session_name="coder-1",
            agent_type="coder",
            project_dir=str(tmp_path),
            spec_dir=str(tmp_path / "spec"),
            model="m",
            starting_message="go",
            system_prompt="Be brief.",
            max_thinking_tokens=1000,
        )
    ]


async def test_max_retries_counts_all_attempts(running: Callable[..., Cells], tmp_path: Path) -> None:
    cells = running(DIED, DIED, DONE)
    answer = await run_agent_session_isolated(tmp_path, None, "coder", None, "go", subtask_id="s", max_retries=2)
    assert answer[0] == "error"
    assert len(cells.requests) == 2


@pytest.mark.parametrize("error", [session_error(Category.BAD_REQUEST, "x: y", hint="z", member="x", reason="y")])
async def test_what_the_cell_finds_wrong_with_the_request_is_raised(
    running: Callable[..., Cells], tmp_path: Path, error: SessionError
) -> None:
    running(failed(error))
    with pytest.raises(RequestError, match="x: y; z"):
        await run_agent_session_isolated(tmp_path, None, "nobody", None, "go")


async def test_less_than_one_attempt_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="max_retries must be positive"):
        await run_agent_session_isolated(tmp_path, None, "coder", None, "go", max_retries=0)
