"""The doctor: each check by itself, and the report."""

import importlib.metadata
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
from click.testing import CliRunner

from agentcell import doctor
from agentcell.cli import agentcell
from agentcell.doctor import Finding
from agentcell.limits import Limits
from agentcell_protocol.errors import Category, session_error
from agentcell_protocol.request import SessionRequest
from agentcell_protocol.result import SessionResult, failed


class Memory(NamedTuple):
    """Of what psutil tells, what is looked at."""

    available: int


ROOT, SOMEBODY = 0, 1000


def test_this_python_is_fine() -> None:
    finding = doctor.check_python()
    assert (finding.grade, finding.remedy) == ("ok", "")
    assert sys.executable in finding.found


def test_an_old_python_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 0))
    finding = doctor.check_python()
    assert (finding.grade, finding.remedy) == ("problem", "install Python 3.11 or newer")


@pytest.mark.parametrize(
    ("version", "finding"),
    [
        ("0.2.7", Finding("SDK", "ok", "claude-agent-sdk 0.2.7")),
        ("0.3.0", Finding("SDK", "warning", "claude-agent-sdk 0.3.0", "this version is made for 0.2.*")),
        (None, Finding("SDK", "problem", "claude-agent-sdk is not installed", "pip install claude-agent-sdk")),
    ],
)
def test_the_sdk_is_looked_up_by_its_version(
    monkeypatch: pytest.MonkeyPatch, version: str | None, finding: Finding
) -> None:
    def look_up(name: str) -> str:
        if version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(importlib.metadata, "version", look_up)
    assert doctor.check_sdk() == finding


def test_without_the_sdk_the_cli_is_looked_for_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "bundled_cli", lambda: None)
    cli = _executable(tmp_path / "claude", "echo 1")
    assert doctor.find_cli({"PATH": str(tmp_path)}) == cli
    assert doctor.find_cli({"PATH": str(tmp_path / "nowhere")}) is None


def test_a_cli_that_runs_tells_its_version(tmp_path: Path) -> None:
    cli = _executable(tmp_path / "claude", "echo 1.2.3 $CLAUDECODE")
    assert doctor.check_cli(cli, {"CLAUDECODE": "inside"}) == Finding("CLI", "ok", f"1.2.3 at {cli}")


def test_no_cli_is_a_problem() -> None:
    assert doctor.check_cli(None, {}) == Finding(
        "CLI",
        "problem",
        "neither with the SDK nor on the PATH",
        "pip install --force-reinstall claude-agent-sdk, or install Claude Code",
    )


@pytest.mark.parametrize(
    ("content", "mode", "found"),
    [
        ("#!/bin/sh\nexit 3\n", 0o755, "--version ended with 3"),
        ("#!/bin/sh\nkill -SEGV $$\n", 0o755, "--version ended with -11"),
        ("#!/bin/sh\nexit 0\n", 0o644, "does not start: Permission denied"),
        ("#!/nowhere\n", 0o755, "does not start: No such file or directory"),
        ("no program", 0o755, "does not start: Exec format error"),
    ],
)
def test_a_cli_that_does_not_run_is_a_problem(tmp_path: Path, content: str, mode: int, found: str) -> None:
    cli = tmp_path / "claude"
    cli.write_text(content)
    cli.chmod(mode)
    remedy = f"run {cli} --version by hand; reinstall claude-agent-sdk if it fails"
    assert doctor.check_cli(cli, {}) == Finding("CLI", "problem", f"{cli} {found}", remedy)


def test_a_cli_that_says_nothing_is_a_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "VERSION_SECONDS", 0.2)
    cli = _executable(tmp_path / "claude", "exec sleep 60")
    finding = doctor.check_cli(cli, {"PATH": os.environ["PATH"]})
    assert (finding.grade, finding.found) == ("problem", f"{cli} gave no version within 0 s")


@pytest.mark.parametrize(
    ("environment", "grade", "found"),
    [
        ({}, "warning", "none found"),
        ({"ANTHROPIC_API_KEY": ""}, "warning", "none found"),
        ({"ANTHROPIC_API_KEY": "secret"}, "ok", "ANTHROPIC_API_KEY"),
        ({"CLAUDE_CODE_OAUTH_TOKEN": "secret"}, "ok", "CLAUDE_CODE_OAUTH_TOKEN"),
        ({"CLAUDE_CODE_USE_VERTEX": "1"}, "ok", "CLAUDE_CODE_USE_VERTEX"),
        ({"CLAUDE_CODE_USE_VERTEX": "0"}, "warning", "none found"),
        (
            {"ANTHROPIC_API_KEY": "secret", "ANTHROPIC_AUTH_TOKEN": "secret"},
            "warning",
            "ANTHROPIC_AUTH_TOKEN, ANTHROPIC_API_KEY",
        ),
    ],
)
def test_credentials_are_told_by_their_names(
    tmp_path: Path, environment: dict[str, str], grade: str, found: str
) -> None:
    finding = doctor.check_credentials({"HOME": str(tmp_path), **environment})
    assert (finding.grade, finding.found, bool(finding.remedy)) == (grade, found, grade != "ok")


@pytest.mark.parametrize("variable", ["HOME", "CLAUDE_CONFIG_DIR"])
def test_a_login_is_a_credential(tmp_path: Path, variable: str) -> None:
    config = tmp_path / ".claude" if variable == "HOME" else tmp_path
    config.mkdir(exist_ok=True)
    (config / ".credentials.json").touch()
    finding = doctor.check_credentials({variable: str(tmp_path)})
    assert finding == Finding("credentials", "ok", f"the login in {config}/.credentials.json")


@pytest.mark.parametrize(
    ("uid", "environment", "grade"),
    [
        (SOMEBODY, {}, "ok"),
        (ROOT, {}, "warning"),
        (ROOT, {"IS_SANDBOX": "true"}, "warning"),
        (ROOT, {"IS_SANDBOX": "1"}, "ok"),
    ],
)
def test_root_may_not_use_every_permission_mode(
    monkeypatch: pytest.MonkeyPatch, uid: int, environment: dict[str, str], grade: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    finding = doctor.check_user(environment)
    assert (finding.grade, bool(finding.remedy)) == (grade, grade != "ok")


@pytest.mark.parametrize(
    ("has_it", "environment", "grade"),
    [(True, {}, "ok"), (False, {}, "warning"), (False, {"CLAUDE_CODE_SUBPROCESS_ENV_SCRUB": "1"}, "problem")],
)
def test_bubblewrap_is_a_problem_only_where_it_is_needed(
    tmp_path: Path, has_it: bool, environment: dict[str, str], grade: str
) -> None:
    if has_it:
        _executable(tmp_path / "bwrap", "true")
    finding = doctor.check_bubblewrap({"PATH": str(tmp_path), **environment})
    assert (finding.grade, bool(finding.remedy)) == (grade, grade != "ok")


@pytest.mark.parametrize(
    ("free", "grade", "found"),
    [
        (3000, "ok", "3,000 MB free: room for about 10 small sessions at once"),
        (700, "warning", "700 MB free: room for about 2 small sessions at once"),
        (200, "problem", "200 MB free: room for about 0 small sessions at once"),
    ],
)
def test_memory_is_counted_in_sessions(monkeypatch: pytest.MonkeyPatch, free: int, grade: str, found: str) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: Memory(free * doctor.MIB))
    monkeypatch.setattr(doctor, "CONTAINER_LIMIT", Path("/nowhere"))
    finding = doctor.check_memory()
    assert (finding.grade, finding.found, bool(finding.remedy)) == (grade, found, grade != "ok")


@pytest.mark.parametrize(("limit", "free"), [("max\n", "3,000"), (f"{2000 * doctor.MIB}\n", "2,000")])
def test_memory_is_no_more_than_a_container_may_have(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: str, free: str
) -> None:
    (tmp_path / "memory.max").write_text(limit)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: Memory(3000 * doctor.MIB))
    monkeypatch.setattr(doctor, "CONTAINER_LIMIT", tmp_path / "memory.max")
    assert doctor.check_memory().found.startswith(f"{free} MB free: ")


def test_a_temp_directory_that_takes_files_is_fine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert doctor.check_temp_directory() == Finding("temp directory", "ok", str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_temp_directory_that_takes_none_is_a_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    finding = doctor.check_temp_directory()
    assert (finding.grade, finding.remedy) == ("problem", "set TMPDIR to a directory that can be written")


def test_the_state_directory_is_looked_at_and_not_created(tmp_path: Path) -> None:
    state = Finding("state directory", "ok", str(tmp_path / "state" / "agentcell"))
    assert doctor.check_state_directory({"XDG_STATE_HOME": str(tmp_path / "state")}) == state
    home = Finding("state directory", "ok", str(tmp_path / ".local/state/agentcell"))
    assert doctor.check_state_directory({"HOME": str(tmp_path)}) == home
    assert list(tmp_path.iterdir()) == []


def test_a_state_directory_that_is_a_file_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    finding = doctor.check_state_directory({"XDG_STATE_HOME": str(tmp_path / "state")})
    assert (finding.grade, finding.found) == ("warning", f"{tmp_path}/state cannot be written")


@pytest.mark.parametrize(
    ("result", "finding"),
    [
        (
            SessionResult(status="complete", response="all is well", session_name="doctor", execution_time=1.25),
            Finding("session", "ok", "one offline session: complete in 1.2 s"),
        ),
        (
            failed(session_error(Category.CLI_FAILED, "the CLI died", hint="reinstall it")),
            Finding("session", "problem", "cli_failed: the CLI died", "reinstall it"),
        ),
        (
            failed(session_error(Category.CRASHED, "the worker died"), stderr_tail="1\n2\n3\n4\n5\n6"),
            Finding(
                "session",
                "problem",
                "crashed: the worker died",
                "look at the end of the cell's stderr:\n2\n3\n4\n5\n6",
            ),
        ),
    ],
)
def test_a_session_is_run_offline(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, result: SessionResult, finding: Finding
) -> None:
    seen = {}

    async def run(
        _request: SessionRequest, _limits: Limits, environment: dict[str, str], _on_event: None, keep: bool
    ) -> SessionResult:
        assert not keep
        seen.update(environment)
        return result

    monkeypatch.setattr(doctor, "run_until_signalled", run)
    assert doctor.check_session({"HOME": str(tmp_path), "ANTHROPIC_API_KEY": "secret"}) == finding
    assert seen["HOME"] != str(tmp_path)
    assert "secret" not in seen.values()


@pytest.mark.parametrize(("grade", "code"), [("ok", 0), ("warning", 0), ("problem", 1)])
@pytest.mark.parametrize("option", [[], ["--json"]])
def test_only_a_problem_is_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, grade: doctor.Grade, code: int, option: list[str]
) -> None:
    findings = [Finding("memory", "ok", "plenty"), Finding("CLI", grade, "a [bold] thing", "do this")]
    monkeypatch.setattr(doctor, "examine", lambda _environment: iter(findings))
    ended = CliRunner().invoke(agentcell, ["doctor", *option])
    assert ended.exit_code == code
    if option:
        assert [Finding(**json.loads(line)) for line in ended.stdout.splitlines()] == findings
    else:
        lines = [line.split() for line in ended.stdout.splitlines()]
        assert lines == [
            ["ok", "memory", "plenty"],
            [grade, "CLI", "a", "[bold]", "thing"],
            ["→", "do", "this"],
        ]


def test_every_check_is_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "check_session", lambda _environment: Finding("session", "ok", "well"))
    monkeypatch.setattr(doctor, "find_cli", lambda _environment: None)
    subjects = [finding.subject for finding in doctor.examine({"HOME": str(tmp_path)})]
    assert subjects == [
        "Python",
        "SDK",
        "CLI",
        "credentials",
        "user",
        "bubblewrap",
        "memory",
        "temp directory",
        "state directory",
        "session",
    ]


def _executable(path: Path, command: str) -> Path:
    path.write_text(f"#!{shutil.which('sh')}\n{command}\n")
    path.chmod(0o755)
    return path
