"""What a cell finds around it depends on where its credentials come from."""

import errno
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import pytest
from tests.faults.endurance import forking
from tests.faults.harness import KEY

from agentcell import Host
from agentcell.scratch import PREFIX
from agentcell.surroundings import Surroundings
from agentcell.transcripts import OccupiedError, kept_root
from agentcell_protocol.request import SessionRequest, parse_request
from agentcell_protocol.result import SessionResult

ID = str(uuid4())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / ".claude/agents").mkdir(parents=True)
    (home / ".claude/settings.json").write_text("{}")
    (home / ".claude/.credentials.json").write_text("{}")
    return home


def request(home: Path, **members: Any) -> SessionRequest:
    known = {"session_name": "a", "agent_type": "coder", "project_dir": str(home), "starting_message": "hi"}
    return parse_request({**known, "session_id": ID, **members})


def environment(home: Path, **variables: str) -> Mapping[str, str]:
    return {"HOME": str(home), "TMPDIR": str(home.parent), **variables}


def done(session_id: str = ID) -> SessionResult:
    return SessionResult(status="complete", response="done", session_name="a", session_id=session_id)


def test_with_a_key_the_config_is_the_cells_own_and_empty(home: Path) -> None:
    with Surroundings(request(home), environment(home, ANTHROPIC_API_KEY=KEY)) as around:
        config = Path(around.variables["CLAUDE_CONFIG_DIR"])
        temporary = Path(around.variables["TMPDIR"])
        assert [path.name for path in config.iterdir()] == ["projects"]
        assert [oct(path.stat().st_mode & 0o777) for path in (config, config / "projects", temporary)] == ["0o700"] * 3
        assert around.variables == {
            "TMPDIR": str(temporary),
            "CLAUDE_CODE_TMPDIR": str(temporary),
            "CLAUDE_CONFIG_DIR": str(config),
        }
        around.clear()
        assert not config.exists()
    assert list(kept_root(environment(home)).iterdir()) == []


def test_what_others_have_left_is_removed_now_and_then(home: Path) -> None:
    variables, long_ago = environment(home, ANTHROPIC_API_KEY=KEY), time.time() - 30 * 24 * 3600

    def left_after_a_cell() -> list[bool]:
        others = [home.parent / f"{PREFIX}left", kept_root(variables) / str(uuid4())]
        for directory in others:
            directory.mkdir(parents=True, exist_ok=True)
            os.utime(directory, (long_ago, long_ago))
        with Surroundings(request(home), variables) as around:
            around.clear()
        return [directory.exists() for directory in others]

    assert [left_after_a_cell(), left_after_a_cell()] == [[False, False], [True, True]]


@pytest.mark.parametrize(
    ("variables", "own", "is_private"),
    [
        ({}, None, False),
        ({"ANTHROPIC_API_KEY": ""}, None, False),
        ({"ANTHROPIC_AUTH_TOKEN": "t"}, None, True),
        ({"CLAUDE_CODE_OAUTH_TOKEN": "t"}, None, True),
        ({"CLAUDE_CODE_USE_BEDROCK": "1"}, None, True),
        ({"CLAUDE_CODE_USE_BEDROCK": "0"}, None, False),
        ({}, {"ANTHROPIC_API_KEY": KEY}, True),
        ({"ANTHROPIC_API_KEY": KEY}, {"CLAUDE_CONFIG_DIR": "/c"}, False),
    ],
)
def test_without_credentials_in_variables_the_config_is_the_users(
    home: Path, variables: dict[str, str], own: dict[str, str] | None, is_private: bool
) -> None:
    with Surroundings(request(home, env=own), environment(home, **variables), is_fresh=True) as around:
        assert ("CLAUDE_CONFIG_DIR" in around.variables) is is_private


def test_the_users_settings_are_there_when_they_are_asked_for(home: Path) -> None:
    asked = request(home, setting_sources=["user"])
    with Surroundings(asked, environment(home, ANTHROPIC_API_KEY=KEY)) as around:
        config = Path(around.variables["CLAUDE_CONFIG_DIR"])
        assert sorted(path.name for path in config.iterdir()) == ["agents", "projects", "settings.json"]
        assert (config / "settings.json").read_text() == "{}"
    assert (home / ".claude/settings.json").read_text() == "{}"


@pytest.mark.parametrize("variables", [{"ANTHROPIC_API_KEY": KEY}, {}])
def test_an_id_that_somebody_has_is_refused(home: Path, variables: dict[str, str]) -> None:
    around = environment(home, **variables)
    with Surroundings(request(home), around), pytest.raises(OccupiedError), Surroundings(request(home), around):
        pass
    with Surroundings(request(home), around):
        pass


def test_a_conversation_moves_between_the_users_config_and_the_kept_ones(home: Path) -> None:
    with_key, with_login = environment(home, ANTHROPIC_API_KEY=KEY), environment(home)
    resume = request(home, session_id=None, resume=ID)
    (home / ".claude/projects/-p").mkdir(parents=True)
    file = home / f".claude/projects/-p/{ID}.jsonl"
    file.write_text("said")
    with Surroundings(resume, with_key) as around:
        config = Path(around.variables["CLAUDE_CONFIG_DIR"])
        assert (config / f"projects/-p/{ID}.jsonl").read_text() == "said"
        around.clear()
        kept = kept_root(with_key) / ID / "-p" / f"{ID}.jsonl"
        assert around.described(done()).transcript == str(kept)
    file.unlink()
    with Surroundings(resume, with_login) as around:
        assert around.described(done()).transcript == str(file)
    assert file.read_text() == "said"


def test_where_nothing_can_be_kept_the_session_runs_and_is_told(home: Path) -> None:
    (home / ".local").write_text("in the way")
    with Surroundings(request(home), environment(home, ANTHROPIC_API_KEY=KEY)) as around:
        project = Path(around.variables["CLAUDE_CONFIG_DIR"], "projects/-p")
        project.mkdir()
        (project / f"{ID}.jsonl").touch()
        result = around.described(done())
    assert ([notice.code for notice in result.warnings], result.transcript) == (["transcript_not_kept"], None)


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_hundred_sessions_leave_no_files(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentcell.resources.starting", forking)  # each starts in milliseconds
    around = environment(home, ANTHROPIC_API_KEY=KEY)
    members = {"session_name": "a", "agent_type": "coder", "project_dir": str(home), "starting_message": "hi"}
    asked = {**members, "context": {"stand_in": [{"text": "done"}]}}

    async def run(host: Host) -> None:
        assert (await host.run(asked, env=around, keep=False)).response == "done"

    async with Host(max_sessions=10) as host, anyio.create_task_group() as tasks:
        for _ in range(100):
            tasks.start_soon(run, host)
    assert [path.name for path in home.parent.iterdir()] == ["home"]
    assert not kept_root(around).exists()


def test_a_session_ends_though_there_is_no_descriptor_to_look_at_what_it_left(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def glob(path: Path, pattern: str) -> list[Path]:
        raise OSError(errno.EMFILE, "Too many open files", str(path))

    with Surroundings(request(home), environment(home, ANTHROPIC_API_KEY=KEY)) as around:
        monkeypatch.setattr(Path, "glob", glob)
        around.clear()
        assert around.described(done()) == done()
