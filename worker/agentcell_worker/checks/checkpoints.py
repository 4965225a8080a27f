"""The checkpoints of a migration: which there are, and whether they lead back."""

import os
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from agentcell_worker.checks import git
from agentcell_worker.checks.reading import UnusableError, read_text

FOLDER = ".migration-checkpoints"
"""In the project."""

ROLLBACK = "rollback"
COMMIT_FILES = "checkpoint-*-commit.txt"
SCRIPTS = "checkpoint-*.sh"

COMMIT = re.compile(r"[0-9a-fA-F]{4,64}")
"""The id of a commit, or the beginning of one."""

MAX_SHOWN = 64
"""Characters of what it holds: the longest id."""


def validate_migration_checkpoint(checkpoint_dir: str | Path, project_dir: str | Path) -> dict[str, Any]:
    """Whether the latest checkpoint names a commit, and scripts lead back: {valid, issues, checkpoint_info}.

    An issue is text, `FILE: what is wrong`. In a git work tree the commit has to exist. `checkpoint_info` is
    {file, commit, commit_exists, count, rollback_scripts}; `commit_exists` is None where git does not say, and all is
    empty where there is no checkpoint. Names are ordered as people count: 2 comes before 10. Nothing is changed.
    """
    folder, issues = Path(checkpoint_dir), list[str]()
    if not os.path.lexists(folder):
        return {"valid": False, "issues": [f"{folder.name}: there is no such directory"], "checkpoint_info": {}}
    found = _matching(folder, COMMIT_FILES, folder, issues)
    scripts = _scripts(folder, issues)
    if not found:
        return {"valid": False, "issues": issues, "checkpoint_info": {}}
    commit, exists = _commit(found[-1], folder, project_dir, issues)
    info = {
        "file": _name(found[-1], folder),
        "commit": commit,
        "commit_exists": exists,
        "count": len(found),
        "rollback_scripts": [_name(script, folder) for script in scripts],
    }
    return {"valid": not issues, "issues": issues, "checkpoint_info": info}


def is_commit_file(path: str) -> bool:
    """Whether that is the path, relative to the directory of checkpoints, of a checkpoint's commit file."""
    return "/" not in path and fnmatchcase(path, COMMIT_FILES)


def _matching(folder: Path, pattern: str, checkpoints: Path, issues: list[str]) -> list[Path]:
    name = _name(folder, checkpoints)
    try:
        entries = sorted(folder.iterdir(), key=_as_counted)
    except FileNotFoundError:
        issues.append(f"{name}: there is no such directory")
        return []
    except OSError as unreadable:
        issues.append(f"{name}: cannot be read: {unreadable.strerror}")
        return []
    found = [entry for entry in entries if fnmatchcase(entry.name, pattern)]
    if not found:
        issues.append(f"{name}: has no {pattern}")
    return found


def _scripts(folder: Path, issues: list[str]) -> list[Path]:
    scripts = _matching(folder / ROLLBACK, SCRIPTS, folder, issues)
    for script in scripts:
        if not script.is_file():
            issues.append(f"{_name(script, folder)}: is no file")
        elif not os.access(script, os.X_OK):
            issues.append(f"{_name(script, folder)}: is not executable")
    return scripts


def _commit(file: Path, folder: Path, project_dir: str | Path, issues: list[str]) -> tuple[str | None, bool | None]:
    """The commit that the file names, and whether it exists."""
    name = _name(file, folder)
    try:
        commit = read_text(file).split(maxsplit=1)[0]
    except UnusableError as wrong:
        issues.append(f"{name}: {wrong}")
        return None, None
    shown = commit[:MAX_SHOWN]
    try:
        exists = _exists(commit, project_dir)
    except git.NoAnswerError as why:
        issues.append(f"{name}: {shown} could not be checked: {why}")
        return shown, None
    if exists is False:
        issues.append(f"{name}: {shown} is no commit of this repository")
    return shown, exists


def _exists(commit: str, project_dir: str | Path) -> bool | None:
    """None outside a work tree. Raises git.NoAnswerError."""
    if not git.is_work_tree(project_dir):
        return None
    return git.has_commit(project_dir, commit) if COMMIT.fullmatch(commit) else False


def _as_counted(path: Path) -> tuple[list[tuple[str, int]], str]:
    """A key to sort by name, in which numbers count as numbers."""
    parts = re.split(r"([0-9]+)", path.name)
    numbers = [*map(int, parts[1::2]), 0]
    return list(zip(parts[::2], numbers, strict=True)), path.name


def _name(path: Path, checkpoints: Path) -> str:
    return path.relative_to(checkpoints.parent).as_posix()
