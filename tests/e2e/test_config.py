"""Sessions share no config with the user or each other; their conversations are kept, and can be gone on with."""

import json
import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import pytest

from agentcell import Host
from agentcell.offline import Endpoint, offline_environment, offline_model
from agentcell.transcripts import kept_root
from agentcell_protocol.result import SessionResult

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

BOUND_SECONDS = 300

ANSWERS: dict[str, Any] = {"turns": [{"text": "Hello.", "times": "always"}]}

WRITES = {"tools": [{"name": "Bash", "input": {"command": 'echo "$CLAUDE_CONFIG_DIR" > seen; echo x > "$TMPDIR/t"'}}]}


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with offline_model(ANSWERS) as endpoint:
        yield endpoint


class User:
    """With a home, a place for temporary files, and a config of his own in use."""

    def __init__(self, path: Path) -> None:
        self.home, self.temporary = path / "home", path / "temporary"
        for directory in (self.home, self.temporary, self.home / ".claude", path / "p", path / "q"):
            directory.mkdir()
        (self.home / ".claude.json").write_text('{"numStartups": 7, "userID": "mine"}')

    def environment(self, endpoint: Endpoint) -> dict[str, str]:
        return {**offline_environment(endpoint, self.home, {"PATH": os.environ["PATH"]}), "TMPDIR": str(self.temporary)}

    def files(self) -> Mapping[str, bytes]:
        found = (path for path in self.home.rglob("*") if path.is_file() and ".local" not in path.parts)
        return {str(path.relative_to(self.home)): path.read_bytes() for path in found}


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


async def session(
    host: Host, user: User, endpoint: Endpoint, project: Path, *, keep: Any = True, **members: Any
) -> SessionResult:
    known = {"session_name": "a", "agent_type": "coder", "project_dir": str(project), "starting_message": "hi"}
    with anyio.fail_after(BOUND_SECONDS):
        return await host.run({**known, **members}, env=user.environment(endpoint), keep=keep)


def category(result: SessionResult) -> str | None:
    return None if result.error is None else result.error.category.value


def test_eight_sessions_at_once_leave_the_users_files_as_they_were(
    tmp_path: Path, user: User, endpoint: Endpoint
) -> None:
    before = user.files()
    results = []

    async def run(host: Host) -> None:
        results.append(await session(host, user, endpoint, tmp_path))

    async def main() -> None:
        async with Host(max_sessions=8, max_starts=8) as host, anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(run, host)

    anyio.run(main)
    assert [result.status for result in results] == ["complete"] * 8
    assert user.files() == before
    assert list(user.temporary.iterdir()) == []
    assert len({result.transcript for result in results}) == 8


def test_what_a_cell_has_to_itself_is_gone_and_its_conversation_is_kept_privately(tmp_path: Path, user: User) -> None:
    async def main(endpoint: Endpoint) -> SessionResult:
        async with Host() as host:
            return await session(host, user, endpoint, tmp_path / "p")

    with offline_model({"turns": [WRITES, {"text": "Done."}]}) as endpoint:
        result = anyio.run(main, endpoint)
    assert result.response == "Done."
    config = Path((tmp_path / "p/seen").read_text().strip())
    assert config.is_relative_to(user.temporary)
    assert list(user.temporary.iterdir()) == []
    transcript = Path(str(result.transcript))
    kept = kept_root({"HOME": str(user.home)})
    assert transcript.is_relative_to(kept / str(result.session_id))
    assert json.loads(transcript.read_text().splitlines()[-1])
    assert {path.stat().st_mode & 0o077 for path in (kept, *kept.rglob("*"))} == {0}


def test_a_conversation_is_gone_on_with_from_another_directory_and_again(
    tmp_path: Path, user: User, endpoint: Endpoint
) -> None:
    async def main() -> list[SessionResult]:
        async with Host() as host:
            go_on = partial(session, host, user, endpoint)
            first = await go_on(tmp_path / "p", starting_message="first")
            second = await go_on(tmp_path / "q", starting_message="second", resume=first.session_id)
            third = await go_on(tmp_path / "p", starting_message="third", resume=first.session_id)
        return [first, second, third]

    results = anyio.run(main)
    assert {(result.status, result.session_id, result.transcript) for result in results} == {
        ("complete", results[0].session_id, results[0].transcript)
    }
    assert {result.cost_usd for result in results} == {results[0].cost_usd}, "each costs what it cost itself"
    assert results[0].cost_usd
    asked = json.dumps([one.messages for one in endpoint.requests if one.kind == "turn"][-1])
    assert [word in asked for word in ("first", "second", "third")] == [True] * 3


def test_a_killed_session_can_be_gone_on_with_from_another_directory(tmp_path: Path, user: User) -> None:
    kill = {"tools": [{"name": "Bash", "input": {"command": "kill -9 $(cut -d' ' -f4 /proc/$PPID/stat)"}}]}
    with offline_model({"turns": [kill, {"text": "Went on.", "times": "always"}]}) as endpoint:

        async def main() -> tuple[SessionResult, SessionResult]:
            async with Host() as host:
                killed = await session(host, user, endpoint, tmp_path / "p", starting_message="before")
                return killed, await session(host, user, endpoint, tmp_path / "q", resume=killed.session_id)

        killed, resumed = anyio.run(main)
        asked = json.dumps(endpoint.requests[-1].messages)
    assert (category(killed), killed.signal) == ("crashed", "SIGKILL")
    assert (resumed.status, resumed.response, resumed.session_id) == ("complete", "Went on.", killed.session_id)
    assert "before" in asked


def test_ids_that_are_unknown_taken_or_in_use_are_named(tmp_path: Path, user: User) -> None:
    known, unknown = str(uuid4()), str(uuid4())
    results: dict[str, SessionResult] = {}

    async def main(endpoint: Endpoint) -> None:
        async with Host(2) as host:

            async def run(name: str, **members: Any) -> None:
                results[name] = await session(host, user, endpoint, tmp_path / "p", **members)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: run("one", session_id=known))
                tasks.start_soon(lambda: run("other", session_id=known))
            await run("again", session_id=known)
            await run("unknown", resume=unknown)

    with offline_model({"turns": [{"text": "Slow.", "delay": 1.0, "times": "always"}]}) as endpoint:
        anyio.run(main, endpoint)
    at_once = {category(results["one"]), category(results["other"])}
    assert at_once == {None, "unknown_session"}
    assert (category(results["again"]), category(results["unknown"])) == ("unknown_session", "unknown_session")
    assert results["again"].error is not None
    assert results["again"].error.message == f"the session id {known} was used before"
    ids = {name: result.session_id for name, result in results.items()}
    assert ids == {"one": known, "other": known, "again": known, "unknown": unknown}


def test_a_conversation_need_not_be_kept_or_may_be_kept_elsewhere(
    tmp_path: Path, user: User, endpoint: Endpoint
) -> None:
    async def main() -> tuple[SessionResult, ...]:
        async with Host() as host:
            run = partial(session, host, user, endpoint, tmp_path / "p")
            nowhere, there = await run(keep=False), await run(keep=tmp_path / "kept")
            return nowhere, there, await run(keep=tmp_path / "kept", resume=there.session_id)

    nowhere, there, again = anyio.run(main)
    assert (nowhere.status, nowhere.transcript) == ("complete", None)
    assert again.transcript == there.transcript
    assert Path(str(there.transcript)).is_relative_to(tmp_path / "kept" / str(there.session_id))
    assert not kept_root({"HOME": str(user.home)}).exists()
