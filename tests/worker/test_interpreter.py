"""Which Python a project's tests run in."""

import shutil
import sys
from pathlib import Path

from tests.worker.node_tools import put

from agentcell_worker.checks.interpreter import find_interpreter


def program(project: Path, name: str) -> str:
    """Makes a file that can be run; its path."""
    put(project, name, "#!/bin/sh\n")
    (project / name).chmod(0o755)
    return str(project / name)


def test_the_one_asked_for_comes_before_the_projects_own_and_these_before_this_one(tmp_path: Path) -> None:
    found = [find_interpreter(None, tmp_path)]
    last = program(tmp_path, "venv/bin/python")
    found.append(find_interpreter(None, tmp_path))
    put(tmp_path, ".venv/bin/python", "cannot be run")
    found.append(find_interpreter(None, tmp_path))
    first = program(tmp_path, ".venv/bin/python")
    found.append(find_interpreter(None, tmp_path))
    assert found == [sys.executable, last, last, first]
    other = program(tmp_path, "other/python")
    assert [find_interpreter(asked, tmp_path) for asked in (other, "other/python", "sh", "./none")] == [
        other,
        other,
        shutil.which("sh"),
        "./none",
    ]
