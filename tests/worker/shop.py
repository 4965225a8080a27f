"""A small project, and tests for it."""

import stat
import sys
from pathlib import Path

from tests.worker.node_tools import put

SECONDS = 120
"""For what takes some seconds on an idle machine."""

SHOP = """\
def add(a, b):
    return a + b


def take(a, b):
    if a < b:
        raise ValueError("too little")
    return a - b
"""

ADDS = "from shop import add\n\n\ndef test_adds():\n    assert add(1, 2) == 3\n"
TAKES = "from shop import take\n\n\ndef test_takes():\n    assert take(3, 2) == 1\n"

FIRST, SECOND = "tests/test_add.py", "tests/test_take.py"

VALID = {"valid": True, "issues": [], "warnings": []}


def names_in(project: Path) -> list[str]:
    """Of all files and directories."""
    return sorted(path.name for path in project.rglob("*"))


def interpreter_without(project: Path, *tools: str) -> str:
    """An interpreter of the project's own that says it lacks these."""
    blocked = "; ".join(f"sys.modules[{tool!r}] = None" for tool in tools)
    site = project.parent / "site"
    put(site, "sitecustomize.py", f"import sys\n{blocked}\n")
    return put_python(project / ".venv" / "bin" / "python", f'PYTHONPATH="{site}"')


def put_python(path: Path, *variables: str) -> str:
    """This interpreter in another place, with such variables; its path."""
    put(path.parent, path.name, f'#!/bin/sh\n{" ".join(variables)} exec "{sys.executable}" "$@"\n')
    path.chmod(stat.S_IRWXU)
    return str(path)


def put_quick_python(path: Path) -> str:
    """One whose pytest comes up without the plugins that are installed for the tests of agentcell."""
    return put_python(path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1")
