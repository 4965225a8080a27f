"""What surrounds a host does not reach its agents, and what lies in a project does not reach the worker."""

import json
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest
from tests.e2e.scenes import Scene, play

from agentcell import run_session
from agentcell.offline import Endpoint, offline_environment, offline_model
from agentcell_protocol.result import SessionResult

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

BOUND_SECONDS = 60

SHOW = {"tools": [{"name": "Bash", "input": {"command": "env > seen.txt"}}]}

SECRETS = {
    "AWS_SECRET_ACCESS_KEY": "outer",
    "GITHUB_TOKEN": "outer",
    "DATABASE_URL": "outer",
    "ANTHROPIC_OUTER": "kept",
}

ENCLOSING = {
    "CLAUDECODE": "outer",
    "CLAUDE_CODE_ENTRYPOINT": "outer",
    "CLAUDE_CODE_SSE_PORT": "outer",
    "CLAUDE_CODE_SESSION_ID": "outer",
    "CLAUDE_CODE_SESSION_ACCESS_TOKEN": "outer",
    "CLAUDE_CODE_CHILD_SESSION": "outer",
    "CLAUDE_CODE_EXECPATH": "outer",
    "CLAUDE_CODE_REMOTE": "outer",
    "CLAUDE_CODE_CONTAINER_ID": "outer",
    "CLAUDE_CODE_TMPDIR": "/outer",
    "PYTHONPATH": "/outer",
    "AGENTCELL_CELL": "outer",
}

TRAP = "import pathlib; (pathlib.Path(__file__).parent / 'imported').touch(); raise SystemExit(99)"


async def session(endpoint: Endpoint, project: Path, home: Path) -> SessionResult:
    request = {"session_name": "a", "agent_type": "coder", "project_dir": str(project), "starting_message": "go"}
    with anyio.fail_after(BOUND_SECONDS):
        return await run_session(request, env=offline_environment(endpoint, home), pass_env=["DATABASE_URL"])


def seen(project: Path) -> Mapping[str, str]:
    lines = (project / "seen.txt").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def test_secrets_and_markers_of_an_enclosing_session_stay_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**SECRETS, **ENCLOSING}.items():
        monkeypatch.setenv(name, value)
    with offline_model({"turns": [SHOW, {"text": "Seen."}]}) as endpoint:
        result = anyio.run(session, endpoint, tmp_path, tmp_path)
    variables = seen(tmp_path)
    assert (result.status, result.response) == ("complete", "Seen.")
    assert {name for name, value in variables.items() if value in {"outer", "/outer"}} == {"DATABASE_URL"}
    assert variables["ANTHROPIC_OUTER"] == "kept"
    assert "AGENTCELL_DRAIN_SECONDS" not in variables
    assert variables["AGENTCELL_CELL"]


def test_no_module_of_the_project_is_ever_imported(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    home.mkdir()
    for name in ("json", "worker", "agentcell_worker", "agentcell_protocol", "pydantic", "sitecustomize", "asyncio"):
        (project / f"{name}.py").write_text(TRAP)
    with offline_model({"turns": [{"text": "Safe."}]}) as endpoint:
        result = anyio.run(session, endpoint, project, home)
    assert (result.status, result.response) == ("complete", "Safe.")
    assert not (project / "imported").exists()


HOOKS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "Stop", "SessionEnd")


def hooks(place: str) -> str:
    """Settings whose hooks leave a trace in the project when a session starts, uses a tool or ends."""
    traces = {event: [{"type": "command", "command": f"touch {place}-{event}"}] for event in HOOKS}
    named = {event: [{"hooks": commands}] for event, commands in traces.items()}
    return json.dumps({"hooks": named, "env": {"FROM_SETTINGS": place}})


FILES = {".claude/settings.json": hooks("project"), "CLAUDE.md": "The memory of the project."}
"""What lies in a repository."""

HOME_FILES = {".claude/settings.json": hooks("user"), ".claude/CLAUDE.md": "The memory of the user."}
"""What lies in the home of a user."""

SETTINGS = {
    "unasked": Scene([SHOW, {"text": "Seen."}], files=FILES, home_files=HOME_FILES),
    "asked": Scene(
        [SHOW, {"text": "Seen."}], {"setting_sources": ["user", "project"]}, files=FILES, home_files=HOME_FILES
    ),
}


def test_settings_hooks_and_memories_act_only_when_asked_for(tmp_path: Path) -> None:
    played = play(SETTINGS, tmp_path)
    acted = {}
    for name, ended in played.items():
        assert (ended.result.status, ended.result.response) == ("complete", "Seen.")
        traces = {entry.name for entry in ended.project.iterdir()} - {".claude", "CLAUDE.md", "seen.txt"}
        memories = [
            whose for whose in ("project", "user") if f"The memory of the {whose}." in str(ended.requests[0].body)
        ]
        acted[name] = (traces, memories, "FROM_SETTINGS" in seen(ended.project))
    started = {f"{place}-{event}" for place in ("project", "user") for event in HOOKS}
    assert acted["unasked"] == (set(), [], False)
    assert started <= acted["asked"][0]
    assert acted["asked"][1:] == (["project", "user"], True)
