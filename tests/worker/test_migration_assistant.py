"""The checkpoints of a migration: whether they lead back, and what may be odd about them."""

import os
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.worker.flows import NO_GIT, Model, install

from agentcell_worker.agents.migration_assistant import _plan, run_migration_assistant
from agentcell_worker.agents.sessions import Sessions
from agentcell_worker.checks import git
from agentcell_worker.checks.checkpoints import is_commit_file, validate_migration_checkpoint

SECONDS = 30

NOBODY = "0123456789abcdef0123456789abcdef01234567"
"""An id that is no commit's."""


def run_git(project: Path, *arguments: str) -> str:
    """Git as it is where nobody has configured it; what it prints."""
    names = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    nothing = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "HOME": str(project)}
    environment = {"PATH": os.environ["PATH"], **nothing, **names}
    ended = subprocess.run(
        ["git", *arguments], cwd=project, env=environment, capture_output=True, timeout=SECONDS, check=True
    )
    return ended.stdout.decode().strip()


def repository(project: Path) -> str:
    """Makes a repository with one commit, whose id it gives."""
    run_git(project, "init", "--quiet")
    run_git(project, "commit", "--quiet", "--allow-empty", "--message", "begin")
    return run_git(project, "rev-parse", "HEAD")


def checkpoint(project: Path, number: int | str, commit: str | bytes, *, mode: int = 0o755) -> Path:
    """Makes a checkpoint; the directory of all of them."""
    folder = project / ".migration-checkpoints"
    (folder / "rollback").mkdir(parents=True, exist_ok=True)
    file = folder / f"checkpoint-{number}-commit.txt"
    file.write_bytes(commit if isinstance(commit, bytes) else commit.encode())
    script = folder / "rollback" / f"checkpoint-{number}.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(mode)
    return folder


def found(project: Path) -> dict[str, Any]:
    """What is said of the project's checkpoints."""
    return validate_migration_checkpoint(project / ".migration-checkpoints", project)


def issues(project: Path) -> list[str]:
    """What is wrong with the project's checkpoints."""
    said = found(project)
    assert said["valid"] == (not said["issues"])
    return [issue.removeprefix(".migration-checkpoints/") for issue in said["issues"]]


def test_a_checkpoint_that_leads_back_is_valid(tmp_path: Path) -> None:
    commit = repository(tmp_path)
    checkpoint(tmp_path, "001", commit + "\n")
    assert found(tmp_path) == {
        "valid": True,
        "issues": [],
        "checkpoint_info": {
            "file": ".migration-checkpoints/checkpoint-001-commit.txt",
            "commit": commit,
            "commit_exists": True,
            "count": 1,
            "rollback_scripts": [".migration-checkpoints/rollback/checkpoint-001.sh"],
        },
    }


def test_without_a_repository_the_commit_is_not_looked_up(tmp_path: Path) -> None:
    checkpoint(tmp_path, "001", "r1234\n")
    said = found(tmp_path)
    assert (said["valid"], said["issues"]) == (True, [])
    assert (said["checkpoint_info"]["commit"], said["checkpoint_info"]["commit_exists"]) == ("r1234", None)


def test_what_git_refuses_to_say_could_not_be_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = repository(tmp_path)
    checkpoint(tmp_path, "001", commit)
    answers = {
        "echo 'fatal: detected dubious ownership' >&2; exit 128": "fatal: detected dubious ownership",
        "exit 3": "git ended with exit code 3",
        "exec sleep 600": "git did not answer within 0.05 s",
    }
    for script, reason in answers.items():
        monkeypatch.setattr(git, "GIT_SECONDS", 0.05 if "sleep" in script else SECONDS)
        put_git(tmp_path / "bin", script, monkeypatch)
        assert issues(tmp_path) == [f"checkpoint-001-commit.txt: {commit} could not be checked: {reason}"]
        assert found(tmp_path)["checkpoint_info"]["commit_exists"] is None


def test_without_git_a_repository_could_not_be_checked_and_another_place_needs_no_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for project in (inside, outside):
        project.mkdir()
    checkpoint(inside, "001", commit := repository(inside))
    checkpoint(outside, "001", commit)
    monkeypatch.setenv("PATH", str(tmp_path))
    why = f"{commit} could not be checked: git does not start: No such file or directory"
    assert (issues(inside), issues(outside)) == ([f"checkpoint-001-commit.txt: {why}"], [])


def put_git(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts another git before the usual one."""
    folder.mkdir(exist_ok=True)
    (folder / "git").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_there_is_no_directory(tmp_path: Path) -> None:
    assert found(tmp_path) == {
        "valid": False,
        "issues": [".migration-checkpoints: there is no such directory"],
        "checkpoint_info": {},
    }


def test_there_are_no_commit_files(tmp_path: Path) -> None:
    (checkpoint(tmp_path, "001", NOBODY) / "checkpoint-001-commit.txt").unlink()
    assert issues(tmp_path) == [".migration-checkpoints: has no checkpoint-*-commit.txt"]
    assert found(tmp_path)["checkpoint_info"] == {}


def test_an_empty_directory_lacks_everything(tmp_path: Path) -> None:
    (tmp_path / ".migration-checkpoints").mkdir()
    assert issues(tmp_path) == [
        ".migration-checkpoints: has no checkpoint-*-commit.txt",
        "rollback: there is no such directory",
    ]


def test_there_is_no_rollback_directory(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, "001", NOBODY)
    (folder / "rollback" / "checkpoint-001.sh").unlink()
    (folder / "rollback").rmdir()
    assert issues(tmp_path) == ["rollback: there is no such directory"]
    assert found(tmp_path)["checkpoint_info"]["rollback_scripts"] == []


def test_there_is_no_rollback_script(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, "001", NOBODY)
    (folder / "rollback" / "checkpoint-001.sh").rename(folder / "rollback" / "undo.sh")
    assert issues(tmp_path) == ["rollback: has no checkpoint-*.sh"]


def test_each_script_that_is_not_executable_is_named(tmp_path: Path) -> None:
    for number, mode in (("001", 0o644), ("002", 0o755), ("003", 0o600)):
        folder = checkpoint(tmp_path, number, NOBODY, mode=mode)
    (folder / "rollback" / "checkpoint-004.sh").mkdir()
    assert issues(tmp_path) == [
        "rollback/checkpoint-001.sh: is not executable",
        "rollback/checkpoint-003.sh: is not executable",
        "rollback/checkpoint-004.sh: is no file",
    ]


@pytest.mark.parametrize(
    ("numbers", "latest"),
    [
        (["001", "003", "002"], "003"),
        (["1", "2", "10"], "10"),
        (["20260101-1200", "20260102-0900", "20251231-2359"], "20260102-0900"),
        (["1-begin", "2-models", "2-views"], "2-views"),
        (["02", "2", "1"], "2"),
    ],
)
def test_the_latest_of_three_is_looked_at(tmp_path: Path, numbers: list[str], latest: str) -> None:
    commit = repository(tmp_path)
    for number in numbers:
        checkpoint(tmp_path, number, commit if number == latest else NOBODY)
    said = found(tmp_path)
    assert (said["valid"], said["issues"]) == (True, [])
    info = said["checkpoint_info"]
    assert (info["file"], info["count"]) == (f".migration-checkpoints/checkpoint-{latest}-commit.txt", 3)
    assert len(info["rollback_scripts"]) == 3


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        (b"\xff\xfe", "is not UTF-8"),
        (NOBODY, f"{NOBODY} is no commit of this repository"),
        ("HEAD", "HEAD is no commit of this repository"),
        ("--batch", "--batch is no commit of this repository"),
        ("abc", "abc is no commit of this repository"),
        ("-e" + NOBODY, f"-e{NOBODY} is no commit of this repository"),
    ],
)
def test_what_names_no_commit_is_wrong_in_a_repository(tmp_path: Path, content: str | bytes, wrong: str) -> None:
    repository(tmp_path)
    checkpoint(tmp_path, "001", content)
    assert issues(tmp_path) == [f"checkpoint-001-commit.txt: {wrong}"]


def test_a_tree_is_no_commit_and_the_beginning_of_an_id_is_one(tmp_path: Path) -> None:
    commit = repository(tmp_path)
    tree = run_git(tmp_path, "rev-parse", "HEAD^{tree}")
    checkpoint(tmp_path, "001", tree)
    assert issues(tmp_path) == [f"checkpoint-001-commit.txt: {tree} is no commit of this repository"]
    checkpoint(tmp_path, "001", f"{commit[:12].upper()} begin\n")
    assert issues(tmp_path) == []


def test_a_project_within_a_repository_belongs_to_it(tmp_path: Path) -> None:
    project = tmp_path / "packages" / "one"
    project.mkdir(parents=True)
    checkpoint(project, "001", repository(tmp_path))
    assert found(project)["checkpoint_info"]["commit_exists"] is True


def test_variables_do_not_lead_git_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, project = tmp_path / "other", tmp_path / "project"
    other.mkdir()
    project.mkdir()
    commit = repository(other)
    run_git(project, "init", "--quiet")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    checkpoint(project, "001", commit)
    assert issues(project) == [f"checkpoint-001-commit.txt: {commit} is no commit of this repository"]


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, "001", NOBODY)
    (folder / "checkpoint-002-commit.txt").mkdir()
    assert issues(tmp_path) == ["checkpoint-002-commit.txt: cannot be read: it is no regular file"]
    (folder / "rollback" / "checkpoint-001.sh").unlink()
    (folder / "rollback").rmdir()
    (folder / "rollback").write_text("no directory")
    assert issues(tmp_path)[0] == "rollback: cannot be read: Not a directory"


def test_a_file_in_place_of_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / ".migration-checkpoints").write_text("no directory")
    assert issues(tmp_path) == [
        ".migration-checkpoints: cannot be read: Not a directory",
        "rollback: cannot be read: Not a directory",
    ]


def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, "001", NOBODY)
    os.mkfifo(folder / "checkpoint-002-commit.txt")
    assert issues(tmp_path) == ["checkpoint-002-commit.txt: cannot be read: it is no regular file"]


def test_a_device_in_place_of_a_file_is_not_read(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, "001", NOBODY)
    (folder / "checkpoint-002-commit.txt").symlink_to("/dev/zero")
    assert issues(tmp_path) == ["checkpoint-002-commit.txt: cannot be read: it is no regular file"]


def test_of_what_is_no_commit_the_beginning_is_shown(tmp_path: Path) -> None:
    repository(tmp_path)
    checkpoint(tmp_path, "001", "x" * 4000)
    assert issues(tmp_path) == [f"checkpoint-001-commit.txt: {'x' * 64} is no commit of this repository"]


def test_looking_changes_nothing(tmp_path: Path) -> None:
    checkpoint(tmp_path, "001", repository(tmp_path))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert found(tmp_path)["valid"]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        ("checkpoint-001-commit.txt", True),
        ("checkpoint-a-b-commit.txt", True),
        ("checkpoint-001.txt", False),
        ("a/checkpoint-001-commit.txt", False),
        ("rollback/checkpoint-001.sh", False),
    ],
)
def test_commit_files_are_told_by_their_names(path: str, is_one: bool) -> None:
    assert is_commit_file(path) == is_one


def test_the_plan_is_in_the_spec_directory_else_in_the_project_else_nowhere(tmp_path: Path) -> None:
    project, inside, outside = tmp_path / "project", tmp_path / "project" / "specs" / "1", tmp_path / "spec"
    for folder in (inside, outside):
        folder.mkdir(parents=True)
    assert [_plan(project, spec) for spec in (None, inside, outside)] == [None, None, None]
    (project / "migration_plan.md").write_text("# Plan")
    assert [_plan(project, spec) for spec in (None, inside, outside)] == ["migration_plan.md"] * 3
    for folder in (inside, outside):
        (folder / "migration_plan.md").write_text("# Plan")
    plans = ["specs/1/migration_plan.md", str(outside / "migration_plan.md")]
    assert [_plan(project, spec) for spec in (inside, str(outside))] == plans


@pytest.mark.anyio
async def test_the_checkpoints_of_earlier_migrations_are_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = repository(tmp_path)
    for number in ("001", "002"):
        checkpoint(tmp_path, number, NOBODY)
    model = install(monkeypatch, Model())
    model.works = lambda _: [checkpoint(tmp_path, number, commit) for number in ("002", "003")]
    with anyio.fail_after(SECONDS):
        product = await run_migration_assistant(tmp_path, None)
    found = (product["success"], product["checkpoints_created"], product["validation"]["checkpoint_info"]["count"])
    assert found == (True, 2, 3)


@pytest.mark.anyio
@pytest.mark.parametrize("is_repository", [True, False])
async def test_a_migration_without_git_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_repository: bool
) -> None:
    if is_repository:
        repository(tmp_path)
    install(monkeypatch, Model())
    sessions = Sessions()
    with anyio.fail_after(SECONDS):
        product = await run_migration_assistant(tmp_path, None, sessions=sessions)
    warnings = [] if is_repository else [NO_GIT]
    assert (product["success"], list(sessions.total().trace.warnings)) == (True, warnings)
