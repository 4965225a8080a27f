"""Sessions with the real SDK start a few at a time, and a CLI that does not come up is named in time."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.worker import script
from tests.worker.script import Step, fake_cli, scripted

from agentcell import Host, Limits, forkserver
from agentcell_protocol.cell import Start
from agentcell_protocol.errors import Category
from agentcell_protocol.result import SessionResult

pytestmark = pytest.mark.slow

on_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"])

BOUND_SECONDS = 60

STARTUP_SECONDS = 10
"""For a worker to start, and for its CLI not to."""

SESSIONS = 40

STARTS_SECONDS = 30
"""For one session at least so many: the CLI that is played answers at once."""


LAST_WORDS: Step = {"stderr": "cannot go on with hunter22-secret\n"}

CLIS: dict[str, list[Step] | None] = {
    "never answers": [{"stderr": "still trying with hunter22-secret and sk-ant-test\n"}, {"hang": True}],
    "exits": [LAST_WORDS, {"exit": 126}],
    "crashes": [LAST_WORDS, {"signal": "SIGSEGV"}],
    "is not there": None,
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SessionResult]:
    """How a session with each of these ends, all at once."""
    folder = tmp_path_factory.mktemp("starts")
    results: dict[str, SessionResult] = {}

    async def run(host: Host, name: str, steps: list[Step] | None) -> None:
        env = {**scripted(steps or []), "MY_TOKEN": "hunter22-secret"}
        cli = fake_cli(folder) if steps else str(folder / "nowhere")
        asked = script.request(folder, cli_path=cli, env=env)
        limits = Limits(startup_seconds=STARTUP_SECONDS)
        results[name] = await host.run(asked, limits=limits, env=script.environment(folder))

    async def main() -> None:
        with anyio.fail_after(BOUND_SECONDS):
            async with Host(len(CLIS), max_starts=len(CLIS)) as host, anyio.create_task_group() as tasks:
                for name, steps in CLIS.items():
                    tasks.start_soon(run, host, name, steps)

    anyio.run(main)
    return results


def test_a_cli_that_never_answers_meets_the_startup_limit(found: dict[str, SessionResult]) -> None:
    ended = found["never answers"]
    assert ended.error is not None
    assert (ended.error.category, ended.error.details["limit"]) == (Category.TIMEOUT, "startup")
    assert ended.error.retryable
    assert ended.violated_limits == ["startup_seconds"]
    assert str(ended.stderr_tail).endswith("still trying with [masked] and [masked]\n")


@pytest.mark.parametrize(("name", "words"), [("exits", "exited with code 126"), ("crashes", "was ended by SIGSEGV")])
def test_a_cli_that_ends_at_once_is_named_with_its_last_words(
    found: dict[str, SessionResult], name: str, words: str
) -> None:
    ended = found[name]
    assert ended.error is not None
    assert (ended.error.category, ended.response) == (
        Category.CLI_FAILED,
        f"the CLI {words}: cannot go on with [masked]",
    )
    assert ended.error.details["stderr_tail"] == "cannot go on with [masked]"
    assert ended.session_id is not None


@pytest.mark.anyio
@on_asyncio
@pytest.mark.parametrize(
    ("start", "can_fork", "how"), [("fork", True, "fork"), ("fork", False, "cold"), ("cold", True, "cold")]
)
async def test_a_host_forks_its_workers_where_that_can_be_and_is_not_unwanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: Start, can_fork: bool, how: str
) -> None:
    monkeypatch.setattr(forkserver, "can_fork", lambda: can_fork)
    heard: list[Any] = []
    asked = script.request(tmp_path, cli_path=fake_cli(tmp_path), env=scripted(script.SUCCESS))
    with anyio.fail_after(BOUND_SECONDS):
        async with Host(start=start) as host:
            ended = await host.run(asked, env=script.environment(tmp_path), on_event=heard.append)
    assert (ended.response, ended.start, heard[0]["start"], ended.exit_code) == ("hello", how, how, 0)


def test_a_cli_that_is_not_there_is_named(found: dict[str, SessionResult]) -> None:
    ended = found["is not there"]
    assert ended.error is not None
    assert ended.error.category is Category.CLI_NOT_FOUND
    assert "/nowhere" in ended.response


class Starts:
    """Counts the sessions that have greeted and not yet started."""

    def __init__(self) -> None:
        self.now = self.most = 0

    def hear(self, event: dict[str, Any]) -> None:
        self.now += {"hello": 1, "session_started": -1}.get(event["type"], 0)
        self.most = max(self.most, self.now)


@pytest.mark.anyio
@on_asyncio
async def test_forty_sessions_at_once_start_a_few_at_a_time_and_so_all_of_them_start(tmp_path: Path) -> None:
    asked = script.request(tmp_path, cli_path=fake_cli(tmp_path), env=scripted(script.SUCCESS))
    starts = Starts()
    results: list[SessionResult] = []

    async def run(host: Host) -> None:
        results.append(await host.run(asked, env=script.environment(tmp_path), on_event=starts.hear))

    with anyio.fail_after(BOUND_SECONDS):
        async with Host(SESSIONS) as host, anyio.create_task_group() as tasks:
            for _ in range(SESSIONS):
                tasks.start_soon(run, host)
    assert [result.response for result in results] == ["hello"] * SESSIONS
    assert (starts.now, 0 < starts.most <= (os.cpu_count() or 1)) == (0, True)
    assert max(result.execution_time for result in results) < STARTS_SECONDS
    assert sorted(os.listdir(tmp_path)) == [".local", "claude"]  # noqa: PTH208
